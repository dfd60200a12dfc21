"""Transactions of one connection: local ones by their id there, XA in the broker's.

    BEGIN ─▶ sends at once, acknowledgements kept ─▶ COMMIT: these too, then the commit
                                                 └▶ ROLLBACK: their messages stay with the consumer

A client of Classic gives what it rolls back to its listeners again by itself. So an acknowledgement
is recorded when its transaction is prepared or committed, or its consumer ends: until then the
message is with the consumer, whichever way it is decided. What is poison becomes a dead letter
behind the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import BrokerError
from broker.model.xid import Xid
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.identifiers import LocalTransactionId, XATransactionId
from broker.transactions.xa import XaCode, XaError
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.model.properties import Property
    from broker.protocols.openwire.consumers import Delivery, Part
    from broker.protocols.openwire.identifiers import TransactionId
    from broker.sessions.session import Session
    from broker.storage.context import After
    from broker.transactions.transaction import Transaction

__all__ = ["OpenTransaction", "Transactions", "xa_error"]

# Open at a time on one connection.
_OPEN_MAX: Final = 10_000
_XA_EXCEPTION: Final = "javax.transaction.xa.XAException"


class _Kept(NamedTuple):
    """An acknowledgement that is not recorded yet.

    Attributes:
        part: of the consumer.
        number: of the delivery there.
        poison: properties of a dead letter; None of a message that was consumed.
    """

    part: Part
    number: int
    poison: Collection[Property] | None


class OpenTransaction:
    """One that has begun.

    Attributes:
        tx: of the session's API.
        kept: acknowledgements that are not recorded yet.
    """

    __slots__ = ("kept", "tx")

    def __init__(self, tx: Transaction) -> None:
        self.tx = tx
        self.kept: list[_Kept] = []

    def keep(self, part: Part, number: int, poison: Collection[Property] | None) -> None:
        """Acknowledge a delivery when it ends; or, with `poison`, let it be a dead letter then."""
        part.deferred[number] = part.open.pop(number)
        self.kept.append(_Kept(part, number, poison))

    def record(self, of: Part | None = None) -> None:
        """Record acknowledgements, all or those of one part; not of what is to be a dead letter.

        Raises:
            BrokerError: one is refused: the transaction can only be rolled back.
        """
        kept, self.kept = self.kept, []
        counts: dict[Part, int] = {}
        for one in kept:
            part = one.part
            if one.poison is not None or (of is not None and part is not of):
                self.kept.append(one)
                continue
            delivery = part.deferred.pop(one.number)
            self._acknowledge(part, delivery)
            counts[part] = counts.get(part, 0) + 1
        for part, count in counts.items():
            part.owner.settled(count)

    def reject(self, session: Session) -> Session:
        """Move what is poison, behind a commit by `session`; the session to wait for that by."""
        kept, self.kept = self.kept, []
        for part, number, poison in kept:
            delivery = part.deferred.pop(number)
            if not part.consumer.is_closed:
                part.reject(delivery, poison or (), _nothing)
                part.owner.settled(1)
                session = part.owner.session
        return session

    def _acknowledge(self, part: Part, delivery: Delivery) -> None:
        consumer = part.consumer
        if consumer.is_closed:
            return
        session = part.owner.session
        with session.transactions.within(self.tx):
            session.accept_acknowledgement(consumer.consumer_id, delivery.message_id, True)

    def give_back(self, of: Part | None = None) -> None:
        """What is kept, all or of one part, is with its consumers again, in order."""
        kept, self.kept = self.kept, []
        if of is not None:
            self.kept = [one for one in kept if one.part is not of]
            kept = [one for one in kept if one.part is of]
        for part in {one.part for one in kept}:
            numbers = [one.number for one in kept if one.part is part]
            part.open |= {number: part.deferred.pop(number) for number in numbers}
            part.open = dict(sorted(part.open.items()))
            part.seen.update(numbers)


class Transactions:
    """See the module's text.

    Args:
        session: that ends them; it has no consumers.
    """

    __slots__ = (
        "_open",
        "_session",
    )

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[TransactionId, OpenTransaction] = {}

    def begin(self, id: TransactionId) -> None:
        """Begin one, or go on with it.

        Raises:
            OpenWireError: there are too many.
            XaError: it is an XA one that cannot be begun.
        """
        if id in self._open:
            return
        if len(self._open) >= _OPEN_MAX:
            raise OpenWireError(f"a connection may have {_OPEN_MAX} transactions open")
        if isinstance(id, LocalTransactionId):
            self._open[id] = OpenTransaction(self._session.transactions.begin())
            return
        xid = _xid(id)
        xa = self._session.xa
        try:
            xa.start(xid)
            xa.end(xid, has_failed=False)
        except XaError as error:
            # Another session of the client works for it, or did before a failover.
            if error.code is not XaCode.DUPLICATE_XID:
                raise
        self._open[id] = OpenTransaction(xa.transaction(xid))

    def find(self, id: TransactionId) -> OpenTransaction:
        """Give an open one.

        Raises:
            OpenWireError: it has not begun.
        """
        found = self._open.get(id)
        if found is None:
            raise OpenWireError(f"Transaction not started, {id}")
        return found

    def prepare(self, id: TransactionId, done: After, *arguments: object) -> None:
        """Let it survive until it is decided; `done(error, *arguments)` once that is durable.

        Raises:
            OpenWireError: it has not begun.
            BrokerError: something of it was refused.
        """
        self.find(id).record()
        assert isinstance(id, XATransactionId), "the caller has looked"
        self._session.xa.prepare(_xid(id), done, *arguments)

    def commit(self, id: TransactionId, one_phase: bool, done: After, *arguments: object) -> None:
        """Let it count; `done(error, *arguments)` once that is durable.

        Raises:
            OpenWireError: it has not begun.
            BrokerError: something of it was refused: it is rolled back.
        """
        if isinstance(id, XATransactionId):
            branch = self._open.get(id)
            if branch is not None:
                branch.record()
            if branch is None or not branch.kept:
                self._session.xa.commit(_xid(id), one_phase, done, *arguments)
            else:
                self._session.xa.commit(_xid(id), one_phase, _nothing)
                branch.reject(self._session).context.then(done, arguments)
            self._open.pop(id, None)
            return
        found = self.find(id)
        del self._open[id]
        try:
            found.record()
            if not found.kept:
                self._session.transactions.end(found.tx, done, *arguments)
            else:
                self._session.transactions.end(found.tx, _nothing)
                found.reject(self._session).context.then(done, arguments)
        except (BrokerError, JournalError):
            # What was recorded of it goes back to its queues: the client has it no more.
            found.give_back()
            self._session.transactions.abandon(found.tx)
            raise

    def rollback(self, id: TransactionId, done: After, *arguments: object) -> None:
        """Let it not count.

        Raises:
            OpenWireError: it has not begun.
            XaError: there is none of that name.
        """
        if isinstance(id, XATransactionId):
            self._session.xa.rollback(_xid(id), done, *arguments)
            found = self._open.pop(id, None)
            if found is not None:
                found.give_back()
            return
        found = self.find(id)
        del self._open[id]
        found.give_back()
        self._session.transactions.abandon(found.tx)
        self._session.context.after(done, *arguments)

    def forget(self, id: XATransactionId, done: After, *arguments: object) -> None:
        """The manager knows what an operator decided.

        Raises:
            XaError: nothing was decided about this one.
        """
        self._session.xa.forget(_xid(id), done, *arguments)

    def in_doubt(self) -> list[XATransactionId]:
        """Give the names of all that wait for a decision."""
        return [
            XATransactionId(one.format_id, one.gtx, one.bq) for one in self._session.xa.in_doubt()
        ]

    def part_ends(self, part: Part) -> None:
        """A consumer ends: what it has acknowledged stays so, if its transaction commits."""
        if part.deferred:
            for one in self._open.values():
                one.record(part)
                one.give_back(part)

    def close(self) -> None:
        """The connection ends: all that is not prepared is rolled back."""
        opened, self._open = self._open, {}
        for id, one in opened.items():
            if isinstance(id, LocalTransactionId):
                self._session.transactions.abandon(one.tx)
                continue
            xid = _xid(id)
            if xid not in self._session.xa.in_doubt():
                try:
                    self._session.xa.rollback(xid, _nothing)
                except XaError:
                    # Ended by its manager on another connection, or for its time.
                    continue


def _xid(id: XATransactionId) -> Xid:
    return Xid(
        format_id=id.format_id, bq=id.branch_qualifier or b"", gtx=id.global_transaction_id or b""
    )


def xa_error(error: XaError) -> OpenWireError:
    """Give the error that a client reads the code of, out of its text."""
    return OpenWireError(f"{error} xaErrorCode:{int(error.code)}", _XA_EXCEPTION)


def _nothing(error: Exception | None) -> None:
    """The connection is gone, or what follows is waited for."""
