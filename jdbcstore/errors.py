"""Classifies database errors: lost, conflict or fatal; and the error for a lost lease.

    Fault.LOST       the connection is gone or never came up: the outcome of a commit is unknown
    Fault.CONFLICT   the database rolled the transaction back: the same work may be tried again
    Fault.FATAL      trying again would fail in the same way

    journal.errors.JournalClosed
    └── LeaseLost    another broker may own the tables now: nothing more may be written

    StatementCancelled   the server said that a statement was done, and it was not: a conflict

Drivers agree on SQLSTATE (ISO/IEC 9075-2, table 38) more than on anything else, so it is evaluated
here. Error numbers of one vendor are evaluated in its dialect.

StatementCancelled never leaves this package: what ends a store is a JournalError.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

import sqlalchemy.exc

from journal.errors import JournalClosed

if TYPE_CHECKING:
    from jdbcstore.dialects.base import Dialect

__all__ = ["Fault", "LeaseLost", "StatementCancelled", "classify", "fault_of_sqlstate", "one_line"]


class Fault(enum.Enum):
    """What the caller does next: reconnect and find out, try again, or give up."""

    LOST = "lost"
    CONFLICT = "conflict"
    FATAL = "fatal"


class LeaseLost(JournalClosed):
    """The lease on the tables ended; only its present holder may write."""


class StatementCancelled(Exception):
    """What the server should have said: a statement was cancelled, and is not done.

    MariaDB (seen: 10.11) reports a DELETE, and a SELECT with a LIMIT, as done, with no rows, when
    it is cancelled (KILL QUERY, max_statement_time) while it chooses an index; an UPDATE is run by
    the same steps. So code that decides by "no rows" asks once more, in another way.
    """


# The longest prefix decides. Class 57 and 53 are PostgreSQL's and DB2's "operator intervention"
# and "out of resources"; 40003 is "statement completion unknown".
FAULTS_BY_SQLSTATE: Final = {
    "08": Fault.LOST,
    "08004": Fault.FATAL,  # The server refused the login or does not know the database.
    "25006": Fault.LOST,  # Read only: a standby answered, the writer is elsewhere.
    "25P03": Fault.LOST,  # Idle in a transaction for too long: the session was ended.
    "40": Fault.CONFLICT,
    "40003": Fault.LOST,
    "53": Fault.CONFLICT,
    "53300": Fault.LOST,  # Too many connections: there is none to roll back.
    "55P03": Fault.CONFLICT,  # Lock not available.
    "57014": Fault.CONFLICT,  # Statement cancelled or out of time.
    "57033": Fault.CONFLICT,  # DB2: deadlock or time-out without a rollback.
    "57P": Fault.LOST,  # The server is being stopped, crashed, or starts.
    "57P04": Fault.FATAL,  # The database was dropped.
    "HYT": Fault.LOST,  # ODBC: a time-out of the driver; the server may still be working.
}


def fault_of_sqlstate(sqlstate: str) -> Fault:
    """The fault that a SQLSTATE stands for; one that is not listed is fatal.

    >>> fault_of_sqlstate("40001").value, fault_of_sqlstate("08006").value
    ('conflict', 'lost')
    >>> fault_of_sqlstate("42601").value
    'fatal'
    """
    for size in range(len(sqlstate), 1, -1):
        fault = FAULTS_BY_SQLSTATE.get(sqlstate[:size])
        if fault is not None:
            return fault
    return Fault.FATAL


def classify(exception: BaseException, dialect: Dialect) -> Fault:
    """Classify an exception that SQLAlchemy, a driver or a socket raised.

    Args:
        exception: as caught.
        dialect: of the database that was spoken to.

    >>> from jdbcstore.dialects import dialect_named
    >>> classify(ConnectionResetError(), dialect_named("sqlite")).value
    'lost'
    """
    if isinstance(exception, StatementCancelled):
        return Fault.CONFLICT
    if isinstance(exception, sqlalchemy.exc.TimeoutError):
        return Fault.CONFLICT  # The pool had no connection to give: nothing was begun.
    if isinstance(exception, sqlalchemy.exc.DBAPIError):
        if exception.connection_invalidated:
            return Fault.LOST
        if exception.orig is not None:
            return classify(exception.orig, dialect)
    if isinstance(exception, sqlalchemy.exc.PendingRollbackError):
        return Fault.LOST  # The connection was given up earlier.
    fault = dialect.fault(exception)
    if fault is Fault.FATAL and isinstance(exception, OSError):
        return Fault.LOST  # A socket's error that the driver passed on: refused, reset, timed out.
    return fault


def one_line(error: Exception) -> str:
    """What a driver says, without the statement."""
    return " ".join(str(getattr(error, "orig", None) or error).split())[:300]
