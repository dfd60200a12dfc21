"""What goes wrong on an OpenWire connection, and the exception that its client is told by name."""

from __future__ import annotations

from typing import Final

from broker.errors import BrokerError, ErrorCode

__all__ = [
    "ILLEGAL_STATE",
    "INVALID_CLIENT_ID",
    "INVALID_DESTINATION",
    "IO_ERROR",
    "OpenWireError",
    "java_class",
]

ILLEGAL_STATE: Final = "javax.jms.IllegalStateException"
INVALID_CLIENT_ID: Final = "javax.jms.InvalidClientIDException"
INVALID_DESTINATION: Final = "javax.jms.InvalidDestinationException"
IO_ERROR: Final = "java.io.IOException"
_JMS_ERROR: Final = "javax.jms.JMSException"
# Clients make an exception of a class by its name: only those that each of them has are told.
_CLASSES: Final = {
    ErrorCode.SECURITY_EXCEPTION: "javax.jms.JMSSecurityException",
    ErrorCode.INVALID_FILTER_EXPRESSION: "javax.jms.InvalidSelectorException",
    ErrorCode.QUEUE_DOES_NOT_EXIST: INVALID_DESTINATION,
    ErrorCode.ADDRESS_DOES_NOT_EXIST: INVALID_DESTINATION,
    ErrorCode.ADDRESS_FULL: "javax.jms.ResourceAllocationException",
    ErrorCode.ILLEGAL_STATE: ILLEGAL_STATE,
    ErrorCode.TRANSACTION_ROLLED_BACK: "javax.jms.TransactionRolledBackException",
}


class OpenWireError(Exception):
    """A command that is refused, or bytes that are not one.

    Attributes:
        text: for people.
        java_class: of the exception that the client throws.
        closes: the connection ends behind the answer.
    """

    def __init__(self, text: str, java_class: str = ILLEGAL_STATE, *, closes: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.java_class = java_class
        self.closes = closes


def java_class(error: BrokerError) -> str:
    """Give the class of exception that a refusal of the broker is at a client."""
    return _CLASSES.get(error.code, _JMS_ERROR)
