"""A producer that gets no credits says so while it waits, and goes on when there is room."""

import asyncio

from broker.client.aio import AsyncClient, producer
from broker.client.credits import AddressCredits
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions


def test_it_tells_why_it_waits(monkeypatch, caplog):
    monkeypatch.setattr(producer, "_CREDITS_CHECK_S", 0.05)

    async def run():
        broker = Broker(BrokerOptions(acceptors=(AcceptorOptions(host="127.0.0.1", port=0),)))
        await broker.start()
        try:
            uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}"
            async with AsyncClient(uri) as client:
                session = await client.session()
                await session.create_queue("q")
                broker.parts.postoffice.addresses.memory.set_disk_full(is_full=True)
                async with session.producer("q") as sending:
                    sent = asyncio.create_task(sending.send("late"))
                    while not any("AMQ212054" in one.message for one in caplog.records):  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                    assert not sent.done()
                    broker.parts.postoffice.addresses.memory.set_disk_full(is_full=False)
                    await sent
                consumer = await session.consumer("q")
                assert (await consumer.receive()).content == "late"
        finally:
            await broker.stop()

    asyncio.run(run())
    assert "address 'q' are blocked" in caplog.text


def test_what_is_sent_when_credits_come_does_not_overtake_what_waited_for_them(monkeypatch):
    later = []
    real = AddressCredits.granted

    async def run():
        broker = Broker(BrokerOptions(acceptors=(AcceptorOptions(host="127.0.0.1", port=0),)))
        await broker.start()
        try:
            uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}"
            async with AsyncClient(uri) as client:
                session = await client.session()
                await session.create_queue("q")
                async with session.producer("q") as sending:

                    def granted(credits, amount):
                        real(credits, amount)
                        if not later:
                            later.extend(asyncio.create_task(sending.send(n)) for n in "123")

                    monkeypatch.setattr(AddressCredits, "granted", granted)
                    await sending.send("0")
                    await asyncio.gather(*later)
                consumer = await session.consumer("q")
                found = [(await consumer.receive()).content for _ in range(4)]
                assert found == list("0123")
        finally:
            await broker.stop()

    asyncio.run(run())
