"""The statements on one row of the node manager's table; each goes by the database's clock.

Every question about a lease is one guarded statement, with the clock inside it: "take it if it has
expired" is an UPDATE whose WHERE asks the clock and whose SET adds to it. So no other broker can
act between the check and the write, and no clock of the broker's own is used.

The row's lock is what makes the fence hold. A transaction that writes locks the row first (see
Fence). A broker that takes the lease has to change that row, so it waits for the transaction to
end. So it does not matter that the clock goes on between the check and the commit.

Which clock that is: the server's. SQLite has none of its own and asks the machine, so that
processes on one machine still agree, but a step of that machine's clock is a step of the lease's.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy
from sqlalchemy import BigInteger, bindparam, literal_column

from jdbcstore.errors import StatementCancelled
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

    from jdbcstore.dialects.base import Dialect, RawCursor

__all__ = ["HOLDER_ID_MAX", "Fence", "LeaseRow", "LeaseView"]

HOLDER_ID_MAX: Final = 128  # Characters; the width of HOLDER_ID, and Artemis's own limit.


@dataclass(frozen=True, slots=True)
class LeaseView:
    """What a row said at one moment.

    Attributes:
        holder: id of the holder; None: no broker has it.
        expires_ms: end of the lease, milliseconds since 1970 by the database's clock; None: free.
        now_ms: the database's clock at that moment.
    """

    holder: str | None
    expires_ms: int | None
    now_ms: int

    @property
    def remaining_ms(self) -> int:
        """Milliseconds until it expires; 0 when it is free or has expired."""
        return 0 if self.expires_ms is None else max(0, self.expires_ms - self.now_ms)

    @property
    def is_held(self) -> bool:
        """Whether somebody has it, and it has not expired; the last millisecond counts."""
        return self.expires_ms is not None and self.now_ms <= self.expires_ms


@dataclass(frozen=True, slots=True)
class Fence:
    """One statement that proves a lease and locks its row until the transaction ends.

    It goes straight to the driver, in front of whatever the transaction writes. On SQLite the
    transaction must have begun by BEGIN IMMEDIATE, which locks the whole file.

    Attributes:
        sql: with the driver's own marks for parameters.
        parameters: for them.
        raises: the database itself refuses the transaction if the lease is not held (division by
            zero, SQLSTATE 22012), so that the statement may be sent in a pipeline with the rest.
        returns_row: it is a SELECT; if not, an UPDATE that extends the lease as well.
    """

    sql: str
    parameters: tuple[object, ...]
    raises: bool
    returns_row: bool

    def holds(self, cursor: RawCursor) -> bool:
        """Whether the lease is held, from the cursor on which the statement ran just now."""
        if not self.returns_row:
            return cursor.rowcount == 1
        row = cursor.fetchone()
        return row is not None and (not self.raises or row[0] == 1)


class LeaseRow:
    """One lease of the table: the primary's (row 1) or the backup's (row 2).

    Every method is one statement in the connection's transaction, and commits nothing. It raises
    what the driver raises, for `errors.classify`.

    Args:
        table: by schema.node_table().
        dialect: of the database.
        row_id: the row's ID.
    """

    def __init__(self, table: Table, dialect: Dialect, row_id: int) -> None:
        self.row_id = row_id
        self._table = table
        self._dialect = dialect
        self._last_fence: tuple[tuple[str, bool], Fence] | None = None
        columns = table.c
        holder, expires = columns["HOLDER_ID"], columns["HOLDER_EXPIRATION_TIME"]
        now = literal_column(f"({dialect.now_ms})", BigInteger)
        is_row = columns["ID"] == row_id
        me: sqlalchemy.BindParameter[str] = bindparam("me")
        new_end = now + bindparam("expiration_ms", type_=BigInteger)

        self._now = sqlalchemy.text(dialect.select_now_ms)
        self._acquire = (
            table.update()
            .where(is_row, sqlalchemy.or_(expires.is_(None), expires < now))
            .values({holder: me, expires: new_end})
        )
        # Artemis also asks that the end does not move back. It may, here: when the
        # database's clock was set back the lease would else be lost, or last too long.
        self._renew = (
            table.update()
            .where(is_row, holder == me, expires.is_not(None))
            .values({expires: new_end})
        )
        self._release = (
            table.update().where(is_row, holder == me).values({holder: None, expires: None})
        )
        self._look = sqlalchemy.select(holder, expires, now).where(is_row)

    def try_acquire(self, connection: Connection, me: str, expiration_ms: int) -> bool:
        """Take the lease if it is free or has expired; not if it is ours already."""
        done = connection.execute(self._acquire, {"me": me, "expiration_ms": expiration_ms})
        return int(done.rowcount) == 1

    def renew(self, connection: Connection, me: str, expiration_ms: int) -> bool:
        """Let the lease end `expiration_ms` from now; False if somebody else had it since.

        An expired lease that no other broker took is ours again: the row still has our id, and
        every other holder would have changed it.
        """
        done = connection.execute(self._renew, {"me": me, "expiration_ms": expiration_ms})
        if int(done.rowcount) == 1:
            return True
        view = self.look(connection)
        if view is not None and view.holder == me and view.expires_ms is not None:
            raise StatementCancelled("an UPDATE was cancelled without an error")
        return False

    def release(self, connection: Connection, me: str) -> bool:
        """Let the lease be free; False if it was not ours."""
        return int(connection.execute(self._release, {"me": me}).rowcount) == 1

    def look(self, connection: Connection) -> LeaseView | None:
        """What the row says; None if there is no such row."""
        row = connection.execute(self._look).one_or_none()
        if row is None:
            return None
        holder, expires_ms, now_ms = row
        return LeaseView(holder, None if expires_ms is None else int(expires_ms), int(now_ms))

    def view(self, connection: Connection) -> LeaseView:
        """What the row says.

        Raises:
            JournalIOError: there is no such row.
        """
        found = self.look(connection)
        if found is None:
            raise JournalIOError(
                errno.ENOENT, f"no row {self.row_id} in the table", self._table.name
            )
        return found

    def now_ms(self, connection: Connection) -> int:
        """The database's clock."""
        return int(connection.execute(self._now).scalar_one())

    def end_lockers(self, connection: Connection) -> int:
        """End the sessions that keep an expired lease's row locked; how many there were.

        They are a former holder's, who stands still in the middle of a transaction; what he wrote
        there is rolled back. 0 too where the database cannot say who they are.
        """
        expired = f"ID = {self.row_id} AND HOLDER_EXPIRATION_TIME < {self._dialect.now_ms}"
        sql = self._dialect.end_lockers_sql(self._table, expired)
        return 0 if sql is None else len(connection.execute(sqlalchemy.text(sql)).fetchall())

    def fence(self, me: str, *, may_raise: bool = True) -> Fence:
        """The statement that proves the lease, see Fence; it changes nothing."""
        key = (me, may_raise)
        if self._last_fence is not None and self._last_fence[0] == key:
            return self._last_fence[1]  # Every transaction asks, and always the same.
        condition, parameters = self._is_mine(me)
        sql = self._dialect.select_locked("1", self._table, condition)
        raises = may_raise and self._dialect.name == "postgresql"
        if raises:
            sql = f"SELECT 1 / count(*) FROM ({sql}) AS held"
        fence = Fence(sql, parameters, raises=raises, returns_row=True)
        self._last_fence = (key, fence)
        return fence

    def renewing_fence(self, me: str, expiration_ms: int) -> Fence:
        """The same as an UPDATE, which renews the lease if the transaction is committed."""
        dialect = self._dialect
        condition, parameters = self._is_mine(me, first=2)
        sql = (
            f"UPDATE {dialect.quoted(self._table)} SET HOLDER_EXPIRATION_TIME = "
            f"{self._driver_text(dialect.now_ms)} + {dialect.placeholder(1)} WHERE {condition}"
        )
        return Fence(sql, (expiration_ms, *parameters), raises=False, returns_row=False)

    def _is_mine(self, me: str, first: int = 1) -> tuple[str, tuple[Any, ...]]:
        dialect = self._dialect
        condition = (
            f"ID = {self.row_id} AND HOLDER_ID = {dialect.placeholder(first)} "
            f"AND HOLDER_EXPIRATION_TIME >= {self._driver_text(dialect.now_ms)}"
        )
        return condition, (me,)

    def _driver_text(self, sql: str) -> str:
        """SQL as the driver takes it: one that marks parameters by % wants others doubled."""
        is_percent = self._dialect.placeholder() == "%s"
        return sql.replace("%", "%%") if is_percent else sql
