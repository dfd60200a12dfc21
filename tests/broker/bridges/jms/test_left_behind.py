"""A bridge of two phases is killed before each step of a transaction, and recovered.

The steps are those of `coordinator.py`. A kill loses what its log has not synced, as one between
two records does. What becomes of the old connections is a part of the case:

    broken      the brokers notice that the client is gone
    closed      they keep its branches, as a broker does that has not noticed
    late        what was on its way arrives only after the recovery, and then one of these
"""

import asyncio
import contextlib

import pytest

from broker.bridges.jms import coordinator as coordinator_module
from broker.bridges.jms.coordinator import AT_ONCE, KEPT_MAX, SETTLED_S, Coordinator, branch
from broker.bridges.jms.core.factory import CoreConnectionFactory
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.errors import (
    XAER_NOTA,
    BridgeConfigError,
    BridgeError,
    InDoubtError,
    XaError,
)
from broker.bridges.jms.pipelined_two_phase import TRANSACTIONS_MAX
from broker.bridges.jms.providers import Credentials, Destination, SessionKind
from broker.bridges.jms.transactions import Role
from broker.client import AsyncClient, ClientError, channel
from broker.client.errors import NotConnected
from broker.embedded import EmbeddedBroker
from broker.environment import Environment
from broker.model.xid import Xid
from broker.protocols.core.packet_xa import XaCommit, XaRollback
from journal.errors import JournalFull, JournalIOError
from tests.broker.bridges.jms.forgetful_log import FakeClock, ForgetfulStore

QUEUE = Destination.queue("q")
NAME = "orders"
WAIT_S = 10
ROLES = (Role.TARGET, Role.SOURCE)


class Bridge:
    """A process of the bridge: its log, its sessions, and the steps of one transaction."""

    def __init__(self, brokers, store, clock):
        self.brokers, self.store, self.clock = brokers, store, clock
        self.log = DecisionLog(store, Environment().ids)
        self.log.open()
        self.coordinator = Coordinator(self.log, NAME, clock)
        self.sessions = {}
        self.connections = {}
        self.transaction = None

    async def connect(self):
        for role, running in self.brokers.items():
            factory = CoreConnectionFactory("vm://", broker=running)
            self.connections[role] = await factory.connect(Credentials())
            self.sessions[role] = await self.connections[role].session(SessionKind.TWO_PHASE)
        return self

    def steps(self):
        """Names and coroutine functions, in their order."""
        source, target = self.sessions[Role.SOURCE], self.sessions[Role.TARGET]

        def verb(name, role):
            async def call():
                await getattr(self.sessions[role], f"xa_{name}")(branch(role, self.transaction))

            return f"{name} {role.value}", call

        async def begin():
            self.transaction = await self.log.begin(NAME)

        async def receive():
            receiver = await source.receiver(QUEUE, None, None)
            self.message = await receiver.receive(WAIT_S)
            # Nothing is left: the acknowledgement goes out.
            assert await receiver.receive(0.01) is None

        async def send():
            sender = await target.sender(QUEUE)
            await sender.send(self.message)
            await sender.confirmed()

        async def decide():
            await self.log.decide(self.transaction)

        async def forget():
            self.log.forget(self.transaction)

        return [
            ("begin", begin),
            *(verb("start", role) for role in ROLES),
            ("receive", receive),
            ("send", send),
            *(verb("end", role) for role in ROLES),
            *(verb("prepare", role) for role in ROLES),
            ("decide", decide),
            *(verb("commit", role) for role in ROLES),
            ("forget", forget),
        ]

    async def end(self, how):
        """The brokers notice that the process is gone, or do not."""
        before = {role: len(one.clients.sessions) for role, one in self.brokers.items()}
        for role, connection in self.connections.items():
            if how == "broken":
                connection._connection.fail(NotConnected("killed"))
                async with asyncio.timeout(WAIT_S):
                    while len(self.brokers[role].clients.sessions) >= before[role]:  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
            else:
                await connection.close()


STEPS = [
    *("begin", "start target", "start source", "receive", "send", "end target", "end source"),
    *("prepare target", "prepare source", "decide", "commit target", "commit source", "forget"),
]
DECIDE = STEPS.index("decide")


