"""Each step of one of a pair is a line with its own reason, and a notification."""

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from broker.model.routing_type import RoutingType
from broker.server.lifecycle import HaState
from broker.server.server import Broker
from journal.errors import JournalClosed
from tests.broker.bridges.two_brokers import options, session_of, until
from tests.interop.asynchronous import asynchronous

ADDRESS = "activemq.notifications"
NAMES = ("_AMQ_NotifType", "_QUIVER_NodeRole", "_QUIVER_NodeReason", "_QUIVER_NodeSince")
STEPS = "_AMQ_NotifType LIKE 'NODE_%'"


def one_of_a_pair(folder, **more):
    """A broker whose store another one may want, too; it is not started."""
    found = options("pair", folder=folder)
    store = replace(found.store, lock_timeout_ms=-1)
    return Broker(replace(found, store=store, shares_store=True, **more))


def set_state(folder, letter):
    """Write what another one of the pair would."""
    file = folder / "journal/server.lock"
    file.write_bytes(letter + file.read_bytes()[1:])


async def listen(broker):
    """Have a queue for what it tells from now on."""
    async with session_of(broker) as session:
        await session.create_queue(
            "steps", ADDRESS, routing_type=RoutingType.MULTICAST, selector=STEPS
        )


async def told(broker):
    """What it has told since the queue was made: type, role, reason, and when."""
    found = []
    async with session_of(broker) as session, await session.consumer("steps") as consumer:
        while (received := await consumer.receive(0.2)) is not None:
            properties = received.message.properties
            found.append(tuple(properties[name].value for name in NAMES))
            await received.acknowledge()
    return found


@asynchronous
async def test_a_start_tells_of_the_steps_that_came_before_it_served(tmp_path):
    first = one_of_a_pair(tmp_path)
    await first.start()
    await listen(first)
    await first.stop()
    began_ms = time.time_ns() // 1_000_000
    second = one_of_a_pair(tmp_path)
    await second.start()

    found = await told(second)

    kinds = ["NODE_STOPPING", "NODE_WAITING", "NODE_ACTIVATING", "NODE_ACTIVE"]
    assert [one[0] for one in found] == kinds
    assert {one[1] for one in found} == {"primary"}
    stopping, waiting, activating, active = (one[2] for one in found)
    assert stopping == "it was told to stop"
    assert waiting == "waiting for the lock on its store"
    assert activating == "the lock was free"
    assert active.startswith("it serves, after ")
    since = [one[3] for one in found]
    assert since == sorted(since)
    assert since[0] <= began_ms <= since[1]
    await second.stop()


@asynchronous
async def test_a_failure_is_told_once_it_serves_again(tmp_path):
    broker = one_of_a_pair(tmp_path)
    await broker.start()
    await listen(broker)
    broker._lost_lease(JournalClosed("the lease is lost"))
    await broker.failed()
    await broker.stop()
    await broker.start()

    found = await told(broker)

    assert [one[0] for one in found] == [
        *("NODE_FAILED", "NODE_STOPPED", "NODE_WAITING", "NODE_ACTIVATING", "NODE_ACTIVE")
    ]
    assert found[0][2] == "the lease is lost"
    await broker.stop()


@pytest.mark.parametrize("role", ["primary", "backup"])
@asynchronous
async def test_one_that_gives_its_place_says_who_told_it(tmp_path, role):
    primary = one_of_a_pair(tmp_path)
    await primary.start()
    await listen(primary)
    if role == "backup":
        await primary.stop()
        set_state(tmp_path, b"L")
        broker = one_of_a_pair(tmp_path, is_backup=True)
        await broker.start()
    else:
        broker = primary
    await told(broker)

    broker.give_place()
    await broker.ended()

    # The next one finds it: its store says that another one takes over.
    assert (tmp_path / "journal/server.lock").read_bytes()[:1] == b"L"
    again = one_of_a_pair(tmp_path)
    await again.start()
    kind, who, reason, _ = (await told(again))[0]
    assert (kind, who) == ("NODE_STOPPING", role)
    assert reason == "it was told to give its place (forceFailover)"
    await again.stop()


@asynchronous
async def test_a_backup_tells_that_the_primary_asks_and_waits_again(tmp_path):
    primary = one_of_a_pair(tmp_path)
    await primary.start()
    await listen(primary)
    await primary.stop()
    set_state(tmp_path, b"L")
    backup = one_of_a_pair(tmp_path, is_backup=True)
    await backup.start()
    await told(backup)

    set_state(tmp_path, b"F")
    await until(lambda: backup.lifecycle.ha_state is HaState.WAITING)
    with contextlib.suppress(JournalClosed):
        await backup.stop()
    again = one_of_a_pair(tmp_path)
    await again.start()

    kind, role, reason, _ = (await told(again))[0]
    assert (kind, role) == ("NODE_FAILING_BACK", "backup")
    assert reason == "the primary asks for its place"
    await again.stop()


@asynchronous
async def test_a_broker_without_a_pair_tells_of_no_step(tmp_path):
    broker = Broker(options("alone", folder=tmp_path))
    await broker.start()
    await listen(broker)
    await broker.stop()
    await broker.start()

    assert await told(broker) == []
    await asyncio.wait_for(broker.stop(), 60)
