"""Distributed transactions on their way at once: order of the steps, what a failure leaves."""

import asyncio

import pytest

from broker.bridges.jms.coordinator import Coordinator, branch
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.errors import InDoubtError, XaError
from broker.bridges.jms.message import BodyKind, JMSMessage
from broker.bridges.jms.pipelined_two_phase import TRANSACTIONS_MAX, PipelinedTwoPhase
from broker.bridges.jms.transactions import Role
from broker.environment import Environment
from tests.broker.bridges.jms.forgetful_log import FakeClock, ForgetfulStore

NAME = "orders"


class Side:
    """Answers when the test says so. What both sides were asked is in one list."""

    def __init__(self, role, asked):
        self._role = role
        self._asked = asked
        self._waiting = {}
        self._names = {}

    def send_branch(self, xid, messages, done):
        self._note("prepare", xid, messages[0].body, done)

    def take_branch(self, xid, message, done):
        self._note("prepare", xid, message.body, done)

    def commit_branch(self, xid, done):
        self._note("commit", xid, self._names[xid], done)

    def _note(self, verb, xid, name, done):
        assert xid.bq == branch(self._role, b"").bq
        self._names[xid] = name
        self._asked.append(f"{verb} {xid.bq.decode()} {name}")
        self._waiting[verb, name] = done

    def answer(self, verb, name, error=None):
        self._waiting.pop((verb, name))(error)


class Recovering:
    """A session of recovery: nothing is prepared, and no branch is known."""

    def __init__(self, prepared=()):
        self.prepared = prepared
        self.rolled_back = []

    async def xa_recover(self):
        return self.prepared

    async def xa_rollback(self, xid):
        self.rolled_back.append(xid)


class Moving:
    """Batches of one transfer, and what became of each."""

    def __init__(self):
        self.asked = []
        self.target, self.source = Side(Role.TARGET, self.asked), Side(Role.SOURCE, self.asked)
        self.recovering = {role: Recovering() for role in Role}
        self.store = ForgetfulStore()
        self.log = DecisionLog(self.store, Environment().ids)
        self.log.open()
        self.coordinator = Coordinator(self.log, NAME, FakeClock())
        self.transfer = PipelinedTwoPhase(
            None, self.source, self.target, self.coordinator, self.recovering
        )
        self.outcomes = []

    async def move(self, *texts):
        for text in texts:
            await self.transfer.move(
                [JMSMessage(BodyKind.TEXT, text)],
                lambda error, text=text: self.outcomes.append((text, error)),
            )

    def prepare(self, *names):
        for name in names:
            self.target.answer("prepare", name)
            self.source.answer("prepare", name)

    async def commit(self, *names):
        await until(lambda: len(self.log.decided) >= len(names))
        for name in names:
            self.target.answer("commit", name)
            self.source.answer("commit", name)

    def new(self):
        """What was asked since the last call."""
        found = tuple(self.asked)
        self.asked.clear()
        return found


async def until(is_so):
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - threads write.
            await asyncio.sleep(0.001)


def run(scenario):
    asyncio.run(scenario())


def test_each_batch_has_its_order_and_none_waits_for_another():
    async def scenario():
        moving = Moving()
        await moving.move("a", "b")
        assert moving.new() == ("prepare T a", "prepare T b")

        # S alone prepared says that T was committed: never before T.
        moving.target.answer("prepare", "a")
        assert moving.new() == ("prepare S a",)
        assert moving.log.decided == ()
        moving.source.answer("prepare", "a")
        await until(lambda: moving.log.decided)
        await until(lambda: moving.asked)
        assert moving.new() == ("commit T a",)
        moving.target.answer("commit", "a")
        assert moving.new() == ("commit S a",)
        assert moving.outcomes == []
        moving.source.answer("commit", "a")

        assert moving.outcomes == [("a", None)]
        assert moving.log.decided == ()
        assert moving.coordinator.in_doubt == 0

    run(scenario)


def test_decisions_come_in_the_order_of_the_batches_and_together():
    async def scenario():
        moving = Moving()
        await moving.move("a", "b", "c")
        moving.prepare("b", "c")
        await asyncio.sleep(0.01)
        assert moving.log.decided == ()

        syncs = []
        added = moving.store.add
        moving.store.add = lambda *words, sync: (syncs.append(sync), added(*words, sync=sync))[1]
        moving.prepare("a")
        await until(lambda: len(moving.log.decided) == 3)

        assert syncs.count(True) == 1
        await moving.commit("a", "b", "c")
        assert moving.outcomes == [("a", None), ("b", None), ("c", None)]
        assert [one for one in moving.asked if one.startswith("commit T")] == [
            f"commit T {name}" for name in "abc"
        ]

    run(scenario)


def test_a_batch_that_fails_keeps_those_behind_it_from_being_decided():
    async def scenario():
        moving = Moving()
        await moving.move("a", "b", "c")
        refused = XaError(100, "refused")
        moving.target.answer("prepare", "b", refused)
        moving.prepare("c")
        assert moving.outcomes == []

        # The one before it goes its way.
        moving.prepare("a")
        await moving.commit("a")
        assert moving.outcomes == [("a", None), ("b", refused)]
        moving.transfer.close()
        undecided = moving.log.undecided
        await moving.coordinator.recover(moving.recovering)

        assert moving.log.decided == ()
        told = [xid.gtx for xid in moving.recovering[Role.SOURCE].rolled_back]
        assert tuple(told) == undecided
        assert len(undecided) == 2

    run(scenario)


