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
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from broker.bridges.jms.errors import BridgeConfigError, ProviderError
from broker.bridges.jms.mode import Mode
from broker.bridges.jms.providers import SessionKind, TwoPhaseSession
from broker.bridges.jms.transactions import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import (
        Connection,
        Destination,
        Receiver,
        Sender,
        Session,
        Subscription,
    )
    from broker.bridges.jms.transactions import Transaction, TransactionManager

__all__ = ["TRANSACTION_MAX_S", "Ends", "Transfer", "duplicate_id", "open_transfer"]

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
        receiver: of the source.
        source_session: that it belongs to.
    """

    receiver: Receiver
    source_session: Session

    async def begin(self, *, is_empty: bool) -> None:
        """Make ready to receive. Idempotent.

        Args:
            is_empty: no message of a batch is in hand.
        """

    async def move(self, messages: Sequence[JMSMessage]) -> None:
        """Move the messages received since the last call; all of them.

        Returns once they count at the target and are gone at the source. Any error leaves them to
        the mode: they are lost, come again, or are decided by the transaction manager's recovery.
        """

    async def undo(self) -> None:
        """Leave no transaction open of messages that were received and are not moved."""


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
        return await _TwoPhase.open(ends, transactions)
    is_transacted = mode is not Mode.DUPLICATE_IDS and batch_size > 1
    target = await ends.target.session(
        SessionKind.TRANSACTED if is_transacted else SessionKind.AUTO
    )
    sender = await target.sender(ends.target_destination)
    # Last: from here on messages come.
    source = await ends.source.session(SessionKind.CLIENT)
    receiver = await ends.receiver(source)
    if mode is Mode.DUPLICATE_IDS:
        node_id = ends.source.capabilities.node_id
        assert node_id is not None, "choose_mode() has seen it"
        return _DuplicateIds(source, receiver, target, sender, node_id)
    kind = _SendLast if mode is Mode.SEND_LAST else _AcknowledgeLast
    return kind(source, receiver, target, sender, is_transacted=is_transacted)


class _Local:
    """Source and target in one transaction of one session."""

    def __init__(self, session: Session, receiver: Receiver, sender: Sender) -> None:
        self.source_session = session
        self.receiver = receiver
        self._sender = sender

    async def begin(self, *, is_empty: bool) -> None:
        """Nothing: a commit begins the next transaction."""

    async def move(self, messages: Sequence[JMSMessage]) -> None:
        """Send and commit."""
        for message in messages:
            await self._sender.send(message)
        await self._sender.confirmed()
        await self.source_session.commit()

    async def undo(self) -> None:
        """Nothing: the session's end rolls back."""


class _TwoSessions:
    """A session that receives and one that sends."""

    def __init__(
        self,
        source: Session,
        receiver: Receiver,
        target: Session,
        sender: Sender,
        *,
        is_transacted: bool,
    ) -> None:
        self.source_session = source
        self.receiver = receiver
        self._target = target
        self._sender = sender
        self._is_transacted = is_transacted

    async def begin(self, *, is_empty: bool) -> None:
        """Nothing."""

    async def undo(self) -> None:
        """Nothing: the sessions' end does it."""

    async def _send(self, messages: Sequence[JMSMessage]) -> None:
        for message in messages:
            await self._sender.send(message)
        await self._sender.confirmed()
        if self._is_transacted:
            await self._target.commit()


class _SendLast(_TwoSessions):
    """AT_MOST_ONCE."""

    async def move(self, messages: Sequence[JMSMessage]) -> None:
        """Acknowledge, then send: nothing that is sent can come again."""
        await self.source_session.acknowledge()
        await self._send(messages)


class _AcknowledgeLast(_TwoSessions):
    """DUPLICATES_OK."""

    async def move(self, messages: Sequence[JMSMessage]) -> None:
        """Send, then acknowledge: nothing that is acknowledged can be missing."""
        await self._send(messages)
        await self.source_session.acknowledge()


class _DuplicateIds(_TwoSessions):
    """ONCE_AND_ONLY_ONCE: as DUPLICATES_OK, and the target drops what comes again.

    Not in a transaction of the target: there a known id would undo the whole batch, while a send of
    its own is dropped alone.
    """

    def __init__(
        self, source: Session, receiver: Receiver, target: Session, sender: Sender, node_id: str
    ) -> None:
        super().__init__(source, receiver, target, sender, is_transacted=False)
        self._node_id = node_id

    async def move(self, messages: Sequence[JMSMessage]) -> None:
        """Send with ids, then acknowledge."""
        for message in messages:
            if message.position is None:
                raise ProviderError("the source gave a message without a position")
            message.duplicate_id = duplicate_id(self._node_id, message.position)
        await self._send(messages)
        await self.source_session.acknowledge()


class _TwoPhase:
    """ONCE_AND_ONLY_ONCE by a distributed transaction."""

    def __init__(
        self,
        source: TwoPhaseSession,
        receiver: Receiver,
        target: TwoPhaseSession,
        sender: Sender,
        manager: TransactionManager,
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

    @classmethod
    async def open(cls, ends: Ends, manager: TransactionManager) -> _TwoPhase:
        """Open both sessions, and end what an earlier connection has left."""
        target = await ends.target.session(SessionKind.TWO_PHASE)
        source = await ends.source.session(SessionKind.TWO_PHASE)
        assert isinstance(source, TwoPhaseSession), "its capabilities say so"
        assert isinstance(target, TwoPhaseSession), "its capabilities say so"
        wait_s = await manager.recover({Role.SOURCE: source, Role.TARGET: target})
        sender = await target.sender(ends.target_destination)
        made = cls(source, await ends.receiver(source), target, sender, manager)
        made._recover_behind(wait_s)
        return made

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

    async def move(self, messages: Sequence[JMSMessage]) -> None:
        """Send, and commit both sides."""
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


def duplicate_id(node_id: str, position: bytes) -> bytes:
    """Give the id by which a target knows a message again; 32 bytes.

    A function of the source's node, its queue and the message alone: a retry, a restarted bridge
    and a second bridge on the same queue make the same one.

    Args:
        node_id: of the source.
        position: of the message there, with its queue.

    >>> duplicate_id("n", b"q 1") == duplicate_id("n", b"q 1")
    True
    """
    return hashlib.sha256(node_id.encode() + b"\0" + position).digest()
