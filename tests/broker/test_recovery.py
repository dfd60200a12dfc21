"""What a broker finds again: after a stop, and after a crash, which is a copy of its folder."""

import asyncio
import shutil
from pathlib import Path

import pytest

from broker.errors import BrokerError
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.options import BrokerOptions
from broker.server.scanner import ExpiryScanner
from broker.server.server import Broker
from broker.sessions.session import SessionOptions
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage import spill_file
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from journal.errors import JournalIOError, JournalLocked
from tests.broker.bench import Sink, message
from tests.live_copy import copy_live

XID = Xid(1, b"b", b"g")
TOPIC = {"address": "topic", "routing_type": RoutingType.MULTICAST}


def options(folder, **changes):
    settings = SettingsRepository()
    settings.add("#", AddressSettings(max_delivery_attempts=-1))
    store = FileStoreOptions(
        bindings=bindings_options(Path(folder) / "bindings"),
        messages=messages_options(Path(folder) / "journal", journal_type="NIO", file_size=102400),
    )
    return BrokerOptions(**{"store": store, "acceptors": (), "settings": settings, **changes})


class BrokerRun:
    """One run of a broker in this process, and sessions whose requests are awaited."""

    def __init__(self, folder, **changes):
        self.folder = Path(folder)
        self.broker = Broker(options(folder, **changes))
        self._names = 0

    async def __aenter__(self):
        await self.broker.start()
        return self

    async def __aexit__(self, *exception):
        await self.broker.stop()

    def session(self, **wanted):
        self._names += 1
        return self.broker.clients.create_session(
            f"s{self._names}", None, SessionOptions(**wanted), set()
        )

    def crash_copy(self, name):
        """A copy of the folder as a crash would leave it now."""
        target = self.folder.with_name(name)
        return copy_live(self.folder, target)

    async def queue(self, name="q", **attributes):
        session = self.session()
        wanted = {"address": name, "routing_type": RoutingType.ANYCAST, **attributes}
        session.administration.create_queue(QueueRequest(name=name, **wanted))
        await durable(session.context.after)

    async def send(self, *messages, session=None):
        session = session or self.session()
        for one in messages:
            await durable(session.send, one)

    def consume(self, name="q", session=None):
        sink = Sink()
        sink.session = session or self.session()
        sink.consumer = sink.session.create_consumer(0, name, sink)
        sink.session.start()
        sink.consumer.receive_credits(-1)
        return sink

    def scan_expired(self):
        """Look for expired messages, as the broker does from time to time."""
        queues = self.broker.parts.postoffice.addresses.queues
        ExpiryScanner(asyncio.get_running_loop(), queues).scan()

    def bodies(self, name="q"):
        queue = self.broker.parts.postoffice.addresses.queues[name]
        return [bytes(one.message.body).decode() for one in queue.references()]


async def durable(request, *arguments):
    """Wait for a request's `done`."""
    future = asyncio.get_running_loop().create_future()

    def done(error):
        if not future.done():
            future.set_result(error)

    request(*arguments, done)
    error = await asyncio.wait_for(future, 60)
    if error is not None:
        raise error


def over_a_restart(tmp_path, how, before, after, **changes):
    """Run `before`, stop or crash, run `after` on what is left."""

    async def runs():
        folder = tmp_path / "data"
        async with BrokerRun(folder, **changes) as run:
            await before(run)
            if how == "crash":
                folder = run.crash_copy("copy")
        async with BrokerRun(folder, **changes) as run:
            await after(run)

    asyncio.run(runs())


HOWS = pytest.mark.parametrize("how", ["stop", "crash"])


@HOWS
def test_an_unused_queue_stays_while_a_message_to_it_becomes_durable(tmp_path, how):
    async def before(run):
        await run.queue(is_auto_created=True, auto_delete=True)
        sink, session = run.consume(), run.session()
        sent = asyncio.create_task(durable(session.send, message("1")))
        await asyncio.sleep(0)
        # The message waits for the disk.
        assert run.broker.parts.postoffice.addresses.queues["q"].message_count == 0
        sink.session.close(has_failed=False)
        await sent

    async def after(run):
        assert run.bodies() == ["1"]

    over_a_restart(tmp_path, how, before, after)


@HOWS
def test_messages_queues_and_what_was_acknowledged(tmp_path, how):
    async def before(run):
        await run.queue(max_consumers=7)
        await run.send(*(message(body) for body in "123"))
        await run.send(message("fleeting", durable=False))
        sink = run.consume()
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[0], done))

    async def after(run):
        assert run.bodies() == ["2", "3"]
        queue = run.broker.parts.postoffice.addresses.queues["q"]
        assert queue.binding.max_consumers == 7
        assert run.broker.parts.postoffice.addresses.memory.count == 2
        sink = run.consume()
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[1], done))
        assert len(run.broker._activation.stores.messages) == 0

    over_a_restart(tmp_path, how, before, after)