def test_what_is_decided_and_not_committed_everywhere_is_in_doubt():
    async def scenario():
        moving = Moving()
        await moving.move("a", "b", "c")
        moving.prepare("a", "b")
        await until(lambda: len(moving.log.decided) == 2)
        await until(lambda: "commit T b" in moving.asked)
        assert moving.coordinator.in_doubt == 0

        moving.target.answer("commit", "a", ConnectionError("cut"))
        moving.transfer.close()

        assert [name for name, _ in moving.outcomes] == ["a", "b"]
        for _, error in moving.outcomes:
            assert isinstance(error, InDoubtError)
        assert moving.coordinator.in_doubt == 2

    run(scenario)


@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_a_full_log_decides_what_it_has_room_for(room):
    """And that is durable: what was decided has to be so behind a kill."""

    async def scenario():
        moving = Moving()
        await moving.move("a", "b")
        spare = len(moving.log._spare)
        moving.store.room = room
        moving.prepare("b", "a")
        await until(lambda: moving.transfer._deciding is None)

        assert len(moving.log.decided) == max(0, room - (2 - spare))
        after = DecisionLog(moving.store.killed(), Environment().ids)
        after.open()
        assert after.decided == moving.log.decided

    run(scenario)


def test_what_is_on_its_way_is_left_alone_by_recovery():
    async def scenario():
        moving = Moving()
        await moving.move("a")
        (transaction,) = moving.log.undecided
        moving.recovering[Role.TARGET].prepared = (branch(Role.TARGET, transaction),)

        await moving.coordinator.recover(moving.recovering)
        assert moving.recovering[Role.TARGET].rolled_back == []

        moving.transfer.close()
        await moving.coordinator.recover(moving.recovering)
        assert moving.recovering[Role.TARGET].rolled_back == [branch(Role.TARGET, transaction)]

    run(scenario)


@pytest.mark.parametrize("is_decided", [False, True])
def test_what_ends_while_recovery_looks_at_others_is_not_ended_again(is_decided):
    async def scenario():
        moving = Moving()
        stale = await moving.log.begin(NAME)
        if is_decided:
            await moving.log.decide(stale)
        await moving.move("a")
        (transaction,) = moving.coordinator.on_their_way
        moving.prepare("a")
        await until(lambda: moving.log.is_decided(transaction))
        await until(lambda: "commit T a" in moving.asked)
        told = []

        async def end(xid):
            told.append(xid.gtx)
            if moving.outcomes == []:
                moving.target.answer("commit", "a")
                moving.source.answer("commit", "a")

        for role, side in moving.recovering.items():
            side.prepared = (branch(role, transaction),)
            side.xa_rollback = side.xa_commit = end
        await moving.coordinator.recover(moving.recovering)

        assert moving.outcomes == [("a", None)]
        assert set(told) == {stale}
        recovered = moving.coordinator.recovered
        assert (recovered.committed, recovered.rolled_back) == (is_decided, not is_decided)

    run(scenario)


def test_recovery_waits_for_a_decision_that_is_being_written():
    async def scenario():
        moving = Moving()
        await moving.move("a")
        (transaction,) = moving.log.undecided
        moving.recovering[Role.TARGET].prepared = (branch(Role.TARGET, transaction),)
        added = moving.store.add
        writing = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(*words, sync):
            loop.call_soon_threadsafe(writing.set)
            asyncio.run(asyncio.sleep(0.05))
            return added(*words, sync=sync)

        moving.store.add = slow
        moving.prepare("a")
        await writing.wait()
        moving.transfer.close()
        for side in moving.recovering.values():
            side.committed = []

            async def commit(xid, side=side):
                side.committed.append(xid)

            side.xa_commit = commit
        await moving.coordinator.recover(moving.recovering)

        assert moving.recovering[Role.TARGET].rolled_back == []
        assert moving.recovering[Role.TARGET].committed == [branch(Role.TARGET, transaction)]

    run(scenario)


def test_so_many_are_on_their_way_and_no_more():
    async def scenario():
        moving = Moving()
        names = [str(number) for number in range(TRANSACTIONS_MAX)]
        await moving.move(*names)
        another = asyncio.ensure_future(moving.move("another"))
        await asyncio.sleep(0.01)
        assert not another.done()

        moving.prepare("0")
        await moving.commit("0")
        await another

        assert moving.asked[-1] == "prepare T another"

    run(scenario)


def test_a_stop_leaves_no_record_of_what_has_not_begun():
    async def scenario():
        moving = Moving()
        await moving.move("a", "b", "c")
        moving.prepare("a", "b", "c")
        await moving.commit("a", "b", "c")
        moving.transfer.close()
        moving.log.close()

        # Its identity alone.
        assert len(moving.store.records) == 1

    run(scenario)
