"""What a refusal is called in AMQP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DECODE_ERROR",
    "DETACH_FORCED",
    "FORCED",
    "ILLEGAL_STATE",
    "INTERNAL_ERROR",
    "INVALID_FIELD",
    "NOT_ALLOWED",
    "NOT_FOUND",
    "REDIRECT",
    "RESOURCE_DELETED",
    "UNAUTHORIZED",
    "AmqpError",
    "of_attach",
    "of_delivery",
]

DECODE_ERROR: Final = "amqp:decode-error"
FORCED: Final = "amqp:connection:forced"
REDIRECT: Final = "amqp:connection:redirect"
DETACH_FORCED: Final = "amqp:link:detach-forced"
ILLEGAL_STATE: Final = "amqp:illegal-state"
INTERNAL_ERROR: Final = "amqp:internal-error"
INVALID_FIELD: Final = "amqp:invalid-field"
NOT_ALLOWED: Final = "amqp:not-allowed"
NOT_FOUND: Final = "amqp:not-found"
RESOURCE_DELETED: Final = "amqp:resource-deleted"
RESOURCE_LIMIT: Final = "amqp:resource-limit-exceeded"
UNAUTHORIZED: Final = "amqp:unauthorized-access"
_FAILED: Final = "failed"
_OF_CODES: Final = {
    ErrorCode.QUEUE_DOES_NOT_EXIST: NOT_FOUND,
    ErrorCode.ADDRESS_DOES_NOT_EXIST: NOT_FOUND,
    ErrorCode.SECURITY_EXCEPTION: UNAUTHORIZED,
    ErrorCode.INVALID_FILTER_EXPRESSION: INVALID_FIELD,
    ErrorCode.UNEXPECTED_ROUTING_TYPE_FOR_ADDRESS: ILLEGAL_STATE,
    ErrorCode.ILLEGAL_STATE: ILLEGAL_STATE,
    ErrorCode.INVALID_TRANSIENT_QUEUE_USE: ILLEGAL_STATE,
    ErrorCode.ADDRESS_FULL: RESOURCE_LIMIT,
    ErrorCode.SESSION_CREATION_REJECTED: RESOURCE_LIMIT,
}


class AmqpError(Exception):
    """A request that is refused; what it asked for did not happen.

    Attributes:
        condition: symbol of the error.
        text: for people.
        info: of the error, for the peer; None for none.
    """

    def __init__(
        self, condition: str, text: str, info: Mapping[object, object] | None = None
    ) -> None:
        super().__init__(text)
        self.info = info
        self.condition = condition
        self.text = text


def of_attach(error: BrokerError) -> AmqpError:
    """Give the error of a link that cannot be attached."""
    return AmqpError(_OF_CODES.get(error.code, INTERNAL_ERROR), error.text)


def of_delivery(error: Exception) -> AmqpError:
    """Give the error of a message that is not taken."""
    if isinstance(error, BrokerError):
        if error.code is ErrorCode.SECURITY_EXCEPTION:
            return AmqpError(UNAUTHORIZED, error.text)
        if error.code is ErrorCode.ADDRESS_FULL:
            return AmqpError(RESOURCE_LIMIT, error.text)
        return AmqpError(_FAILED, error.text)
    if isinstance(error, AmqpError):
        return error
    return AmqpError(_FAILED, str(error))
