"""What a start leaves in the journal's files becomes objects when somebody comes to it."""

import asyncio
import gc
import os
import random

import pytest

from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.queues.reference_lists import StoredRun
from broker.storage import pinned_files, spill_file
from journal.errors import JournalIOError
from tests.broker.bench import message
from tests.broker.test_recovery import BrokerRun, durable

XID = Xid(1, b"b", b"g")
FAR_MS = 4_000_000_000_000
END_S = 60


async def send_all(run, messages):
    session = run.session()
    await asyncio.gather(*(durable(session.send, one) for one in messages))


async def taken(run, count, name="q"):
    """A consumer that was given so many."""
    sink = run.consume(name)
    async with asyncio.timeout(END_S):
        while len(sink.got) < count:  # noqa: ASYNC110 -- the loop has to turn
            await asyncio.sleep(0)
    return sink


def queue_of(run, name="q"):
    return run.broker.parts.postoffice.addresses.queues[name]


def memory_of(run):
    memory = run.broker.parts.postoffice.addresses.memory
    return memory.size, memory.count


def parts_of(run, name="q"):
    """How many references are not made, by priority and part."""
    found = []
    for level in queue_of(run, name).waiting.levels:
        reference = level.head
        while reference is not None:
            if isinstance(reference, StoredRun):
                found.extend(map(len, reference.parts))
            reference = reference.following
    return found


