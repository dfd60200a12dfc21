"""What operators see of clients by the Core protocol, and what they may end."""

import asyncio
import json

import pytest

from broker.client import AckMode, errors
from broker.client.aio import AsyncClient
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.broker.test_recovery import options

WAIT_S = 60


def run(folder, work):
    async def broker_run():
        acceptor = AcceptorOptions(host="127.0.0.1", port=0)
        broker = Broker(options(folder, acceptors=(acceptor,)))
        await broker.start()
        try:
            async with (
                asyncio.timeout(WAIT_S),
                AsyncClient(f"tcp://127.0.0.1:{broker.acceptors[0].port}") as client,
            ):
                await work(client)
        finally:
            await broker.stop()

    asyncio.run(broker_run())


def test_producers_are_listed_with_what_they_sent(tmp_path):
    async def work(client):
        session, operator = await client.session(), await client.session()
        await session.create_queue("q")
        async with session.producer("q") as producer:
            for body in ("one", "two"):
                await producer.send(body)
            await producer.send("x" * 300_000)
            text = await operator.manage("broker", "listProducersInfoAsJSON")
            (row,) = [one for one in json.loads(text) if one["destination"] == "q"]
            assert row["msgSent"] == 3
            assert row["msgSizeSent"] > 300_000
            assert set(row) == {
                *("id", "name", "connectionID", "sessionID", "creationTime", "destination"),
                *("lastProducedMessageID", "msgSent", "msgSizeSent"),
            }
            wanted = json.dumps({"field": "address", "operation": "EQUALS", "value": "q"})
            page = json.loads(await operator.manage("broker", "listProducers", wanted, 1, 10))
            (shown,) = page["data"]
            assert (shown["id"], shown["msgSent"], page["count"]) == (row["id"], 3, 1)
            sessions = json.loads(await operator.manage("broker", "listSessions", "", 1, 10))
            counts = {one["id"]: one["producerCount"] for one in sessions["data"]}
            assert counts[row["sessionID"]] == 1
        # It is closed: nothing of it is left.
        text = await operator.manage("broker", "listProducersInfoAsJSON")
        assert [one for one in json.loads(text) if one["destination"] == "q"] == []

    run(tmp_path, work)


def test_a_session_is_closed_and_its_client_told(tmp_path):
    async def work(client):
        operator = await client.session()
        session = await client.session(AckMode.TRANSACTED)
        await operator.create_queue("q")
        await operator.producer("q").send("one")
        async with await session.consumer("q") as consumer:
            assert (await consumer.receive(WAIT_S)).text == "one"
            text = await operator.manage("broker", "listAllConsumersAsJSON")
            (row,) = [one for one in json.loads(text) if one["queueName"] == "q"]
            place = row["connectionID"], row["sessionID"]

            assert await operator.manage("broker", "closeSessionWithID", "none", place[1]) is False
            assert await operator.manage("broker", "closeSessionWithID", *place, True) is True
            assert await operator.manage("broker", "closeSessionWithID", *place) is False
            # What it had not acknowledged waits for others.
            assert await operator.attribute("queue.q", "consumerCount") == 0
            assert await operator.attribute("queue.q", "messageCount") == 1
            assert await operator.attribute("queue.q", "deliveringCount") == 0
            await session.producer("q").send("two")
            with pytest.raises(errors.BrokerRefused, match="was closed by an operator"):
                await session.commit()
        await session.close()
        assert await operator.attribute("queue.q", "messageCount") == 1

    run(tmp_path, work)
