"""SQLite, embedded: the database of a broker that was given none."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy

from jdbcstore.dialects.base import ColumnTypes, Dialect
from jdbcstore.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jdbcstore.dialects.base import RawConnection

__all__ = ["SQLite"]

# https://www.sqlite.org/rescode.html; the low byte is the primary code.
BUSY: Final = 5
LOCKED: Final = 6
INTERRUPT: Final = 9

SWITCH_PAUSE_S: Final = 0.01


class SQLite(Dialect):
    """SQLite 3.37 and later; one file, one writer at a time.

    A transaction that writes takes the whole file by BEGIN IMMEDIATE: upgrading a reader later
    would fail with SQLITE_BUSY at once, without waiting.
    """

    name = "sqlite"
    max_blob_size = 1_000_000_000  # SQLITE_MAX_LENGTH as it is compiled by default.
    # strftime('now') keeps one time during a statement; the file is locked before it.
    now_ms = (
        "(CAST(strftime('%s', 'now') AS INTEGER) * 1000"
        " + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))"
    )
    row_lock = ""
    write_locks_all = True

    def column_types(self) -> ColumnTypes:
        """INTEGER keys, which are the row ids; BIGINT keys would need an index of their own."""
        return replace(
            super().column_types(),
            file_key=sqlalchemy.Integer(),
            seq=sqlalchemy.Integer(),
        )

    def lock_wait_sql(self, wait_ms: int) -> str | None:
        """By the busy handler, which looks again every now and then until the time is over."""
        return f"PRAGMA busy_timeout = {int(wait_ms)}"

    def begin_write(self, raw: RawConnection) -> None:
        """Take the file; another writer is waited for, for the network timeout."""
        cursor = raw.cursor()
        try:
            cursor.execute("BEGIN IMMEDIATE")
        finally:
            cursor.close()

    def open_raw(
        self,
        url: sqlalchemy.URL,
        network_timeout_ms: int,
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> RawConnection | None:
        """None; a missing folder is named, which SQLite's own error does not do."""
        del network_timeout_ms, args, named
        name = url.database or ""
        if not name.startswith("file:") and not os.path.isdir(os.path.dirname(name) or "."):
            raise sqlite3.OperationalError(
                f"unable to open database file {name}: its folder has to exist"
            )
        return None

    def connect_arguments(self, network_timeout_ms: int) -> dict[str, Any]:
        """How long to wait for another writer; threads hand connections to each other."""
        # sqlite3 knows no "for ever"; three weeks are.
        timeout_s = network_timeout_ms / 1000 if network_timeout_ms >= 0 else 2_000_000
        return {"timeout": timeout_s, "check_same_thread": False}

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """A write-ahead log that is synced at each commit; transactions begin when we say so."""
        assert isinstance(raw, sqlite3.Connection)
        raw.isolation_level = None
        self._use_write_ahead_log(raw, network_timeout_ms)
        raw.execute("PRAGMA synchronous = FULL")

    def _use_write_ahead_log(self, raw: sqlite3.Connection, wait_ms: int) -> None:
        """Switch the file over once and for all.

        SQLite does not call its busy handler here: while another opener of a new file reads it, or
        switches it over, the switch fails at once.
        """
        deadline = time.monotonic() + wait_ms / 1000
        while True:
            try:
                raw.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                is_over = wait_ms >= 0 and time.monotonic() >= deadline
                if is_over or self.fault(error) is not Fault.CONFLICT:
                    raise
                time.sleep(SWITCH_PAUSE_S)
            else:
                return

    def fault(self, exception: BaseException) -> Fault:
        """Busy and locked pass; everything else is a failing disk or a wrong statement."""
        code = getattr(exception, "sqlite_errorcode", None)
        if isinstance(code, int) and code & 0xFF in (BUSY, LOCKED, INTERRUPT):
            return Fault.CONFLICT
        return Fault.FATAL