class World:
    """Two brokers with a queue each, and one message at the source for each case."""

    def __init__(self, brokers, client_sessions):
        self.brokers, self.client_sessions = brokers, client_sessions
        self.failures = []

    async def begin(self):
        await self.client_sessions[Role.SOURCE].producer("q").send("one")
        return await Bridge(self.brokers, ForgetfulStore(), FakeClock()).connect()

    async def after_a_kill(self, old):
        """The bridge that is started again."""
        return await Bridge(self.brokers, old.store.killed(), FakeClock()).connect()

    async def check(self, case, bridge, *, is_decided):
        """See that nothing is left, and where the message is."""
        prepared = [xid for one in bridge.sessions.values() for xid in await one.xa_recover()]
        found = {}
        for role in ROLES:
            found[role] = 0
            async with await self.client_sessions[role].consumer("q") as consumer:
                while (await consumer.receive_now()) is not None:
                    found[role] += 1
        held = sum(len(one.parts.transactions) for one in self.brokers.values())
        wanted = {Role.TARGET: int(is_decided), Role.SOURCE: int(not is_decided)}
        outcome = (prepared, found, held, bridge.coordinator.in_doubt)
        if outcome != ([], wanted, 0, 0):
            self.failures.append((case, outcome))
        await bridge.end("closed")


@contextlib.asynccontextmanager
async def world():
    async with contextlib.AsyncExitStack() as stack:
        brokers, sessions = {}, {}
        for role in ROLES:
            running = await stack.enter_async_context(EmbeddedBroker())
            client = await stack.enter_async_context(AsyncClient(f"tcp://127.0.0.1:{running.port}"))
            brokers[role], sessions[role] = running.broker, await client.session()
            await sessions[role].create_queue("q")
        yield World(brokers, sessions)


async def do(steps):
    for _, step in steps:
        await step()


async def do_late(steps):
    """What arrives after all: each packet by itself, whatever became of those before it."""
    for _, step in steps:
        with contextlib.suppress(XaError, ClientError, AssertionError):
            await step()


@pytest.mark.parametrize("how", ["broken", "closed"])
def test_killed_before_each_step(how):
    async def main():
        async with world() as made:
            for count in range(len(STEPS) + 1):
                old = await made.begin()
                steps = old.steps()
                assert [name for name, _ in steps] == STEPS
                await do(steps[:count])
                await old.end(how)
                bridge = await made.after_a_kill(old)
                await bridge.coordinator.recover(bridge.sessions)
                case = STEPS[count] if count < len(STEPS) else "the next batch"
                await made.check(case, bridge, is_decided=count > DECIDE)
            return made.failures

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("how", ["broken", "closed"])
def test_what_arrives_after_the_recovery_is_ended_too(how):
    """All that the killed bridge had sent up to a step, of which the last ones are late."""

    async def main():
        async with world() as made:
            # The decision is the bridge's own, and what comes behind it is not sent before.
            for sent in range(2, DECIDE + 1):
                for count in range(1, sent):
                    old = await made.begin()
                    steps = old.steps()
                    await do(steps[:count])
                    bridge = await made.after_a_kill(old)
                    await bridge.coordinator.recover(bridge.sessions)
                    await do_late(steps[count:sent])
                    await old.end(how)
                    # Told again a second later at the latest.
                    bridge.clock.now += 1
                    await bridge.coordinator.recover(bridge.sessions)
                    case = (STEPS[count], STEPS[sent - 1])
                    await made.check(case, bridge, is_decided=False)
            return made.failures

    assert asyncio.run(main()) == []


def test_recovery_is_asked_for_until_nothing_can_arrive_any_more():
    async def main():
        async with world() as made:
            old = await made.begin()
            await do(old.steps()[:1])
            await old.end("broken")
            bridge = await made.after_a_kill(old)
            waits = []
            while (wait_s := await bridge.coordinator.recover(bridge.sessions)) is not None:
                waits.append(wait_s)
                bridge.clock.now += wait_s
            ended_s = bridge.clock.now
            await bridge.end("closed")
            return waits, ended_s, bridge.log.undecided

    waits, ended_s, undecided = asyncio.run(main())

    assert waits == [1, 1, 2, 4, 8, 16, 32, 64]
    assert ended_s >= SETTLED_S
    assert undecided == ()


