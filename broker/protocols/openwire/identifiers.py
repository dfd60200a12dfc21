"""Ids of OpenWire: of connections, sessions, producers, consumers, messages and transactions.

The text of each is what Artemis stores and shows: `ID:host-1-2-0:1`, `…:1:1`, `…:1:1:1:5`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from broker.protocols.openwire.fields import DataType, Kind, field

__all__ = [
    "BrokerId",
    "ConnectionId",
    "ConsumerId",
    "LocalTransactionId",
    "MessageId",
    "ProducerId",
    "SessionId",
    "TransactionId",
    "XATransactionId",
]


# Ids of producers come again with each of their messages: so many are remembered, of that size.
_KNOWN_MAX: Final = 1024
_KNOWN_SIZE_MAX: Final = 256


@dataclass(slots=True, unsafe_hash=True)
class ConnectionId(DataType):
    """Of a connection."""

    value: str | None = field(Kind.STRING)

    def __str__(self) -> str:
        return self.value or ""


@dataclass(slots=True, unsafe_hash=True)
class SessionId(DataType):
    """Of a session of a connection."""

    connection_id: str | None = field(Kind.STRING)
    value: int = field(Kind.LONG)

    def __str__(self) -> str:
        return f"{self.connection_id}:{self.value}"


@dataclass(slots=True, unsafe_hash=True)
class ConsumerId(DataType):
    """Of a consumer of a session."""

    connection_id: str | None = field(Kind.STRING)
    session_id: int = field(Kind.LONG)
    value: int = field(Kind.LONG)

    def __str__(self) -> str:
        return f"{self.connection_id}:{self.session_id}:{self.value}"


@dataclass(slots=True, unsafe_hash=True)
class ProducerId(DataType):
    """Of a producer of a session."""

    connection_id: str | None = field(Kind.STRING)
    value: int = field(Kind.LONG)
    session_id: int = field(Kind.LONG)

    def __str__(self) -> str:
        return f"{self.connection_id}:{self.session_id}:{self.value}"

    @classmethod
    def of(cls, text: str) -> ProducerId:
        """Read the text of one; a text that is none is that of a connection (ProducerId.java).

        What it gives may be others' as well: it must not be changed.
        """
        return _known_producer(text) if len(text) <= _KNOWN_SIZE_MAX else _producer(text)


@dataclass(slots=True, unsafe_hash=True)
class BrokerId(DataType):
    """Of a broker."""

    value: str | None = field(Kind.STRING)


@dataclass(slots=True, unsafe_hash=True)
class MessageId(DataType):
    """Of a message: its producer's, and its number there."""

    text_view: str | None = field(Kind.STRING, since=10)
    producer_id: ProducerId | None = field(Kind.CACHED)
    producer_sequence_id: int = field(Kind.LONG)
    broker_sequence_id: int = field(Kind.LONG)

    def __str__(self) -> str:
        if self.text_view is not None:
            return self.text_view if self.text_view.startswith("ID:") else f"ID:{self.text_view}"
        return f"{self.producer_id}:{self.producer_sequence_id}"

    @classmethod
    def of(cls, text: str) -> MessageId:
        """Read the text of one; what was not made by a producer stays a text."""
        producer, separator, sequence = text.rpartition(":")
        number = _number(sequence)
        if not separator or number is None:
            return cls(text_view=text, producer_id=ProducerId(""))
        return cls(producer_id=ProducerId.of(producer), producer_sequence_id=number)


@dataclass(slots=True, unsafe_hash=True)
class LocalTransactionId(DataType):
    """Of a transaction of one session."""

    value: int = field(Kind.LONG)
    connection_id: ConnectionId | None = field(Kind.CACHED)

    def __str__(self) -> str:
        return f"TX:{self.connection_id}:{self.value}"


@dataclass(slots=True, unsafe_hash=True)
class XATransactionId(DataType):
    """Of a branch of a transaction manager."""

    format_id: int = field(Kind.INT)
    global_transaction_id: bytes | None = field(Kind.BYTES)
    branch_qualifier: bytes | None = field(Kind.BYTES)

    def __str__(self) -> str:
        branch, whole = self.branch_qualifier or b"", self.global_transaction_id or b""
        return f"XID:[{self.format_id},globalId={whole.hex()},branchId={branch.hex()}]"


def _producer(text: str) -> ProducerId:
    parts = text.rsplit(":", 2)
    if len(parts) == 3:
        session, value = _number(parts[1]), _number(parts[2])
        if session is not None and value is not None:
            return ProducerId(parts[0], value, session)
    return ProducerId(text, 0, 0)


_known_producer: Final = lru_cache(maxsize=_KNOWN_MAX)(_producer)

TransactionId: TypeAlias = LocalTransactionId | XATransactionId


def _number(text: str) -> int | None:
    if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > 20:
        return None
    value = int(text) if text.count("-") <= text.startswith("-") else 2**63
    return value if -(2**63) <= value < 2**63 else None
