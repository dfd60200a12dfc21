"""One batch from source to target: the order of the steps, for each mode.

    mode              receives in     sends in        order
    LOCAL             TRANSACTED, the same session    send, commit
    SEND_LAST         CLIENT          TRANSACTED¹     acknowledge, send, commit¹
    ACKNOWLEDGE_LAST  CLIENT          TRANSACTED¹     send, commit¹, acknowledge
    DUPLICATE_IDS     CLIENT          AUTO            send with ids, wait, acknowledge
    TWO_PHASE         TWO_PHASE       TWO_PHASE       send, then the manager commits both

    ¹ AUTO, without a commit, for batches of one message

If a step fails, the bridge closes both connections: what was not acknowledged comes again, with the
same duplicate id. Nothing is retried within a connection, since its outcome there is not known.

Each batch is moved to its end here before the next is received. Where both sides can do more, the
modes are those of pipelined.py and pipelined_two_phase.py, with the same order; but for LOCAL.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from broker.bridges.jms.coordinator import Coordinator
from broker.bridges.jms.duplicate_ids import give_ids
from broker.bridges.jms.errors import BridgeConfigError
from broker.bridges.jms.mode import Mode
from broker.bridges.jms.pipelined import PipelinedAcknowledgeLast, PipelinedSendLast
from broker.bridges.jms.pipelined_two_phase import PipelinedTwoPhase
from broker.bridges.jms.providers import (
    BatchReceiver,
    BatchSession,
    SessionKind,
    TwoPhaseSession,
)
from broker.bridges.jms.transactions import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import (
        Connection,
        Destination,
        Done,
        Receiver,
        Sender,
        Session,
        Subscription,
    )
    from broker.bridges.jms.transactions import Transaction, TransactionManager

__all__ = ["TRANSACTION_MAX_S", "Ends", "Transfer", "open_transfer"]

# How long a distributed transaction may be open for a batch. Brokers roll back those that take
# longer than their transaction-timeout, 300 s in Artemis; of a bridge that is gone, too.
TRANSACTION_MAX_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Both connections, and where messages come from and go to.

    Attributes:
        source: connection to the source.
        target: connection to the target; the same object as `source` in mode LOCAL.
        source_destination: from where.
        target_destination: where to.
        selector: which messages; None is all.
        subscription: durable, on a topic.
    """

    source: Connection
    target: Connection
    source_destination: Destination
    target_destination: Destination
    selector: str | None
    subscription: Subscription | None

    async def receiver(self, session: Session) -> Receiver:
        """Begin to receive in a session of the source."""
        return await session.receiver(self.source_destination, self.selector, self.subscription)


