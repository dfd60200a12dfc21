"""The bridge's own transaction manager on two brokers: what is left is ended as decided."""

import asyncio
import contextlib

import pytest

from broker.bridges.jms.coordinator import Coordinator, branch
from broker.bridges.jms.core.factory import CoreConnectionFactory
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.errors import (
    XAER_NOTA,
    BridgeConfigError,
    BridgeError,
    InDoubtError,
    XaError,
)
from broker.bridges.jms.orphans import Outcome, find_orphans, resolve
from broker.bridges.jms.providers import Credentials, Destination, SessionKind
from broker.bridges.jms.transactions import Role
from broker.client import AckMode, AsyncClient, XaRefused, Xid
from broker.embedded import EmbeddedBroker
from broker.environment import Environment
from broker.storage.open import transaction_log_store
from journal.errors import JournalError, JournalLocked

QUEUE = Destination.queue("q")
NAME = "orders"
WAIT_S = 10
CLOCK = Environment().clock
# How far a transaction came: which branches are prepared, and whether it is decided.
POINTS = {
    "only the target is prepared": ("T", False),
    "both are prepared": ("TS", False),
    "both are prepared, and it is decided": ("TS", True),
    "the target has committed": ("S", True),
}


def opened_log(folder):
    log = DecisionLog(transaction_log_store(folder), Environment().ids)
    log.open()
    return log


class Sides:
    """A source with a message, a target, and sessions of both."""

    def __init__(self, brokers, sessions):
        self.brokers, self.sessions = brokers, sessions

    def left(self, role):
        queue = self.brokers[role].parts.postoffice.addresses.queues["q"]
        return queue.message_count

    async def leave(self, log, prepared, *, is_decided):
        """Bring a transaction to a point, and leave it there."""
        transaction = await log.begin(NAME)
        source, target = self.sessions[Role.SOURCE], self.sessions[Role.TARGET]
        for role in (Role.TARGET, Role.SOURCE):
            await self.sessions[role].xa_start(branch(role, transaction))
        receiver = await source.receiver(QUEUE, None, None)
        message = await receiver.receive(WAIT_S)
        sender = await target.sender(QUEUE)
        await sender.send(message)
        for role in (Role.TARGET, Role.SOURCE):
            await self.sessions[role].xa_end(branch(role, transaction))
        await target.xa_prepare(branch(Role.TARGET, transaction))
        if "S" in prepared:
            await source.xa_prepare(branch(Role.SOURCE, transaction))
        if is_decided:
            await log.decide(transaction)
        if "T" not in prepared:
            await target.xa_commit(branch(Role.TARGET, transaction))
        return transaction

    async def again(self):
        """New sessions, as a restarted bridge has them."""
        await open_sessions(self.sessions, self.brokers)
        return self.sessions


async def open_sessions(sessions, brokers):
    for role, running in brokers.items():
        factory = CoreConnectionFactory("vm://", broker=running)
        connection = await factory.connect(Credentials())
        sessions[role] = await connection.session(SessionKind.TWO_PHASE)
        sessions[role].connection = connection


@contextlib.asynccontextmanager
async def two_sides():
    async with EmbeddedBroker() as source, EmbeddedBroker() as target:
        brokers = {Role.SOURCE: source.broker, Role.TARGET: target.broker}
        for running in (source, target):
            async with AsyncClient(f"tcp://127.0.0.1:{running.port}") as client:
                session = await client.session()
                await session.create_queue("q")
                if running is source:
                    await session.producer("q").send("one")
        sessions = {}
        await open_sessions(sessions, brokers)
        yield Sides(brokers, sessions)
        for session in sessions.values():
            await session.connection.close()


@pytest.mark.parametrize("point", POINTS)
def test_a_restarted_bridge_ends_what_it_has_left(tmp_path, point):
    prepared, is_decided = POINTS[point]

    async def main():
        async with two_sides() as sides:
            log = opened_log(tmp_path)
            await sides.leave(log, prepared, is_decided=is_decided)
            for session in sides.sessions.values():
                await session.connection.close()
            log.close()
            log = opened_log(tmp_path)
            with contextlib.closing(log):
                coordinator = Coordinator(log, NAME, CLOCK)
                await coordinator.recover(await sides.again())
                left = [
                    xid for session in sides.sessions.values() for xid in await session.xa_recover()
                ]
                counts = sides.left(Role.SOURCE), sides.left(Role.TARGET)
                return left, coordinator.in_doubt, *counts

    left, in_doubt, source, target = asyncio.run(main())

    assert left == []
    assert in_doubt == 0
    assert (source, target) == ((0, 1) if is_decided else (1, 0))


