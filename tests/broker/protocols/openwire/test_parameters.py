"""Parameters of acceptors, and what they decide: silence, duplicate ids, the broker's name."""

import asyncio

import pytest

from broker.protocols.openwire import commands as c
from broker.protocols.openwire.identifiers import ConnectionId, SessionId
from tests.broker.protocols.openwire.client import CONNECTION, OpenWire, text_of
from tests.broker.protocols.openwire.test_connections import closes
from tests.broker.protocols.stomp.client import serving
from tests.interop.asynchronous import asynchronous

QUEUE = c.ActiveMQQueue("q")
OTHER = "ID:other-1-2-3:1"
# Looked at often: silence is ended soon.
OFTEN = {"connection_ttl_check_interval": 20}
SHORT = {"maxInactivityDuration": "2000", "maxInactivityDurationInitalDelay": "0"}


async def goes_on(client, done):
    """Say from time to time that the client is there."""
    while not done.is_set():
        client.put(c.KeepAliveInfo())
        await asyncio.sleep(0.05)


@asynchronous
async def test_who_is_silent_for_too_long_is_closed_and_hears_of_the_broker_until_then():
    done = asyncio.Event()
    async with (
        serving(parameters=SHORT, options=OFTEN) as broker,
        OpenWire.raw(broker) as silent,
        OpenWire.of(broker, "other", name=OTHER) as talking,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(goes_on(talking, done))
        await silent.negotiate()
        assert silent.agreed.max_inactivity_ms == 2000
        await silent.ask(silent.login("silent"))
        found = silent.agreed.reader(await silent.frame()).command()
        assert isinstance(found, c.KeepAliveInfo)
        await closes(silent)
        done.set()
        await talking.ask(talking.text(QUEUE, "it goes on"))


@pytest.mark.parametrize("is_clients", [True, False])
@asynchronous
async def test_without_keep_alive_silence_is_for_ever(is_clients):
    """By `useKeepAlive=false` of the acceptor, or a client that wants none."""
    parameters = SHORT if is_clients else {**SHORT, "useKeepAlive": "false"}
    async with (
        serving(parameters=parameters, options=OFTEN) as broker,
        OpenWire.raw(broker) as client,
    ):
        if is_clients:
            client.ours.properties["MaxInactivityDuration"] = 0
        await client.negotiate()
        await client.ask(client.login("silent"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 3)
        await client.ask(c.SessionInfo(session_id=SessionId(CONNECTION, 1)))


@asynchronous
async def test_a_keep_alive_has_no_answer():
    async with serving() as broker, OpenWire.of(broker) as client:
        client.put(c.KeepAliveInfo(), True)
        await client.ask(client.text(QUEUE, "m"))
        assert client.messages == []


@asynchronous
async def test_another_client_on_the_same_socket():
    async with serving() as broker, OpenWire.of(broker, "first") as client:
        await client.consume(QUEUE)
        await client.ask(client.text(QUEUE, "m"))
        await client.message()
        await client.ask(c.RemoveInfo(object_id=ConnectionId(CONNECTION)))
        # All that was the first one's is gone: its sessions, and what it had not acknowledged.
        refused = await client.refused(client.text(QUEUE, "no"))
        assert "before ConnectionInfo" in refused.exception.message
        await closes(client)

        async with OpenWire.of(broker, "second") as again:
            await again.ask(c.RemoveInfo(object_id=ConnectionId(CONNECTION)))
            await again.ask(again.login("third"))
            await again.ask(c.SessionInfo(session_id=SessionId(CONNECTION, 1)))
            await again.consume(QUEUE)
            assert text_of(await again.message()) == "m"
            # Its name is free for others, and the new one is not.
            async with OpenWire.of(broker, "second", name=OTHER):
                pass


@pytest.mark.parametrize("detects", [True, False])
@asynchronous
async def test_message_ids_of_failover_clients_are_duplicate_ids_if_so_wanted(detects):
    parameters = {} if detects else {"openwireUseDuplicateDetectionOnFailover": "false"}
    async with (
        serving(parameters=parameters) as broker,
        OpenWire.of(broker, fault_tolerant=True) as client,
    ):
        for _ in range(2):
            message = client.text(QUEUE, "same")
            message.message_id.producer_sequence_id = 1
            await client.ask(message)

        queue = broker.parts.postoffice.addresses.queues["q"]
        assert queue.message_count == (1 if detects else 2)


@asynchronous
async def test_a_broker_has_the_name_that_it_is_given():
    async with serving(parameters={"brokerName": "here"}) as broker:
        async with OpenWire.raw(broker) as client:
            assert (await client.negotiate()).broker_name == "here"
        async with OpenWire.of(broker, "same"), OpenWire.raw(broker) as second:
            await second.negotiate()
            refused = await second.refused(second.login("same"))
            assert refused.exception.message.startswith("Broker: here - Client: same already")