@pytest.mark.parametrize("is_decided", [True, False])
def test_many_are_ended_side_by_side_and_in_their_order(is_decided, monkeypatch):
    """One after the other, over a link with latency, a bridge would stand still meanwhile."""
    on_their_way = []
    asked = channel.Channel.call

    def call(self, packet, *args, **options):
        try:
            return asked(self, packet, *args, **options)
        finally:
            if isinstance(packet, XaCommit | XaRollback):
                on_their_way.append(self._asked)

    async def main():
        async with world() as made:
            producer = made.client_sessions[Role.SOURCE].producer("q")
            for number in range(AT_ONCE + 3):
                await producer.send(str(number))
            old = await Bridge(made.brokers, ForgetfulStore(), FakeClock()).connect()
            source, target = (old.sessions[role] for role in (Role.SOURCE, Role.TARGET))
            sender = await target.sender(QUEUE)
            for number in range(AT_ONCE + 3):
                transaction = await old.log.begin(NAME)
                for role in ROLES:
                    await old.sessions[role].xa_start(branch(role, transaction))
                if not number:
                    receiver = await source.receiver(QUEUE, None, None)
                await sender.send(await receiver.receive(WAIT_S))
                await sender.confirmed()
                for role in ROLES:
                    await old.sessions[role].xa_end(branch(role, transaction))
                for role in ROLES:
                    await old.sessions[role].xa_prepare(branch(role, transaction))
                if is_decided:
                    await old.log.decide(transaction)
            await old.end("broken")
            bridge = await made.after_a_kill(old)
            monkeypatch.setattr(channel.Channel, "call", call)
            await bridge.coordinator.recover(bridge.sessions)
            monkeypatch.undo()
            await bridge.end("closed")
            found = {}
            for role, session in made.client_sessions.items():
                found[role] = []
                async with await session.consumer("q") as consumer:
                    while (received := await consumer.receive_now()) is not None:
                        found[role].append(received.text)
            return found

    found = asyncio.run(main())

    there, other = (Role.TARGET, Role.SOURCE) if is_decided else (Role.SOURCE, Role.TARGET)
    assert found == {there: [str(number) for number in range(AT_ONCE + 3)], other: []}
    assert max(on_their_way) == AT_ONCE


class Refusing:
    """A side that knows no branch, as Artemis one whose connection broke behind the prepare."""

    def __init__(self):
        self.asked = []
        self.prepared = ()

    async def xa_recover(self):
        return self.prepared

    async def xa_start(self, xid):
        self.asked.append(("start", xid.bq))

    xa_end = xa_prepare = xa_start

    async def xa_commit(self, xid):
        self.asked.append(("commit", xid.bq))
        if xid not in self.prepared:
            raise XaError(XAER_NOTA, "no such branch")
        self.prepared = ()

    xa_rollback = xa_commit


def test_a_branch_that_turns_up_again_is_committed_if_that_was_decided():
    """Artemis loses sight of a prepared branch with its connection, and has it after a restart."""

    async def main():
        sides = {role: Refusing() for role in ROLES}
        store = ForgetfulStore()
        log = DecisionLog(store, Environment().ids)
        log.open()
        coordinator = Coordinator(log, NAME, FakeClock())
        await (await coordinator.begin(sides)).commit()
        (decided,) = log.decided
        assert coordinator.in_doubt == 0

        # Also by a bridge that was killed meanwhile.
        log = DecisionLog(store.killed(), Environment().ids)
        log.open()
        coordinator = Coordinator(log, NAME, FakeClock())
        assert coordinator.in_doubt == 1
        await coordinator.recover(sides)
        assert coordinator.in_doubt == 0
        for side in sides.values():
            side.asked.clear()
        sides[Role.TARGET].prepared = (branch(Role.TARGET, decided),)
        await coordinator.recover(sides)
        return sides

    sides = asyncio.run(main())

    assert sides[Role.TARGET].asked == [("commit", b"T")]
    assert sides[Role.TARGET].prepared == ()


def test_so_many_decisions_are_kept_for_that(monkeypatch):
    # Of several lost connections, each with all that may be on their way.
    assert KEPT_MAX >= 20 * TRANSACTIONS_MAX
    monkeypatch.setattr(coordinator_module, "KEPT_MAX", 100)

    async def main():
        sides = {role: Refusing() for role in ROLES}
        log = DecisionLog(ForgetfulStore(), Environment().ids)
        log.open()
        coordinator = Coordinator(log, NAME, FakeClock())
        transactions = []
        for _ in range(103):
            await (await coordinator.begin(sides)).commit()
            transactions.append(log.decided[-1])
        return transactions, log.decided

    transactions, decided = asyncio.run(main())

    assert decided == tuple(transactions[3:])


