"""Artemis's own journal in a table, beside ours: the same database, tables of their own."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from tests.interop.artemis import Artemis

if TYPE_CHECKING:
    from tests.servers import Database

DRIVERS = {"postgresql": "org.postgresql.Driver", "mariadb": "org.mariadb.jdbc.Driver"}


class ArtemisTable:
    """Artemis's JDBC journal with its defaults, in a JVM that stays up between runs.

    Args:
        database: where the table is made.

    Raises:
        PeerUnavailableError: no Java, no Maven, or Maven Central cannot be reached.
    """

    def __init__(self, database: Database) -> None:
        assert database.server is not None
        self._artemis = Artemis()
        self._folder = tempfile.gettempdir()
        self._settings: dict[str, object] = {
            "url": database.jdbc_url,
            "driver": DRIVERS[database.server.kind],
        }
        self._tables = 0
        self.append("blocking", 16, 1.0)  # The JVM compiles what it will run.

    def append(self, workload: str, producers: int, seconds: float) -> float:
        """Records, or transactions, a second into a new table; see java/interop/SqlBench.java."""
        self._tables += 1
        table = f"ARTEMIS_{self._tables}"
        found = self._call(
            "sql-bench", table=table, workload=workload, producers=producers, seconds=seconds
        )
        return float(found["per_s"])

    def load(self, table: str) -> float:
        """Records a second that a load of a table takes into memory."""
        return float(self._call("sql-bench-load", table=table)["per_s"])

    def close(self) -> None:
        """End the JVM."""
        self._artemis.close()

    def _call(self, command: str, **arguments: object) -> Any:  # noqa: ANN401 - JSON.
        return self._artemis.call(command, self._folder, **self._settings, **arguments)