@HOWS
def test_ids_are_never_given_twice(tmp_path, how):
    seen = []

    async def before(run):
        await run.queue()
        await run.send(message("1"))
        seen.extend(run.consume().ids)

    async def after(run):
        await run.send(message("2"))
        ids = run.consume().ids
        assert ids[0] == seen[0]
        assert ids[1] > seen[0]

    over_a_restart(tmp_path, how, before, after)


def test_delivery_counts_and_scheduled_times(tmp_path):
    async def before(run):
        await run.queue()
        await run.send(message("counted"))
        session = run.session(auto_commit_sends=False, auto_commit_acks=False)
        sink = run.consume(session=session)
        session.acknowledge(0, sink.ids[0], lambda error: None)
        session.stop()
        await durable(session.rollback)
        later = run.broker.clock_ms() + 3_600_000
        await run.send(message("later", _AMQ_SCHED_DELIVERY=later))

    async def after(run):
        queue = run.broker.parts.postoffice.addresses.queues["q"]
        assert queue.scheduled_count == 1
        assert run.consume().counts == [2]

    over_a_restart(tmp_path, "crash", before, after)


@pytest.mark.parametrize("persists", [True, False])
def test_duplicate_ids(tmp_path, persists):
    async def before(run):
        await run.queue()
        for value in "abc":
            await run.send(message(value, _AMQ_DUPL_ID=value))
        session = run.session(auto_commit_sends=False, auto_commit_acks=False)
        session.send(message("t", _AMQ_DUPL_ID="t"), lambda error: None)
        await durable(session.commit)

    async def after(run):
        await run.send(*(message(value, _AMQ_DUPL_ID=value) for value in "tcba"))
        # Of a circle of three the oldest was overwritten.
        repeated = ["a"] if persists else ["t", "c", "b", "a"]
        assert run.bodies() == ["a", "b", "c", "t", *repeated]

    over_a_restart(tmp_path, "crash", before, after, id_cache_size=3, persist_id_cache=persists)


@HOWS
@pytest.mark.parametrize("kind", ["_AMQ_DUPL_ID", "_AMQ_BRIDGE_DUP"])
def test_ids_outlive_an_address_that_was_made_by_itself_and_is_empty(tmp_path, how, kind):
    """Its consumer took all, and who sent it had no answer: what is sent again is known."""

    def sent():
        return message("1", **{kind: b"n" * 24}), message("2", **{kind: b"m" * 24})

    async def before(run):
        await run.queue(is_auto_created=True, auto_delete=True)
        await run.send(*sent())
        sink = run.consume()
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[-1], done))

    async def after(run):
        assert "q" not in run.broker.parts.postoffice.addresses.by_name
        await run.queue(is_auto_created=True, auto_delete=True)
        await run.send(*sent(), message("3"))
        assert run.bodies() == ["3"]

    over_a_restart(tmp_path, how, before, after)


@pytest.mark.parametrize("decision", ["commit", "rollback"])
def test_prepared_transactions(tmp_path, decision):
    async def before(run):
        await run.queue()
        await run.send(message("old"), message("rest"))
        session = run.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        session.xa.start(XID)
        sink = run.consume(session=session)
        session.acknowledge(0, sink.ids[0], lambda error: None)
        session.send(message("new", _AMQ_DUPL_ID="x"), lambda error: None)
        session.xa.end(XID, has_failed=False)
        await durable(lambda done: session.xa.prepare(XID, done))

    async def after(run):
        session = run.session(is_xa=True)
        assert session.xa.in_doubt() == (XID,)
        assert run.bodies() == ["rest"]
        if decision == "commit":
            await durable(lambda done: session.xa.commit(XID, False, done))
            assert run.bodies() == ["rest", "new"]
        else:
            await durable(lambda done: session.xa.rollback(XID, done))
            assert run.bodies() == ["old", "rest"]
        await run.send(message("again", _AMQ_DUPL_ID="x"))
        assert ("again" in run.bodies()) == (decision == "rollback")

    over_a_restart(tmp_path, "crash", before, after)


def test_what_was_not_committed_is_gone(tmp_path):
    async def before(run):
        await run.queue()
        session = run.session(auto_commit_sends=False, auto_commit_acks=False)
        session.send(message("lost"), lambda error: None)
        await run.send(message("kept"))

    async def after(run):
        assert run.bodies() == ["kept"]

    over_a_restart(tmp_path, "crash", before, after)


