"""The name of a distributed transaction."""

from __future__ import annotations

from dataclasses import dataclass

from broker.model.encoding import BYTES, INT
from broker.model.wire import WireRecord, wire

__all__ = ["Xid"]


@dataclass(frozen=True, slots=True)
class Xid(WireRecord):
    """The name of a distributed transaction; also the extra data of a prepare record.

    Attributes:
        format_id: the transaction manager's number.
        bq: branch qualifier.
        gtx: global transaction id, stored behind the branch qualifier.
    """

    format_id: int = wire(INT)
    bq: bytes = wire(BYTES)
    gtx: bytes = wire(BYTES)
