"""Requests of transaction managers: all but one are answered by an XaResponse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.core import packet_xa as xa
from broker.transactions.xa import XaCode, XaError
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.packet import Packet
    from broker.protocols.core.session_channel import SessionChannel

__all__ = ["XA_REQUESTS"]

_OK: Final = 0


class _XaRequests:
    """Handles the packets of packet_xa for a session's channel."""

    def __init__(self) -> None:
        self._handlers: dict[type[Packet], Callable[..., None]] = {
            xa.XaStart: self._start,
            xa.XaJoin: self._join,
            xa.XaEnd: self._end,
            xa.XaSuspend: self._suspend,
            xa.XaResume: self._resume,
            xa.XaPrepare: self._prepare,
            xa.XaCommit: self._commit,
            xa.XaRollback: self._rollback,
            xa.XaForget: self._forget,
            xa.XaFailed: self._failed,
            xa.XaInDoubtXids: self._in_doubt,
            xa.XaSetTimeout: self._set_timeout,
            xa.XaGetTimeout: self._get_timeout,
        }

    @property
    def kinds(self) -> tuple[type[Packet], ...]:
        """Which packets."""
        return tuple(self._handlers)

    def handle(self, owner: SessionChannel, packet: Packet, size: int) -> None:
        """Do what a packet asks for, and answer, also where it is refused."""
        try:
            self._handlers[type(packet)](owner, packet, size)
        except XaError as error:
            owner.answer(size, xa.XaResponse(True, int(error.code), error.text))
        except JournalError as error:
            # The manager has to ask again, of the broker that has loaded what there is.
            code = XaCode.RESOURCE_MANAGER_FAILED
            owner.answer(size, xa.XaResponse(True, int(code), str(error)))

    def _ok(self, owner: SessionChannel, size: int) -> None:
        owner.answer(size, xa.XaResponse(False, _OK))

    def _decided(self, error: Exception | None, owner: SessionChannel, size: int) -> None:
        """The `done` of what has to be durable."""
        if error is None:
            self._ok(owner, size)
        else:
            code = XaCode.RESOURCE_MANAGER_FAILED
            owner.channel.send(xa.XaResponse(True, int(code), str(error)))

    def _start(self, owner: SessionChannel, packet: xa.XaStart, size: int) -> None:
        owner.session.xa.start(packet.xid)
        self._ok(owner, size)

    def _join(self, owner: SessionChannel, packet: xa.XaJoin, size: int) -> None:
        owner.session.xa.join(packet.xid)
        self._ok(owner, size)

    def _end(self, owner: SessionChannel, packet: xa.XaEnd, size: int) -> None:
        owner.session.xa.end(packet.xid, has_failed=packet.failed)
        self._ok(owner, size)

    def _suspend(self, owner: SessionChannel, packet: xa.XaSuspend, size: int) -> None:
        owner.session.xa.suspend()
        self._ok(owner, size)

    def _resume(self, owner: SessionChannel, packet: xa.XaResume, size: int) -> None:
        owner.session.xa.resume(packet.xid)
        self._ok(owner, size)

    def _prepare(self, owner: SessionChannel, packet: xa.XaPrepare, size: int) -> None:
        owner.session.xa.prepare(packet.xid, self._decided, owner, size)

    def _commit(self, owner: SessionChannel, packet: xa.XaCommit, size: int) -> None:
        owner.session.xa.commit(packet.xid, packet.one_phase, self._decided, owner, size)

    def _rollback(self, owner: SessionChannel, packet: xa.XaRollback, size: int) -> None:
        owner.session.xa.rollback(packet.xid, self._decided, owner, size)

    def _forget(self, owner: SessionChannel, packet: xa.XaForget, size: int) -> None:
        owner.session.xa.forget(packet.xid, self._decided, owner, size)

    def _failed(self, owner: SessionChannel, packet: xa.XaFailed, size: int) -> None:
        owner.session.xa.failed(packet.xid)
        owner.silently(size)

    def _in_doubt(self, owner: SessionChannel, packet: xa.XaInDoubtXids, size: int) -> None:
        owner.answer(size, xa.XaInDoubtXidsResponse(owner.session.xa.in_doubt()))

    def _set_timeout(self, owner: SessionChannel, packet: xa.XaSetTimeout, size: int) -> None:
        owner.session.xa.set_timeout(packet.timeout_seconds)
        owner.answer(size, xa.XaSetTimeoutResponse(True))

    def _get_timeout(self, owner: SessionChannel, packet: xa.XaGetTimeout, size: int) -> None:
        owner.answer(size, xa.XaGetTimeoutResponse(owner.session.xa.timeout_seconds))


XA_REQUESTS: Final = _XaRequests()
