"""`queue why` says of clients of each protocol what holds their messages."""

import json

import pytest

from tests.broker.protocols.consuming import CONSUMERS, MANY, queue_of
from tests.broker.protocols.stomp.client import core, serving, until
from tests.interop.asynchronous import asynchronous

WINDOWS = {
    "CORE": "consumerWindowSize",
    "AMQP": "credit",
    "MQTT": "defaultMaximumInFlightPublishMessages",
    "MQTT5": "Receive Maximum",
    "OPENWIRE": "prefetch",
    "STOMP": "consumer-window-size",
}
# Core's client reads by itself; of OpenWire a large message is one frame, written at once.
READERS = ["AMQP", "MQTT5", "STOMP"]
SOCKETS = ["MQTT", "MQTT5", "OPENWIRE", "STOMP"]


async def reasons(session, queue):
    """Why the next message of a queue waits."""
    return json.loads(await session.manage(f"queue.{queue.name}", "queryReasonsAsJSON"))["reasons"]


async def first_code(session, queue):
    return (await reasons(session, queue))[0]["code"]


@pytest.mark.parametrize("protocol", WINDOWS)
@asynchronous
async def test_a_client_that_has_as_many_as_it_takes(protocol):
    parameters = {"defaultMaximumInFlightPublishMessages": "1"}
    async with (
        serving(parameters=parameters) as broker,
        core(broker) as session,
        CONSUMERS[protocol](broker, 1),
    ):
        for text in ("first", "second"):
            await session.producer("t").send(text, durable=True)
        queue = queue_of(broker)
        await until(lambda: queue.waiting.count == 1)

        (found,) = await reasons(session, queue)

        assert found["code"] == "no-credit"
        assert WINDOWS[protocol] in found["action"]


@pytest.mark.parametrize("protocol", READERS)
@asynchronous
async def test_a_client_that_is_sent_a_large_message(tmp_path, protocol):
    async with (
        serving(tmp_path) as broker,
        core(broker) as session,
        CONSUMERS[protocol](broker, MANY) as stop,
    ):
        if protocol in SOCKETS:
            stop()
        await session.producer("t").send(bytes(30_000_000))
        await session.producer("t").send("behind it")
        queue = queue_of(broker)
        await until(lambda: queue.waiting.count == 1)

        assert await first_code(session, queue) == "large-message"


@pytest.mark.parametrize("protocol", SOCKETS)
@asynchronous
async def test_a_client_that_reads_nothing(protocol):
    async with (
        serving() as broker,
        core(broker) as session,
        CONSUMERS[protocol](broker, MANY) as stop,
    ):
        stop()
        queue = queue_of(broker)
        producer = session.producer("t")
        # As much as the kernel holds, and some more.
        for _ in range(300):
            await producer.send(bytes(50_000))
        assert queue.waiting.count

        assert await first_code(session, queue) == "connection-stalled"
