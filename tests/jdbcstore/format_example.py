"""The worked example of docs/format/sql.md; run as a module it prints it.

python -m tests.jdbcstore.format_example
"""

import sys
import tempfile
from pathlib import Path

import sqlalchemy

from jdbcstore.database import Database
from jdbcstore.node import NodeManager
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.schema import journal_table
from jdbcstore.store import SqlStore

CALLS = """\
store.add(7, 45, b"hello")
store.update(7, 46, b"again")
store.add(8, 45, b"world", tx=100)
store.delete(7, tx=100)
store.commit(100)
store.add(9, 200, b"third", tx=101)
store.delete(8, b"why", tx=101)
store.prepare(101, b"branch")
"""
COLUMNS = ("seq", "recordType", "id", "userRecordType", "variableSize", "record", "txId", "txData")


def text(folder):
    """The example as the document shows it, made by the store in an SQLite file in `folder`."""
    options = DatabaseStoreOptions(connection_url=f"sqlite:///{folder}/example.db")
    lines = ["What these calls leave in MESSAGES (columns that are always 0 are left out):", ""]
    lines += [f"    {line}" for line in CALLS.splitlines()]
    database = Database(options)
    manager = NodeManager(database)
    manager.start()
    manager.start_primary()
    manager.activated()
    store = SqlStore(options, database=database, lease=manager.primary_lease)
    store.open()
    store.load()
    exec(CALLS, {"store": store})
    lines += ["", *drawn(COLUMNS, message_rows(database))]
    lines += ["", "and the node manager's table meanwhile, with ids and times of another day:", ""]
    lines += drawn(
        ("ID", "HOLDER_ID", "HOLDER_EXPIRATION_TIME", "NODE_ID", "STATE"), nodes(database)
    )
    store.close()
    manager.stop()
    database.close()
    return "\n".join(lines) + "\n"


def message_rows(database):
    """The rows of the journal by seq, bytes as text."""
    table = journal_table("MESSAGES", database.dialect)
    query = sqlalchemy.select(*(table.c[name] for name in COLUMNS)).order_by(table.c.seq)
    with database.connect(read_only=True) as connection:
        found = connection.execute(query).fetchall()
    return [
        [str(cell, "ascii") if isinstance(cell, bytes) else cell for cell in row] for row in found
    ]


def nodes(database):
    """The rows of the node manager's table; what differs from run to run is made alike."""
    with database.connect(read_only=True) as connection:
        found = connection.exec_driver_sql(
            "SELECT ID, HOLDER_ID, HOLDER_EXPIRATION_TIME, NODE_ID, STATE FROM NODE_MANAGER_STORE "
            "ORDER BY ID"
        ).fetchall()
    shown = ("9f1c5f0e-2c0b-4b3e-8a54-0f2f4b1f6a11", "6e0c1a70-c6a1-11f0-9a3b-2b7d5c8e0f42")
    return [
        [
            row,
            None if holder is None else shown[0],
            None if expires is None else 1_763_694_020_000,
            None if node_id is None else shown[1],
            state,
        ]
        for row, holder, expires, node_id, state in found
    ]


def drawn(names, rows):
    """A table in plain text; NULL is left empty."""
    cells = [list(names), *([("" if cell is None else str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    return [
        (
            "    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(text(Path(folder)))