@pytest.mark.parametrize("failure", [JournalIOError(5, "cannot sync"), JournalFull(28, "full")])
def test_a_log_that_fails_behind_the_commits_fails_no_transaction(failure, monkeypatch):
    """The next one shows it. The answer to the last commit comes where no caller waits."""

    async def main():
        sides = {role: Refusing() for role in ROLES}
        for side in sides.values():
            # Both know their branches.
            side.xa_commit = side.xa_start
        store = ForgetfulStore()
        log = DecisionLog(store, Environment().ids)
        log.open()
        coordinator = Coordinator(log, NAME, FakeClock())
        transaction = await coordinator.begin(sides)

        def delete(record_id, *, sync):
            raise failure

        monkeypatch.setattr(store, "delete", delete)
        await transaction.commit()
        try:
            await coordinator.new_transaction()
        except BridgeConfigError as error:
            return str(error)
        return "goes on"

    told = asyncio.run(main())

    closed = f"the transaction log has failed; start the bridge again: {failure}"
    assert told == ("goes on" if isinstance(failure, JournalFull) else closed)


def test_a_transaction_of_another_manager_is_left_alone():
    async def main():
        sides = {role: Refusing() for role in ROLES}
        log = DecisionLog(ForgetfulStore(), Environment().ids)
        log.open()
        sides[Role.SOURCE].prepared = (Xid(1, b"S", b"another"),)
        await Coordinator(log, NAME, FakeClock()).recover(sides)
        return sides

    assert asyncio.run(main())[Role.SOURCE].asked == []


def test_a_side_that_is_lost_behind_the_decision_leaves_it_in_doubt():
    async def main():
        sides = {role: Refusing() for role in ROLES}

        async def lose(xid):
            raise ConnectionError("cut")

        sides[Role.SOURCE].xa_commit = lose
        log = DecisionLog(ForgetfulStore(), Environment().ids)
        log.open()
        coordinator = Coordinator(log, NAME, FakeClock())
        transaction = await coordinator.begin(sides)
        with pytest.raises(InDoubtError):
            await transaction.commit()
        return coordinator.in_doubt

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize("error", [XaError(XAER_NOTA, "timed out"), ConnectionError("cut")])
def test_a_rollback_reaches_the_side_that_is_there(error):
    """The other one has rolled back for time, or is lost."""

    async def main():
        sides = {role: Refusing() for role in ROLES}

        async def refuse(xid, failed=False):
            raise error

        async def end(xid, failed=False):
            sides[Role.TARGET].asked.append(("end", xid.bq))

        sides[Role.SOURCE].xa_end = refuse
        sides[Role.TARGET].xa_end = end
        log = DecisionLog(ForgetfulStore(), Environment().ids)
        log.open()
        coordinator = Coordinator(log, NAME, FakeClock())
        transaction = await coordinator.begin(sides)
        told = contextlib.nullcontext()
        if not isinstance(error, XaError):
            told = pytest.raises(ConnectionError)
        with told:
            await transaction.rollback()
        return sides[Role.TARGET].asked, log.undecided

    asked, undecided = asyncio.run(main())

    assert asked == [("start", b"T"), ("end", b"T"), ("commit", b"T")]
    # It is not known whether the source has rolled back: recovery asks again.
    assert len(undecided) == 1


@pytest.mark.parametrize("room", [0, 1])
def test_a_full_log_decides_nothing_and_goes_on(room):
    """With room for one more record than it has, too: that of the next transaction."""

    async def main():
        sides = {role: Refusing() for role in ROLES}
        store = ForgetfulStore()
        log = DecisionLog(store, Environment().ids)
        log.open()
        coordinator = Coordinator(log, NAME, FakeClock())
        transaction = await coordinator.begin(sides)
        store.room = room
        with pytest.raises(BridgeError, match="is rolled back: the transaction log has no room"):
            await transaction.commit()
        with pytest.raises(BridgeError, match="the transaction log has no room"):
            await coordinator.begin(sides)
        undecided = log.undecided
        await coordinator.recover(sides)
        told = [verb for verb, _ in sides[Role.TARGET].asked[3:]]

        store.room = None
        await (await coordinator.begin(sides)).commit()
        return undecided, told, log.decided

    undecided, told, decided = asyncio.run(main())

    assert len(undecided) == 1 + room
    assert told == ["commit"] * (1 + room)  # `Refusing` rolls back as it commits.
    assert len(decided) == 1


def test_a_transaction_has_its_record_before_it_begins():
    """And costs no sync of its own behind another one."""

    async def main():
        store = ForgetfulStore()
        log = DecisionLog(store, Environment().ids)
        log.open()
        first = await log.begin(NAME)
        assert log.undecided == (first,)
        await log.decide(first)
        synced = dict(store.synced)
        second = await log.begin(NAME)
        assert store.synced == synced
        after = DecisionLog(store.killed(), Environment().ids)
        after.open()
        return first, second, after

    first, second, after = asyncio.run(main())

    assert after.decided == (first,)
    assert after.undecided == (second,)
