"""Transactions that a peer declares on a link to the coordinator: local ones, of its connection.

    declare ─▶ id ─▶ transfers and dispositions that name it, on any session ─▶ discharge

OASIS AMQP 1.0, part 4. A transaction of which something was refused can only be rolled back. All
end with the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proton import Condition, Delivery, Described
from proton import Message as EngineMessage

from broker.errors import BrokerError
from broker.protocols.amqp.conditions import DECODE_ERROR, AmqpError
from broker.protocols.amqp.links import OurLink
from broker.protocols.amqp.termini import symbols, value_of
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from proton import Receiver

    from broker.environment import Ids
    from broker.protocols.amqp.deliveries import EngineDelivery
    from broker.protocols.amqp.links import LinkConnection
    from broker.sessions.session import Session
    from broker.transactions.transaction import Transaction

__all__ = [
    "ACCEPTED_CODE",
    "CAPABILITIES",
    "TRANSACTIONAL",
    "CoordinatorLink",
    "OpenTransaction",
    "Outcome",
    "Transactions",
    "outcome_of",
    "transaction_id",
]

CAPABILITIES: Final = (
    "amqp:local-transactions",
    "amqp:multi-txns-per-ssn",
    "amqp:multi-ssns-per-txn",
)
TRANSACTIONAL: Final = 0x34
ACCEPTED_CODE: Final = 0x24
_REJECTED: Final = "amqp:rejected:list"
_DECLARE, _DISCHARGE, _DECLARED = 0x31, 0x32, 0x33
_SYMBOLS: Final = {
    "amqp:declare:list": _DECLARE,
    "amqp:discharge:list": _DISCHARGE,
    "amqp:accepted:list": ACCEPTED_CODE,
    _REJECTED: 0x25,
    "amqp:released:list": 0x26,
    "amqp:modified:list": 0x27,
}
_UNKNOWN_ID: Final = "amqp:transaction:unknown-id"
_ROLLBACK: Final = "amqp:transaction:rollback"
# Of one connection; each keeps what it has locked.
OPEN_MAX: Final = 10_000
_MESSAGE_SIZE_MAX: Final = 64 * 1024


def _code(descriptor: object) -> int | None:
    if isinstance(descriptor, int):
        return int(descriptor)
    return _SYMBOLS.get(str(descriptor))


def _state(delivery: EngineDelivery) -> list[Any]:
    data = delivery.remote.data
    return data if isinstance(data, list) else []


def transaction_id(delivery: EngineDelivery) -> bytes:
    """Give the id in a delivery's transactional state; empty where it has none."""
    state = _state(delivery)
    found = state[0] if state else None
    return bytes(found) if isinstance(found, bytes | memoryview) else b""


class Outcome(NamedTuple):
    """What a peer says of a message that it was sent.

    Attributes:
        code: of the outcome; 0 where it says none.
        is_failed: of modified: the delivery counts.
        is_undeliverable: of modified: this link does not get it again.
    """

    code: int
    is_failed: bool = False
    is_undeliverable: bool = False


def outcome_of(delivery: EngineDelivery) -> Outcome:
    """Give the outcome in a delivery's transactional state."""
    state = _state(delivery)
    found = state[1] if len(state) > 1 else None
    if not isinstance(found, Described):
        return Outcome(0)
    # Those at the end that are null may be left out.
    fields = [one is True for one in found.value] if isinstance(found.value, list) else []
    is_failed, is_undeliverable = [*fields, False, False][:2]
    return Outcome(_code(found.descriptor) or 0, is_failed, is_undeliverable)


class OpenTransaction:
    """One that was declared.

    Args:
        id: that the peer names it by.
        transaction: of the broker.
        session: that ends it.

    Attributes:
        at_commit: called when it commits, before that is recorded.
        at_end: called when it has ended, with whether it was committed.
    """

    __slots__ = ("at_end", "error", "id", "session", "transaction")

    def __init__(self, id: bytes, transaction: Transaction, session: Session) -> None:
        self.id = id
        self.transaction = transaction
        self.session = session
        self.at_end: list[Callable[[bool], object]] = []
        self.error: AmqpError | None = None

    def fail(self, error: Exception) -> None:
        """Something in it was refused: it can only be rolled back."""
        if self.error is None:
            text = error.text if isinstance(error, AmqpError | BrokerError) else str(error)
            self.error = AmqpError(_ROLLBACK, text)