def test_deleted_paused_and_temporary_queues(tmp_path):
    async def before(run):
        for name in ("gone", "paused"):
            await run.queue(name)
        await run.queue("temporary", is_temporary=True, is_durable=False)
        await run.send(message("1", "gone"), message("2", "paused"))
        addresses = run.broker.parts.postoffice.addresses
        addresses.delete_queue("gone")
        addresses.pause_queue(addresses.queues["paused"], is_paused=True, is_kept=True)
        await durable(run.session().context.after)
        await durable(run.broker.parts.storage.after)

    async def after(run):
        queues = run.broker.parts.postoffice.addresses.queues
        assert list(queues) == ["paused"]
        assert queues["paused"].is_paused
        assert run.consume("paused").bodies == []

    over_a_restart(tmp_path, "crash", before, after)


def test_a_second_broker_is_refused(tmp_path):
    async def both():
        async with BrokerRun(tmp_path):
            with pytest.raises(JournalLocked):
                await Broker(options(tmp_path)).start()

    asyncio.run(both())


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_what_a_lost_queue_had_may_be_sent_again(tmp_path, is_elsewhere):
    """The record of a new queue is in another journal: a crash may leave its messages alone.

    They were not confirmed: who sends them again is not to be refused.
    """

    async def sent_again(folder, names):
        async with BrokerRun(folder) as run:
            for name in names:
                await run.queue(name, **TOPIC)
            await run.send(message("1", address="topic", _AMQ_DUPL_ID="id"))
            return {name: run.bodies(name) for name in names}

    async def runs():
        folder = tmp_path / "data"
        async with BrokerRun(folder) as run:
            if is_elsewhere:
                await run.queue("old", **TOPIC)
            before = run.crash_copy("before")
            await run.queue("new", **TOPIC)
            await run.send(message("1", address="topic", _AMQ_DUPL_ID="id"))
            crashed = run.crash_copy("crashed")
        shutil.rmtree(crashed / "bindings")
        shutil.copytree(before / "bindings", crashed / "bindings")
        again = tmp_path / "again"
        shutil.copytree(crashed, again)
        first = await sent_again(crashed, ["new"])
        async with BrokerRun(again):
            # A start that ends before anybody sends anything.
            pass
        return first, await sent_again(again, ["new"])

    assert asyncio.run(runs()) == ({"new": [] if is_elsewhere else ["1"]},) * 2


def test_no_client_gets_a_success_after_the_storage_failed(tmp_path):
    async def run_and_crash():
        run = BrokerRun(tmp_path)
        await run.broker.start()
        await run.queue()
        session = run.session()
        storage = run.broker.parts.storage
        told = []
        failure = JournalIOError(5, "the disk is gone")
        session.send(message("1"), told.append)
        storage.completions.fail(failure)
        session.send(message("2"), told.append)

        assert told == [failure, failure]
        assert await run.broker.failed() is failure
        with pytest.raises(BrokerError):
            run.session()
        await run.broker.stop()

    asyncio.run(run_and_crash())


def test_spilled_messages_are_as_they_were(tmp_path, monkeypatch):
    """More than anybody reads back at once; moved, browsed, expired and delivered in order."""
    monkeypatch.setattr(spill_file, "KEPT_SIZE", 0)
    monkeypatch.setattr(spill_file, "READ_BACK_SIZE", 2000)
    monkeypatch.setattr(spill_file, "SEGMENT_SIZE", 10_000)
    numbers = [str(number) for number in range(300)]

    async def all_of(run, name, count):
        sink = run.consume(name)
        async with asyncio.timeout(60):
            while len(sink.got) < count:  # noqa: ASYNC110 -- the loop has to turn
                await asyncio.sleep(0)
        return sink

    async def first(run):
        await run.queue()
        await run.queue("other", address="topic", routing_type=RoutingType.MULTICAST)
        await run.queue("third", address="topic", routing_type=RoutingType.MULTICAST)
        session = run.session()
        await asyncio.gather(
            *(durable(session.send, message(one)) for one in numbers),
            *(durable(session.send, message(one, address="topic")) for one in numbers),
        )

    async def second(run):
        assert run.bodies() == run.bodies("other") == run.bodies("third") == numbers
        sink = await all_of(run, "q", 300)
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[99], done))
        sink.session.close(has_failed=False)
        queue = run.broker.parts.postoffice.addresses.queues["other"]
        for reference in list(queue.references())[:50]:
            reference.message.copy()
        sink = await all_of(run, "other", 300)
        assert sink.bodies == numbers
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[-1], done))

    async def third(run):
        assert run.bodies() == numbers[100:]
        assert run.bodies("other") == []
        sink = await all_of(run, "third", 300)
        assert sink.bodies == numbers
        assert sink.got[7].address == "topic"
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[-1], done))
        sink = await all_of(run, "q", 200)
        await durable(lambda done: sink.session.acknowledge(0, sink.ids[-1], done))
        assert len(run.broker._activation.stores.messages) == 0
        assert run.broker.parts.postoffice.addresses.memory.size == 0

    async def runs():
        for part in (first, second, third):
            async with BrokerRun(tmp_path / "data") as run:
                await part(run)

    asyncio.run(runs())
