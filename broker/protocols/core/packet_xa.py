"""Packets of distributed transactions; session channels, each answered unless it says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from broker.model.encoding import BOOLEAN, INT, LONG, NSTR, Codec, counted
from broker.model.wire import nested
from broker.model.xid import Xid
from broker.protocols.core import versions
from broker.protocols.core.packet import Packet, field
from broker.protocols.core.packet_connection import NO_CORRELATION

XID: Final[Codec[Xid]] = nested(Xid)
# A format id and two lengths.
_XIDS: Final = counted(XID, item_size_min=12)


@dataclass(slots=True)
class XaStart(Packet):
    """The session works for this transaction from now on."""

    types: ClassVar = ((0, 51),)

    xid: Xid = field(XID)


@dataclass(slots=True)
class XaEnd(Packet):
    """The session no longer works for it; `failed` allows nothing but a rollback."""

    types: ClassVar = ((0, 52),)

    xid: Xid = field(XID)
    failed: bool = field(BOOLEAN, default=False)


@dataclass(slots=True)
class XaCommit(Packet):
    """Commits it, with `one_phase` without a prepare before."""

    types: ClassVar = ((0, 53),)

    xid: Xid = field(XID)
    one_phase: bool = field(BOOLEAN, default=False)


@dataclass(slots=True)
class XaPrepare(Packet):
    """Makes it survive anything until its end."""

    types: ClassVar = ((0, 54),)

    xid: Xid = field(XID)


@dataclass(slots=True)
class XaResponse(Packet):
    """How an XA request went; `response_code` is an XA code, or an `ErrorCode`."""

    types: ClassVar = ((0, 55),)

    error: bool = field(BOOLEAN)
    response_code: int = field(INT, default=0)
    message: str | None = field(NSTR, default=None)
    correlation_id: int = field(
        LONG, since=versions.ASYNC_RESPONSE, default=NO_CORRELATION, optional=True
    )


@dataclass(slots=True)
class XaRollback(Packet):
    """Undoes it."""

    types: ClassVar = ((0, 56),)

    xid: Xid = field(XID)


@dataclass(slots=True)
class XaJoin(Packet):
    """As start, for a transaction that another session works for."""

    types: ClassVar = ((0, 57),)

    xid: Xid = field(XID)


@dataclass(slots=True)
class XaSuspend(Packet):
    """The session leaves its transaction for now."""

    types: ClassVar = ((0, 58),)


@dataclass(slots=True)
class XaResume(Packet):
    """It comes back to it."""

    types: ClassVar = ((0, 59),)

    xid: Xid = field(XID)


@dataclass(slots=True)
class XaForget(Packet):
    """A transaction that an operator ended need not be remembered."""

    types: ClassVar = ((0, 60),)

    xid: Xid = field(XID)


@dataclass(slots=True)
class XaFailed(Packet):
    """After a reconnect: what was being done for it is lost. No answer."""

    types: ClassVar = ((0, 39),)

    xid: Xid = field(XID)


@dataclass(slots=True)
class XaInDoubtXids(Packet):
    """Asks for the prepared transactions."""

    types: ClassVar = ((0, 61),)


@dataclass(slots=True)
class XaInDoubtXidsResponse(Packet):
    """The prepared transactions."""

    types: ClassVar = ((0, 62),)

    xids: tuple[Xid, ...] = field(_XIDS, default=())


@dataclass(slots=True)
class XaSetTimeout(Packet):
    """Sets the seconds after which a transaction is rolled back; 0 for the broker's own."""

    types: ClassVar = ((0, 63),)

    timeout_seconds: int = field(INT)


@dataclass(slots=True)
class XaSetTimeoutResponse(Packet):
    """Whether it was set."""

    types: ClassVar = ((0, 64),)

    ok: bool = field(BOOLEAN)


@dataclass(slots=True)
class XaGetTimeout(Packet):
    """Asks for the timeout."""

    types: ClassVar = ((0, 65),)


@dataclass(slots=True)
class XaGetTimeoutResponse(Packet):
    """The timeout."""

    types: ClassVar = ((0, 66),)

    timeout_seconds: int = field(INT)