def open_files(folder):
    """Names of a folder's files that this process reads; more than once if it does so."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    return [one for one in found if one.startswith(f"{folder}/") and ".amq" in one]


def runs(*parts, folder):
    async def all_of_them():
        for part in parts:
            async with BrokerRun(folder) as run:
                await part(run)

    asyncio.run(all_of_them())


def test_a_start_makes_no_object_of_a_plain_message(tmp_path):
    numbers = [str(number) for number in range(2000)]
    known = []

    async def first(run):
        await run.queue()
        await send_all(run, map(message, numbers))
        known.append(memory_of(run))

    async def second(run):
        assert sum(parts_of(run)) == queue_of(run).message_count == 2000
        assert memory_of(run) == known[0]
        head = queue_of(run).waiting.head()
        assert bytes(head.message.body) == b"0"
        # The first part alone was made, of more than this one.
        assert 0 < sum(parts_of(run)) < 2000
        sink = await taken(run, 2000)
        assert sink.bodies == numbers
        assert parts_of(run) == []
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[-1], done))
        assert memory_of(run) == (0, 0)
        assert len(run.broker._activation.stores.messages) == 0

    runs(first, second, folder=tmp_path / "data")


@pytest.mark.parametrize("seed", range(4))
def test_all_kinds_of_messages_keep_their_order(tmp_path, seed):
    """Plain ones between those that expire, have groups, another queue or another priority."""
    chance = random.Random(seed)
    kinds = [
        {},
        {},
        {},
        {"priority": 7},
        {"expiration": FAR_MS},
        {"_AMQ_GROUP_ID": "g"},
        {"colour": "red", "count": 7},
        {"address": "both"},
    ]
    known = {}

    def all_of(run):
        return {name: run.bodies(name) for name in ("q", "one", "two")}

    async def first(run):
        await run.queue()
        for name in ("one", "two"):
            await run.queue(name, address="both", routing_type=RoutingType.MULTICAST)
        await send_all(
            run,
            (message(str(number), **kinds[chance.randrange(len(kinds))]) for number in range(600)),
        )
        known.update(bodies=all_of(run), memory=memory_of(run))

    async def second(run):
        assert memory_of(run) == known["memory"]
        sink = run.consume("q")
        async with asyncio.timeout(END_S):
            while len(sink.got) < 100:  # noqa: ASYNC110 -- the loop has to turn
                await asyncio.sleep(0)
        assert sink.bodies[:100] == known["bodies"]["q"][:100]
        # All of a group is given to one; what was given comes back in its order.
        sink.session.close(has_failed=False)
        assert all_of(run) == known["bodies"]
        removed = chance.sample(list(queue_of(run).references()), 50)
        for reference in removed:
            queue_of(run).remove(reference)
        gone = {bytes(one.message.body).decode() for one in removed}
        known["bodies"]["q"] = [one for one in known["bodies"]["q"] if one not in gone]

    async def third(run):
        assert all_of(run) == known["bodies"]
        queue_of(run).remove_all()
        assert run.bodies() == []

    async def fourth(run):
        known["bodies"]["q"] = []
        assert all_of(run) == known["bodies"]

    runs(first, second, third, fourth, folder=tmp_path / "data")


def test_bytes_stay_while_a_compaction_moves_records(tmp_path, monkeypatch):
    monkeypatch.setattr(spill_file, "READ_BACK_SIZE", 5000)
    folder = tmp_path / "data"
    numbers = [f"{number:05}" * 200 for number in range(400)]

    async def first(run):
        await run.queue()
        await run.queue("gone")
        await send_all(
            run,
            (
                message(one, address=("q", "gone")[at % 2])
                for at, one in enumerate(one for one in numbers for _ in range(2))
            ),
        )
        sink = await taken(run, 400, "gone")
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[-1], done))

    async def second(run):
        assert len(open_files(folder)) > 4
        journal = run.broker._activation.stores.messages
        pinned = set(journal.pool.pinned)
        assert await asyncio.to_thread(journal.compact)
        assert any("(deleted)" in name for name in open_files(folder))
        assert not pinned & {file.name for file in journal.pool.free}
        # More records, in files that are used again.
        await send_all(run, (message("x" * 1000, address="gone") for _ in range(300)))
        sink = await taken(run, 400)
        assert sink.bodies == numbers
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[-1], done))
        del sink.got[:]

    async def third(run):
        assert run.bodies() == []
        assert len(run.bodies("gone")) == 300

    runs(first, second, third, folder=folder)
    # What leads in circles in a broker that has stopped.
    gc.collect()
    assert open_files(folder) == []


@pytest.mark.parametrize("decision", ["commit", "rollback"])
def test_a_prepared_transaction_finds_what_it_has_taken(tmp_path, decision):
    numbers = [str(number) for number in range(300)]

    async def first(run):
        await run.queue()
        await send_all(run, map(message, numbers))
        sink = await taken(run, 300)
        ids = sink.ids[:2]
        sink.session.close(has_failed=False)
        session = run.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        session.xa.start(XID)
        sink = run.consume("q", session)
        async with asyncio.timeout(END_S):
            while len(sink.got) < 2:  # noqa: ASYNC110 -- the loop has to turn
                await asyncio.sleep(0)
        await durable(lambda done: session.acknowledge(0, ids[1], done))
        session.xa.end(XID, has_failed=False)
        await durable(lambda done: session.xa.prepare(XID, done))

    async def second(run):
        assert run.bodies() == numbers[2:]
        assert queue_of(run).message_count == 300
        session = run.session(is_xa=True)
        if decision == "commit":
            await durable(lambda done: session.xa.commit(XID, False, done))
            assert run.bodies() == numbers[2:]
        else:
            await durable(lambda done: session.xa.rollback(XID, done))
            assert run.bodies() == numbers

    runs(first, second, folder=tmp_path / "data")


def test_without_descriptors_messages_are_copied_as_before(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(pinned_files, "_SHARE", 10**9)
    monkeypatch.setattr(spill_file, "KEPT_SIZE", 0)
    numbers = [str(number) for number in range(300)]

    async def first(run):
        await run.queue()
        await send_all(run, map(message, numbers))

    async def second(run):
        assert parts_of(run) == []
        assert run.broker._activation.data.aside.size > 0
        assert run.bodies() == numbers

    runs(first, second, folder=tmp_path / "data")
    assert "copied out of the journal's files: too many files are open" in caplog.text


def test_who_looks_for_expired_messages_makes_no_others(tmp_path):
    numbers = [str(number) for number in range(700)]
    expiring = {"expiration": FAR_MS}

    async def first(run):
        await run.queue()
        await send_all(
            run, (message(one, **(expiring if one in ("3", "400") else {})) for one in numbers)
        )

    async def second(run):
        before = parts_of(run)
        assert sum(before) == 698
        queue_of(run).clock_ms = lambda: FAR_MS + 1
        run.scan_expired()
        async with asyncio.timeout(END_S):
            while queue_of(run).message_count > 698:  # noqa: ASYNC110 -- the loop has to turn
                await asyncio.sleep(0)
        assert parts_of(run) == before
        assert run.bodies() == [one for one in numbers if one not in ("3", "400")]

    runs(first, second, folder=tmp_path / "data")


def test_a_file_that_is_used_again_is_an_error(tmp_path):
    async def first(run):
        await run.queue()
        await send_all(run, map(message, "abc"))

    async def second(run):
        for path in (tmp_path / "data" / "journal").glob("*.amq"):
            with path.open("r+b") as file:
                file.seek(8)
                file.write(b"\xff" * 8)
        with pytest.raises(JournalIOError, match="changed while messages in it wait"):
            queue_of(run).waiting.head()
        # Nothing was taken out of the list.
        assert queue_of(run).message_count == sum(parts_of(run)) == 3

    runs(first, second, folder=tmp_path / "data")
