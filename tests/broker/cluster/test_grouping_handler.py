"""Grouping handlers of both types: what they decide, record, tell and ask, without a cluster."""

import asyncio

import pytest

from broker.cluster.grouping_handler import TRIES_MAX, LocalGroupingHandler, RemoteGroupingHandler
from broker.config.cluster import GroupingHandler, GroupingType
from broker.notifications import NotificationType, NullNotifier
from broker.records.binding_records import GroupBinding
from tests.broker.cluster.mesh import until
from tests.interop.asynchronous import asynchronous

PROPOSAL = NotificationType.PROPOSAL
RESPONSE = NotificationType.PROPOSAL_RESPONSE
UNPROPOSAL = NotificationType.UNPROPOSAL


class Heard(NullNotifier):
    """Remembers what is told."""

    def __init__(self):
        self.told = []

    def proposal(self, kind, group, value, alternative, *, address, distance):
        assert address == "orders"
        self.told.append((kind, group, value, alternative, distance))

    def take(self):
        told, self.told = self.told, []
        return told


class Records:
    """A storage, as far as settings are concerned; what it has is durable when `sync()` says so."""

    def __init__(self):
        self.by_id = {}
        self._last = 0
        self._callbacks = []

    def add_setting(self, record):
        self._last += 1
        self.by_id[self._last] = record
        return self._last

    def delete_setting(self, record_id):
        del self.by_id[record_id]

    def after(self, callback, *arguments):
        self._callbacks.append((callback, arguments))

    def sync(self):
        callbacks, self._callbacks = self._callbacks, []
        for callback, arguments in callbacks:
            callback(None, *arguments)


def config(kind, **more):
    return GroupingHandler(name="g", type=GroupingType[kind], address="orders", **more)


def local(records=None, recorded=(), **more):
    heard, records = Heard(), records or Records()
    return LocalGroupingHandler(config("LOCAL", **more), heard, records, recorded), heard, records


def remote(**more):
    heard = Heard()
    made = RemoteGroupingHandler(config("REMOTE", **more), heard)
    made.on_decided = lambda group: heard.told.append(("decided", group))
    made.on_free = lambda group: heard.told.append(("free", group))
    return made, heard


@asynchronous
async def test_the_first_proposal_holds_and_is_recorded_and_is_there_after_a_restart():
    handler, heard, records = local()
    assert handler.propose("a.q", "q1") == "q1"
    assert handler.propose("a.q", "q2") == "q1"
    assert records.by_id == {1: GroupBinding("a.q", "q1")}

    handler.proposed("a.q", "q2", 1)
    handler.proposed("b.q", "q2", 1)
    assert heard.take() == [], "nothing is told before it is durable"
    records.sync()
    assert heard.take() == [(RESPONSE, "a.q", "q2", "q1", 0), (RESPONSE, "b.q", "q2", None, 0)]

    again, _, _ = local(records, tuple(records.by_id.items()))
    assert (again.owner("a.q"), again.owner("b.q"), again.owner("c.q")) == ("q1", "q2", None)


@asynchronous
async def test_a_queue_that_is_removed_frees_its_groups():
    handler, heard, records = local()
    freed = []
    handler.on_free = freed.append
    for group, owner in (("a.q", "q1"), ("b.q", "q2"), ("c.q", "q1")):
        handler.propose(group, owner)

    handler.binding_removed("q1")

    assert heard.take() == [(UNPROPOSAL, "a.q", "q1", None, 0), (UNPROPOSAL, "c.q", "q1", None, 0)]
    assert freed == ["a.q", "c.q"]
    assert list(records.by_id.values()) == [GroupBinding("b.q", "q2")]
    # Another broker says so: it is not told on.
    handler.unproposed("b.q", "q2", 1)
    assert (heard.take(), records.by_id) == ([], {})


@asynchronous
async def test_a_group_that_nobody_uses_is_free_after_its_timeout():
    handler, heard, records = local(group_timeout_ms=100, reaper_period_ms=10)
    handler.propose("a.q", "q1")
    handler.propose("b.q", "q1")
    await until(lambda: handler.owner("a.q") and "b.q" not in handler.owners)
    handler.stop()

    assert heard.take() == [(UNPROPOSAL, "b.q", "q1", None, 0)]
    assert list(records.by_id.values()) == [GroupBinding("a.q", "q1")]


@asynchronous
async def test_a_remote_asks_and_remembers_the_answer():
    handler, heard = remote()
    assert handler.propose("a.q", "q1") is None
    assert handler.propose("a.q", "q2") is None
    assert handler.is_asked("a.q")
    # It may have been missed by a peer that hears from now on.
    handler.resend_pending()
    assert heard.take() == [(PROPOSAL, "a.q", "q1", None, 0)] * 2

    handler.answered("a.q", "q3")

    assert heard.take() == [("decided", "a.q")]
    assert (handler.owner("a.q"), handler.propose("a.q", "q1")) == ("q3", "q3")
    assert not handler.is_asked("a.q")
    handler.binding_removed("q3")
    assert (handler.owner("a.q"), heard.take()) == (None, [])
    handler.stop()


@asynchronous
async def test_a_remote_tells_on_what_others_propose_and_free():
    handler, heard = remote()
    handler.answered("a.q", "q1")
    heard.take()

    handler.proposed("b.q", "q2", 1)
    handler.unproposed("a.q", "q1", 1)

    assert heard.take() == [
        (PROPOSAL, "b.q", "q2", None, 1),
        ("free", "a.q"),
        (UNPROPOSAL, "a.q", "q1", None, 1),
    ]
    assert handler.owner("a.q") is None


@asynchronous
async def test_without_an_answer_a_remote_asks_ten_times_and_gives_up(caplog):
    handler, heard = remote(timeout_ms=1)
    handler.propose("a.q", "q1")
    await until(lambda: not handler.is_asked("a.q"))

    told = heard.take()
    assert told[:-1] == [(PROPOSAL, "a.q", "q1", None, 0)] * TRIES_MAX
    assert told[-1] == ("decided", "a.q")
    assert "AMQ222209" in caplog.text
    assert handler.owner("a.q") is None


@asynchronous
async def test_a_remote_tells_now_and_then_that_it_uses_a_group():
    handler, heard = remote(group_timeout_ms=20)
    handler.answered("a.q", "q1")
    heard.take()
    assert handler.owner("a.q") == "q1"
    assert heard.take() == []
    await asyncio.sleep(0.03)
    assert handler.owner("a.q") == "q1"
    assert heard.take() == [(PROPOSAL, "a.q", "q1", None, 0)]


@asynchronous
async def test_two_that_decide_are_told_of(caplog):
    handler, _, _ = local()
    handler.answered("a.q", "q1")
    assert "LOCAL" in caplog.text
    assert handler.owner("a.q") is None


@pytest.fixture(autouse=True)
def _warnings(caplog):
    caplog.set_level("WARNING", "broker")
