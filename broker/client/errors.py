"""What can go wrong for a client of a broker.

ClientError
├── BrokerRefused            the broker said no; `code` says why
│   ├── QueueMissing  QueueExists  SecurityRefused  AddressFull  DuplicateId  TransactionRolledBack
│   └── XaRefused            `code` is that of the XA standard
├── NotConnected             no broker could be reached, or the connection is lost for good
├── CallInterrupted          the connection was lost while waiting: done or not is unknown
├── CallTimeout              no answer in time
├── AnswerTimeout            the same, of a question that was sent as a message
├── TransactionOutcomeUnknown  the same, of a commit
└── ClosedError              used after it was closed
"""

from __future__ import annotations

from typing import Final

from broker.errors import ErrorCode


class ClientError(Exception):
    """Base of all errors of this package.

    Attributes:
        code: the protocol's number for it.
    """

    code: int = ErrorCode.GENERIC_EXCEPTION


class BrokerRefused(ClientError):
    """The broker refused a request; nothing was done."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class QueueMissing(BrokerRefused):
    """The queue does not exist."""


class QueueExists(BrokerRefused):
    """A queue of that name exists."""


class SecurityRefused(BrokerRefused):
    """The user is unknown, or lacks a permission."""


class AddressFull(BrokerRefused):
    """The address is full, and its policy is to fail."""


class DuplicateId(BrokerRefused):
    """A transaction had a message whose duplicate id was accepted before; it was rolled back.

    Of commit() and xa_prepare(). Outside of a transaction the broker drops such a message, logs
    AMQ222059, and its sender gets no error.
    """


class TransactionRolledBack(BrokerRefused):
    """Something in the transaction failed; it was rolled back whole."""


class XaRefused(BrokerRefused):
    """An XA request failed; `code` is the XA standard's, such as XAER_NOTA, -4."""


class NotConnected(ClientError, ConnectionError):
    """No broker could be reached, or the connection is lost and no attempt is left."""

    code = ErrorCode.NOT_CONNECTED


class CallInterrupted(ClientError):
    """The connection was lost before the answer; the broker may or may not have done it."""

    code = ErrorCode.UNBLOCKED


def interrupted() -> CallInterrupted:
    """Give the error of a call that had no answer when its connection was lost."""
    return CallInterrupted("the connection was lost before the broker answered")


class CallTimeout(ClientError, TimeoutError):
    """The broker did not answer in time; its connection is given up."""

    code = ErrorCode.CONNECTION_TIMEDOUT


class AnswerTimeout(ClientError, TimeoutError):
    """No message came as an answer in time; the responder may still be working on it."""

    code = ErrorCode.CONNECTION_TIMEDOUT


class TransactionOutcomeUnknown(ClientError):
    """The connection was lost during a commit; check before doing the work again."""

    code = ErrorCode.TRANSACTION_OUTCOME_UNKNOWN


class ClosedError(ClientError):
    """The client, session, producer or consumer is closed."""

    code = ErrorCode.OBJECT_CLOSED


_BY_CODE: Final[dict[int, type[BrokerRefused]]] = {
    ErrorCode.QUEUE_DOES_NOT_EXIST: QueueMissing,
    ErrorCode.QUEUE_EXISTS: QueueExists,
    ErrorCode.SECURITY_EXCEPTION: SecurityRefused,
    ErrorCode.ADDRESS_FULL: AddressFull,
    ErrorCode.DUPLICATE_ID_REJECTED: DuplicateId,
    ErrorCode.TRANSACTION_ROLLED_BACK: TransactionRolledBack,
}


def refused(code: int, message: str | None) -> BrokerRefused:
    """Give the error for an EXCEPTION of the broker."""
    kind = _BY_CODE.get(code, BrokerRefused)
    return kind(code, message or ErrorCode(code).name)
