"""Requests of transaction managers: all but one are answered by an XaResponse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.core import packet_xa as xa
from broker.transactions.xa import XaCode, XaError
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.answers import Answers
    from broker.protocols.core.packet import Packet
    from broker.sessions.session import Session

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

    def handle(self, session: Session, answers: Answers, packet: Packet, size: int) -> None:
        """Do what a packet asks for, and answer, also where it is refused."""
        try:
            self._handlers[type(packet)](session, answers, packet, size)
        except XaError as error:
            answers.answer(size, xa.XaResponse(True, int(error.code), error.text))
        except JournalError as error:
            # The manager has to ask again, of the broker that has loaded what there is.
            code = XaCode.RESOURCE_MANAGER_FAILED
            answers.answer(size, xa.XaResponse(True, int(code), str(error)))

    def _ok(self, answers: Answers, size: int) -> None:
        answers.answer(size, xa.XaResponse(False, _OK))

    def _decided(self, error: Exception | None, answers: Answers, size: int) -> None:
        """The `done` of what has to be durable; by answers.answer() it would wait once more.

        A client that reattaches meanwhile would hear that this request was not handled.
        """
        if error is None:
            answers.answer_now(size, xa.XaResponse(False, _OK))
        else:
            code = XaCode.RESOURCE_MANAGER_FAILED
            answers.send(xa.XaResponse(True, int(code), str(error)))

    def _start(self, session: Session, answers: Answers, packet: xa.XaStart, size: int) -> None:
        session.xa.start(packet.xid)
        self._ok(answers, size)

    def _join(self, session: Session, answers: Answers, packet: xa.XaJoin, size: int) -> None:
        session.xa.join(packet.xid)
        self._ok(answers, size)

    def _end(self, session: Session, answers: Answers, packet: xa.XaEnd, size: int) -> None:
        session.xa.end(packet.xid, has_failed=packet.failed)
        self._ok(answers, size)

    def _suspend(self, session: Session, answers: Answers, packet: xa.XaSuspend, size: int) -> None:
        session.xa.suspend()
        self._ok(answers, size)

    def _resume(self, session: Session, answers: Answers, packet: xa.XaResume, size: int) -> None:
        session.xa.resume(packet.xid)
        self._ok(answers, size)

    def _prepare(self, session: Session, answers: Answers, packet: xa.XaPrepare, size: int) -> None:
        session.xa.prepare(packet.xid, self._decided, answers, size)

    def _commit(self, session: Session, answers: Answers, packet: xa.XaCommit, size: int) -> None:
        session.xa.commit(packet.xid, packet.one_phase, self._decided, answers, size)

    def _rollback(
        self, session: Session, answers: Answers, packet: xa.XaRollback, size: int
    ) -> None:
        session.xa.rollback(packet.xid, self._decided, answers, size)

    def _forget(self, session: Session, answers: Answers, packet: xa.XaForget, size: int) -> None:
        session.xa.forget(packet.xid, self._decided, answers, size)

    def _failed(self, session: Session, answers: Answers, packet: xa.XaFailed, size: int) -> None:
        session.xa.failed(packet.xid)
        answers.silently(size)

    def _in_doubt(
        self, session: Session, answers: Answers, packet: xa.XaInDoubtXids, size: int
    ) -> None:
        answers.answer(size, xa.XaInDoubtXidsResponse(session.xa.in_doubt()))

    def _set_timeout(
        self, session: Session, answers: Answers, packet: xa.XaSetTimeout, size: int
    ) -> None:
        session.xa.set_timeout(packet.timeout_seconds)
        answers.answer(size, xa.XaSetTimeoutResponse(True))

    def _get_timeout(
        self, session: Session, answers: Answers, packet: xa.XaGetTimeout, size: int
    ) -> None:
        answers.answer(size, xa.XaGetTimeoutResponse(session.xa.timeout_seconds))


XA_REQUESTS: Final = _XaRequests()
