"""Disks in memory: what a crash leaves of them, and what they refuse."""

import asyncio
import random

import pytest

from broker.client.errors import BrokerRefused, ClientError
from journal.errors import JournalIOError
from tests.sim.files import MemoryFolders
from tests.sim.node import SYNC_S
from tests.sim.record_log import ADD, COMMIT, Disk, Entry, RecordLog, replay
from tests.sim.test_found import OneNode

# Moments after the beginning of a send, and of a start, at which the power goes: up to its end.
STEP_S = 0.0004
STEPS = 40


def log_of(count, written, synced, seed=1):
    log = RecordLog(Disk(random.Random(seed)))
    log.entries += [Entry(ADD, number, 1, b"x") for number in range(count)]
    log.written, log.synced = written, synced
    return log


@pytest.mark.parametrize(("is_power", "least"), [(False, 6), (True, 3)])
def test_a_crash_leaves_every_prefix_that_it_may(is_power, least):
    found = set()
    for seed in range(300):
        log = log_of(10, written=6, synced=3)
        log.crash(random.Random(seed), is_power=is_power)
        assert log.entries == [Entry(ADD, number, 1, b"x") for number in range(len(log.entries))]
        found.add(len(log.entries))

    assert found == set(range(least, 11))


def test_after_a_failed_write_no_crash_has_more_than_what_was_synced_for_certain():
    found = set()
    for seed in range(300):
        log = log_of(10, written=6, synced=3)
        log.is_torn = True
        log.crash(random.Random(seed), is_power=False)
        found.add(len(log.entries))

    assert found == set(range(3, 11))


def test_a_transaction_counts_with_its_commit_alone():
    entries = [Entry(ADD, 1, 1, b"x", tx=5), Entry(ADD, 2, 1, b"y", tx=5), Entry(COMMIT, tx=5)]

    counts = [len(replay(entries[:length])[0]) for length in range(4)]

    assert counts == [0, 0, 0, 2]


def test_a_page_keeps_what_was_synced_and_a_prefix_of_the_rest():
    found = set()
    for seed in range(300):
        folders = MemoryFolders(Disk(random.Random(seed)))
        folder = folders.create("a", 1)
        folder.append(1, [b"12345"])
        folder.sync(1)
        folder.append(1, [b"678"])
        folder.append(2, [b"x"])
        folders.crash(random.Random(seed), is_power=True)
        kept = folders.load(None)["a"]
        found.add((kept.read(1, 0, 99), 2 in kept.pages))

    assert {data for data, _ in found} == {b"12345678"[:size] for size in (5, 6, 7, 8)}
    # A name that was not synced is there or not.
    assert {is_there for _, is_there in found} == {False, True}


async def send(one, body):
    async with one.client() as client, await client.session() as session:
        if not (await session.query_queue("q")).exists:
            await session.create_queue("q", "q")
        await session.producer("q").send(body)


async def count(one):
    async with one.client() as client, await client.session() as session:
        found = await session.query_queue("q")
        return found.message_count if found.exists else None


@pytest.mark.parametrize("is_power", [False, True])
def test_wherever_a_crash_comes_what_was_confirmed_is_there(is_power):
    kept = set()
    for step in range(STEPS):
        one = OneNode(step + 1)
        one.node.storage.disk.sync_s = SYNC_S[0]
        confirmed = []

        async def work(one=one, confirmed=confirmed):
            await send(one, b"before")
            await send(one, b"x")
            confirmed.append(True)

        task = one.process.spawn(work())
        one.loop.run_until_complete(asyncio.sleep(step * STEP_S))
        one.node.power_off() if is_power else one.node.kill()
        one.process.kill()
        one.node.power_on()
        one.process = one.loop.process("again", one.network.host("again"))
        one.loop.run_until_complete(one.node.start())
        found = one.run(count(one))
        assert found == 2 or not confirmed
        kept.add(found)
        del task
        one.loop.close()

    assert len(kept) > 1


def test_wherever_a_start_ends_the_next_one_finds_the_same():
    one = OneNode()
    one.run(send(one, b"x"))
    for step in range(STEPS):
        one.node.power_off()
        one.node.power_on()
        starting = asyncio.ensure_future(one.node.start(), loop=one.loop)
        one.loop.run_until_complete(asyncio.sleep(step * STEP_S))
        one.node.power_off()
        one.node.power_on()
        one.loop.run_until_complete(starting)
    one.loop.run_until_complete(one.node.start())

    assert one.run(count(one)) == 1
    one.loop.close()


def test_a_full_disk_refuses_what_adds_and_service_comes_back(one):
    async def work():
        async with one.client() as client, await client.session() as session:
            await session.create_queue("q", "q")
            producer = session.producer("q")
            await producer.send(b"x")
            one.node.storage.disk.is_full = True
            with pytest.raises(BrokerRefused):
                await producer.send(b"refused")
            async with await session.consumer("q") as consumer:
                assert await (await consumer.receive(5)).read() == b"x"
            one.node.storage.disk.is_full = False
            await producer.send(b"y")
        assert await count(one) == 1

    one.run(work())
    assert one.node.broker.failure is None


@pytest.mark.parametrize("fault", ["fails", "fails_to_sync"])
def test_a_disk_that_fails_ends_the_broker_and_confirms_nothing(one, fault):
    async def work():
        await send(one, b"x")
        setattr(one.node.storage.disk, fault, True)
        with pytest.raises(ClientError):
            await send(one, b"y")

    one.run(work())

    assert isinstance(one.node.broker.failure, JournalIOError)
    one.node.kill()
    one.loop.run_until_complete(one.node.start())
    assert one.run(count(one)) in (1, 2)


def test_seeds_have_disks_of_different_speed():
    speeds = set()
    for seed in range(20):
        one = OneNode(seed)
        speeds.add(one.node.storage.disk.sync_s)
        one.loop.close()

    assert speeds == set(SYNC_S)


@pytest.fixture
def one():
    made = OneNode()
    yield made
    made.loop.close()
