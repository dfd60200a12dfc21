"""A session for distributed transactions whose application acknowledges."""

import asyncio

from broker.client import AckMode, AsyncClient
from broker.embedded import EmbeddedBroker
from broker.model.xid import Xid

XID = Xid(1, b"S", b"one")


def test_a_branch_has_what_was_acknowledged_in_it_and_no_more():
    async def main():
        async with (
            EmbeddedBroker() as running,
            AsyncClient(f"tcp://127.0.0.1:{running.port}") as client,
        ):
            sending = await client.session()
            await sending.create_queue("q")
            producer = sending.producer("q")
            for number in range(4):
                await producer.send(str(number))
            session = await client.session(AckMode.XA_CLIENT, ack_batch_size=0)
            consumer = await session.consumer("q")
            # Outside of any branch: nothing is acknowledged.
            found = await consumer.receive_many(4, 5)
            while len(found) < 4:
                found += await consumer.receive_many(4, 5)
            await session.xa_start(XID)
            consumer.acknowledge_ahead(found[1])
            consumer.acknowledge_ahead(found[0])
            await session.xa_end(XID)
            await session.xa_prepare(XID)
            await session.xa_commit(XID)
            await session.close()
            left = await sending.consumer("q")
            return [(await left.receive(5)).content for _ in range(2)], await left.receive_now()

    left, more = asyncio.run(main())

    assert left == ["2", "3"]
    assert more is None