class Transactions:
    """Of one connection.

    Args:
        ids: name them.
    """

    __slots__ = (
        "_ids",
        "_open",
    )

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._open: dict[bytes, OpenTransaction] = {}

    def declare(self, session: Session) -> OpenTransaction:
        """Begin one.

        Raises:
            AmqpError: too many are open.
        """
        if len(self._open) >= OPEN_MAX:
            raise AmqpError("amqp:resource-limit-exceeded", f"{OPEN_MAX} transactions are open")
        id = str(self._ids.random_uuid()).encode()
        made = self._open[id] = OpenTransaction(id, session.transactions.begin(), session)
        return made

    def find(self, id: bytes) -> OpenTransaction:
        """Give one that is open.

        Raises:
            AmqpError: there is none of that id.
        """
        found = self._open.get(id)
        if found is None:
            raise AmqpError(
                _UNKNOWN_ID, f"AMQ119014: Transaction not found: xid={id.decode(errors='replace')}"
            )
        return found

    def discharge(
        self,
        id: bytes,
        session: Session,
        done: Callable[[Exception | None], object],
        *,
        fails: bool,
    ) -> None:
        """End one; `done` is called once that is durable.

        Raises:
            AmqpError: there is none of that id, or it could only be rolled back, and was.
        """
        found = self.find(id)
        del self._open[id]
        if fails:
            self._roll_back(found, session)
            session.context.after(done)
            return
        if found.error is not None:
            self._roll_back(found, session)
            raise found.error

        def committed(error: Exception | None) -> None:
            if error is None:
                for callback in found.at_end:
                    callback(True)
            done(error)

        try:
            session.transactions.end(found.transaction, committed)
        except (BrokerError, JournalError) as error:
            self._roll_back(found, session)
            text = error.text if isinstance(error, BrokerError) else str(error)
            raise AmqpError(_ROLLBACK, text) from error

    def _roll_back(self, found: OpenTransaction, session: Session) -> None:
        session.transactions.abandon(found.transaction)
        for callback in found.at_end:
            callback(False)

    def close(self) -> None:
        """The connection ends: all are rolled back."""
        while self._open:
            _, found = self._open.popitem()
            found.at_end.clear()
            self._roll_back(found, found.session)


class CoordinatorLink(OurLink):
    """A link on which a peer declares and discharges transactions.

    Args:
        connection: it is on.
        session: of the link.
        link: of the engine.
        credits: how many requests may be on their way.
    """

    def __init__(
        self, connection: LinkConnection, session: Session, link: Receiver, credits: int
    ) -> None:
        super().__init__(connection, session)
        self._link = link
        self._credits = credits
        self._data = b""
        outcomes = symbols(value_of(link.remote_source.outcomes))
        self._knows_rejected = not outcomes or _REJECTED in outcomes

    def top_up(self) -> None:
        """Give credit for as many requests as there may be."""
        missing = self._credits - self._link.credit
        if missing > self._credits // 2:
            self._link.flow(missing)
            self._connection.flush_later()

    def flow(self) -> None:
        """The peer says what it has."""
        self.top_up()

    def updated(self, delivery: EngineDelivery) -> None:
        """Do what a message asks for.

        Raises:
            AmqpError: it is larger than any request, or is refused to a peer without rejected.
        """
        if delivery.aborted or not delivery.readable:
            return
        self._data += self._link.recv(delivery.pending) or b""
        if len(self._data) > _MESSAGE_SIZE_MAX:
            raise AmqpError(DECODE_ERROR, "a request that is too large")
        if delivery.partial:
            return
        data, self._data = self._data, b""
        self._link.advance()
        try:
            self._do(delivery, data)
        except AmqpError as error:
            if not self._knows_rejected:
                # Then the detach says it.
                raise
            delivery.local.condition = Condition(error.condition, error.text)
            self._settle(delivery, Delivery.REJECTED)
        self.top_up()

    def _do(self, delivery: EngineDelivery, data: bytes) -> None:
        request = EngineMessage()
        try:
            request.decode(data)
        except Exception as error:
            raise AmqpError(DECODE_ERROR, f"a request that cannot be decoded: {error}") from error
        body = request.body
        code = _code(body.descriptor) if isinstance(body, Described) else None
        if code == _DECLARE:
            made = self._connection.transactions.declare(self.session)
            delivery.local.data = [made.id]
            self._settle(delivery, _DECLARED)
        elif code == _DISCHARGE:
            self._discharge(delivery, body.value)
        else:
            raise AmqpError(DECODE_ERROR, "a request that is neither declare nor discharge")

    def _discharge(self, delivery: EngineDelivery, fields: object) -> None:
        id = fields[0] if isinstance(fields, list) and fields else None
        if not isinstance(id, bytes | memoryview):
            raise AmqpError(DECODE_ERROR, "a discharge without a transaction's id")
        fails = isinstance(fields, list) and len(fields) > 1 and fields[1] is True
        self._connection.transactions.discharge(
            bytes(id),
            self.session,
            lambda error: self._discharged(error, delivery),
            fails=fails,
        )

    def _discharged(self, error: Exception | None, delivery: EngineDelivery) -> None:
        if error is None and not self.is_closed:
            self._settle(delivery, Delivery.ACCEPTED)

    def _settle(self, delivery: EngineDelivery, state: int) -> None:
        delivery.update(state)
        delivery.settle()
        self._connection.flush_later()
