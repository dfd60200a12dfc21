"""Transactions of one connection: a session of its own for each that is open.

    BEGIN id ─▶ session ─▶ SEND … ─▶ COMMIT │ ABORT ─▶ session free for the next

An acknowledgement takes no part in a transaction, as in Artemis: it counts at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.protocols.stomp.errors import StompError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.sessions.session import Session
    from broker.storage.context import After

__all__ = ["Transactions"]

# Open at a time on one connection.
_OPEN_MAX: Final = 1000
# Sessions that are kept for the next transaction.
_FREE_MAX: Final = 4


class Transactions:
    """See the module's text.

    Args:
        new_session: makes one whose messages count with its commit.
        close_session: ends one.
    """

    __slots__ = (
        "_close_session",
        "_free",
        "_new_session",
        "_open",
    )

    def __init__(
        self, new_session: Callable[[], Session], close_session: Callable[[Session], object]
    ) -> None:
        self._new_session = new_session
        self._close_session = close_session
        self._open: dict[str, Session] = {}
        self._free: list[Session] = []

    def session(self, id: str) -> Session:
        """Give the session of a transaction.

        Raises:
            StompError: it has not begun. Artemis takes its messages, and they are lost.
        """
        found = self._open.get(id)
        if found is None:
            raise StompError(f"No transaction started: {id}")
        return found

    def sessions(self) -> list[Session]:
        """Give all, of open and of ended transactions."""
        return [*self._open.values(), *self._free]

    def begin(self, id: str | None) -> None:
        """Begin one.

        Raises:
            StompError: no id, or there is one of that id, or there are too many.
            BrokerError: the user may have no more sessions.
        """
        if id is None:
            raise StompError("AMQ339032: Need a transaction id to begin")
        if id in self._open:
            raise StompError(f"Transaction already started: {id}")
        if len(self._open) >= _OPEN_MAX:
            raise StompError(f"a connection may have {_OPEN_MAX} transactions open")
        self._open[id] = self._free.pop() if self._free else self._new_session()

    def commit(self, id: str | None, done: After, *arguments: object) -> None:
        """Let its messages count; `done(error, *arguments)` once that is durable.

        Raises:
            StompError: no such transaction; or one of its messages was refused: it is rolled back.
        """
        if id is None:
            raise StompError("AMQ339030: transaction header is mandatory to COMMIT a transaction")
        session = self._end(id, "committing")
        try:
            session.commit(done, *arguments)
        except BrokerError as error:
            raise StompError(f"AMQ339013: Error committing {id}: {error.text}") from error
        finally:
            self._release(session)

    def abort(self, id: str | None, done: After, *arguments: object) -> None:
        """Let its messages not count.

        Raises:
            StompError: no such transaction.
        """
        if id is None:
            raise StompError("AMQ339033: transaction header is mandatory to ABORT a transaction")
        session = self._end(id, "aborting")
        try:
            session.rollback(done, *arguments)
        finally:
            self._release(session)

    def _end(self, id: str, what: str) -> Session:
        session = self._open.pop(id, None)
        if session is None:
            number = 339013 if what == "committing" else 339014
            raise StompError(f"AMQ{number}: Error {what} {id}: No transaction started: {id}")
        return session

    def _release(self, session: Session) -> None:
        if len(self._free) < _FREE_MAX:
            self._free.append(session)
        else:
            self._close_session(session)

    def forget(self, session: Session) -> bool:
        """An operator has closed one of the sessions: its transaction is gone; whether it was one.

        What is sent to it from now on is refused.
        """
        if session in self._free:
            self._free.remove(session)
            return True
        for id, one in self._open.items():
            if one is session:
                del self._open[id]
                return True
        return False