class Transfer(Protocol):
    """Receives and sends, in one mode.

    Attributes:
        begins: whether `begin()` is to be called before messages are received.
        receives_ahead: whether messages may be received that are not of the next `move()`.
        source_session: of the source.
    """

    begins: bool
    receives_ahead: bool
    source_session: Session

    @property
    def receiver(self) -> Receiver:
        """Of that session."""

    async def begin(self, *, is_empty: bool) -> None:
        """Make ready to receive. Idempotent.

        Args:
            is_empty: no message of a batch is in hand.
        """

    async def move(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Move the messages received since the last call; all of them.

        Args:
            messages: one or more.
            done: called in the order of the calls, perhaps before this returns: with None once
                they count at the target and are gone at the source. An error leaves them to the
                mode: they are lost, come again, or are decided by the transaction manager's
                recovery. So do those of later calls.
        """

    async def undo(self) -> None:
        """Leave no transaction open of messages that were received and are not moved."""

    def close(self) -> None:
        """Do nothing more: the connections are about to be closed. Idempotent."""


async def open_transfer(
    mode: Mode, ends: Ends, *, batch_size: int, transactions: TransactionManager | None
) -> Transfer:
    """Open the sessions that a mode needs.

    Args:
        mode: how messages are moved.
        ends: both connections.
        batch_size: messages in a full batch.
        transactions: for mode TWO_PHASE.

    Raises:
        BridgeConfigError: mode TWO_PHASE without a transaction manager.
    """
    if mode is Mode.LOCAL:
        session = await ends.source.session(SessionKind.TRANSACTED)
        sender = await session.sender(ends.target_destination)
        return _Local(session, await ends.receiver(session), sender)
    if mode is Mode.TWO_PHASE:
        if transactions is None:
            raise BridgeConfigError(
                "ONCE_AND_ONLY_ONCE by two-phase commit needs a transaction_manager or a "
                "transaction_log"
            )
        return await _open_two_phase(ends, transactions)
    is_transacted = mode is not Mode.DUPLICATE_IDS and batch_size > 1
    # In a transaction of the target a known id would undo the whole batch, while a send of its own
    # is dropped alone.
    target = await ends.target.session(
        SessionKind.TRANSACTED if is_transacted else SessionKind.AUTO
    )
    source = await ends.source.session(SessionKind.CLIENT)
    node_id = ends.source.capabilities.node_id if mode is Mode.DUPLICATE_IDS else None
    if isinstance(source, BatchSession) and isinstance(target, BatchSession):
        batches = await target.batch_sender(ends.target_destination)
        if batches is not None:
            receiver = await ends.receiver(source)
            assert isinstance(receiver, BatchReceiver), "its session says so"
            if mode is Mode.SEND_LAST:
                return PipelinedSendLast(source, receiver, batches)
            return PipelinedAcknowledgeLast(source, receiver, batches, node_id)
    sender = await target.sender(ends.target_destination)
    sides = _Sides(
        source=source,
        # Last: from here on messages come.
        receiver=await ends.receiver(source),
        target=target,
        sender=sender,
        is_transacted=is_transacted,
    )
    return _SendLast(sides) if mode is Mode.SEND_LAST else _AcknowledgeLast(sides, node_id)


async def _open_two_phase(ends: Ends, manager: TransactionManager) -> _TwoPhase | PipelinedTwoPhase:
    """Open both sessions, and end what an earlier connection has left."""
    target = await ends.target.session(SessionKind.TWO_PHASE)
    source = await ends.source.session(SessionKind.TWO_PHASE)
    assert isinstance(source, TwoPhaseSession), "its capabilities say so"
    assert isinstance(target, TwoPhaseSession), "its capabilities say so"
    resources = {Role.SOURCE: source, Role.TARGET: target}
    wait_s = await manager.recover(resources)
    if isinstance(manager, Coordinator):
        made = await PipelinedTwoPhase.open(ends, manager, resources, wait_s)
        if made is not None:
            return made
    sender = await target.sender(ends.target_destination)
    return _TwoPhase(source, await ends.receiver(source), target, sender, manager, wait_s)


class _OneAtATime:
    """A batch is moved to its end before the next one is received."""

    begins = False
    receives_ahead = False

    async def begin(self, *, is_empty: bool) -> None:
        """Nothing: whatever ends a batch begins the next one."""

    async def move(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Move them; see `Transfer`."""
        try:
            await self._move(messages)
        except Exception as error:  # noqa: BLE001 - a provider may raise anything.
            done(error)
        else:
            done(None)

    async def _move(self, messages: Sequence[JMSMessage]) -> None:
        raise NotImplementedError

    async def undo(self) -> None:
        """Nothing: the sessions' end does it."""

    def close(self) -> None:
        """Nothing."""


class _Local(_OneAtATime):
    """Source and target in one transaction of one session."""

    def __init__(self, session: Session, receiver: Receiver, sender: Sender) -> None:
        self.source_session, self.receiver = session, receiver
        self._sender = sender

    async def _move(self, messages: Sequence[JMSMessage]) -> None:
        for message in messages:
            await self._sender.send(message)
        await self._sender.confirmed()
        await self.source_session.commit()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """A session that receives and one that sends."""

    source: Session
    receiver: Receiver
    target: Session
    sender: Sender
    is_transacted: bool

    async def send(self, messages: Sequence[JMSMessage]) -> None:
        """Send messages; return once they count."""
        for message in messages:
            await self.sender.send(message)
        await self.sender.confirmed()
        if self.is_transacted:
            await self.target.commit()


class _SendLast(_OneAtATime):
    """AT_MOST_ONCE: nothing that is sent can come again."""

    def __init__(self, sides: _Sides) -> None:
        self.source_session, self.receiver = sides.source, sides.receiver
        self._sides = sides

    async def _move(self, messages: Sequence[JMSMessage]) -> None:
        await self.source_session.acknowledge()
        await self._sides.send(messages)


class _AcknowledgeLast(_OneAtATime):
    """DUPLICATES_OK: nothing that is acknowledged can be missing.

    With a node id ONCE_AND_ONLY_ONCE: the target drops what comes again.
    """

    def __init__(self, sides: _Sides, node_id: str | None) -> None:
        self.source_session, self.receiver = sides.source, sides.receiver
        self._sides = sides
        self._node_id = node_id

    async def _move(self, messages: Sequence[JMSMessage]) -> None:
        if self._node_id is not None:
            give_ids(messages, self._node_id)
        await self._sides.send(messages)
        await self.source_session.acknowledge()


class _TwoPhase(_OneAtATime):
    """ONCE_AND_ONLY_ONCE by a distributed transaction."""

    begins = True

    def __init__(
        self,
        source: TwoPhaseSession,
        receiver: Receiver,
        target: TwoPhaseSession,
        sender: Sender,
        manager: TransactionManager,
        recover_s: float | None,
    ) -> None:
        self.source_session: Session = source
        self.receiver = receiver
        self._resources = {Role.SOURCE: source, Role.TARGET: target}
        self._sender = sender
        self._manager = manager
        self._transaction: Transaction | None = None
        self._begun_s = 0.0
        # When something may have turned up that an earlier connection has left.
        self._recover_s = math.inf
        self._recover_behind(recover_s)

    def _recover_behind(self, wait_s: float | None) -> None:
        now_s = asyncio.get_running_loop().time()
        self._recover_s = math.inf if wait_s is None else now_s + wait_s

    async def begin(self, *, is_empty: bool) -> None:
        """Begin a transaction, of which every message received is a part.

        One that has no message is replaced before a broker takes it for forgotten, and when
        recovery is due, which needs sessions without a transaction.
        """
        now_s = asyncio.get_running_loop().time()
        is_due = now_s >= self._recover_s
        if is_empty and (is_due or now_s - self._begun_s > TRANSACTION_MAX_S):
            await self.undo()
        if is_empty and is_due:
            self._recover_behind(await self._manager.recover(self._resources))
        if self._transaction is None:
            self._begun_s = now_s
            self._transaction = await self._manager.begin(self._resources)

    async def _move(self, messages: Sequence[JMSMessage]) -> None:
        assert self._transaction is not None, "begin() was called before the first message"
        for message in messages:
            await self._sender.send(message)
        await self._sender.confirmed()
        transaction, self._transaction = self._transaction, None
        await transaction.commit()

    async def undo(self) -> None:
        """Roll the open transaction back."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            await transaction.rollback()