@pytest.mark.parametrize("point", POINTS)
def test_orphans_are_ended_without_the_log(tmp_path, point):
    """What is prepared says whether the target has committed, which is never undone."""
    prepared, _ = POINTS[point]

    async def main():
        async with two_sides() as sides:
            log = opened_log(tmp_path)
            await sides.leave(log, prepared, is_decided=False)
            log.close()
            for session in sides.sessions.values():
                await session.connection.close()
            sessions = await sides.again()
            assert await find_orphans(sessions, "another bridge", None) == []
            orphans = await find_orphans(sessions, NAME, None, are_restarted=True)
            for orphan in orphans:
                assert await resolve(sessions, orphan, None)
                assert await resolve(sessions, orphan, None)
            assert await find_orphans(sessions, NAME, None) == []
            return orphans, sides.left(Role.SOURCE), sides.left(Role.TARGET)

    (orphan,), source, target = asyncio.run(main())

    assert orphan.bridge == NAME
    assert orphan.outcome is (Outcome.COMMIT if prepared == "S" else Outcome.ROLL_BACK)
    assert (source, target) == ((0, 1) if prepared == "S" else (1, 0))


class OutOfSight:
    """A side that does not know a prepared branch before its restart, as Artemis."""

    async def xa_recover(self):
        return []

    async def xa_commit(self, xid):
        raise XaError(XAER_NOTA, "no such branch")

    xa_rollback = xa_commit


@pytest.mark.parametrize("hidden", Role)
def test_a_branch_out_of_sight_is_not_taken_for_one_that_has_ended(tmp_path, hidden):
    """Both are prepared, and the log is lost: whatever one side says, the message stays."""

    async def end_all(sessions):
        for orphan in await find_orphans(sessions, NAME, None):
            await resolve(sessions, orphan, None)

    async def main():
        async with two_sides() as sides:
            log = opened_log(tmp_path)
            await sides.leave(log, "TS", is_decided=False)
            log.close()
            for session in sides.sessions.values():
                await session.connection.close()
            sessions = await sides.again()
            seen = {**sessions, hidden: OutOfSight()}
            (orphan,) = await find_orphans(seen, NAME, None)
            assert orphan.outcome is Outcome.IN_DOUBT
            assert f"the {hidden.value} may list" in orphan.reason
            await end_all(seen)
            # Its broker was restarted.
            await end_all(sessions)
            assert await find_orphans(sessions, NAME, None) == []
            return sides.left(Role.SOURCE), sides.left(Role.TARGET)

    assert asyncio.run(main()) == (1, 0)


def test_a_transaction_is_not_decided_twice(tmp_path):
    async def main():
        with contextlib.closing(opened_log(tmp_path)) as log:
            transaction = await log.begin(NAME)
            await log.decide(transaction)
            with pytest.raises(BridgeError, match="decided already"):
                await log.decide(transaction)

    asyncio.run(main())


def test_a_log_has_one_bridge(tmp_path):
    with contextlib.closing(opened_log(tmp_path)), pytest.raises(JournalLocked):
        opened_log(tmp_path)


def test_decisions_survive_and_keep_their_identity(tmp_path):
    async def main():
        with contextlib.closing(opened_log(tmp_path)) as log:
            transactions = [await log.begin(NAME) for _ in range(3)]
            await log.decide(transactions[0])
            await log.decide(transactions[1])
            log.forget(transactions[0])
            return log.identity, transactions

    identity, transactions = asyncio.run(main())
    with contextlib.closing(opened_log(tmp_path)) as log:
        assert log.identity == identity
        assert list(log.decided) == [transactions[1]]
        assert list(log.undecided) == [transactions[2]]
        assert asyncio.run(log.begin(NAME)) not in transactions


def test_a_failed_log_decides_and_recovers_nothing(tmp_path, monkeypatch):
    async def main():
        with contextlib.closing(opened_log(tmp_path)) as log:
            coordinator = Coordinator(log, NAME, CLOCK)
            transaction = await log.begin(NAME)

            async def fail(transaction):
                raise JournalError("the disk is gone")

            monkeypatch.setattr(log, "decide", fail)
            with pytest.raises(InDoubtError, match="started again: the disk is gone"):
                await coordinator.decide(transaction)
            with pytest.raises(BridgeConfigError, match="start the bridge again"):
                await coordinator.recover({})

    asyncio.run(main())


def test_a_session_goes_on_behind_a_rollback_of_an_unknown_branch():
    """Recovery asks for it between two batches, when the consumer has messages of the next ones."""

    async def main():
        async with (
            EmbeddedBroker() as running,
            AsyncClient(f"tcp://127.0.0.1:{running.port}") as client,
        ):
            session = await client.session(AckMode.XA)
            await session.create_queue("q")
            plain = await client.session()
            for content in ("one", "two"):
                await plain.producer("q").send(content)
            consumer = await session.consumer("q")
            while "2 messages at hand" not in repr(consumer):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            with pytest.raises(XaRefused):
                await session.xa_rollback(Xid(1, b"b", b"unknown"))
            xid = Xid(1, b"b", b"g")
            await session.xa_start(xid)
            received = [await consumer.receive(WAIT_S) for _ in range(2)]
            await session.xa_end(xid)
            await session.xa_rollback(xid)
            return [one.content for one in received]

    assert asyncio.run(main()) == ["one", "two"]
