"""Artemis's tables: their columns, indexes and first rows, built for one database.

Column names are written as Artemis writes them and without quotes, so that each database
folds them its own way; table names are folded by Artemis's rule, checked, and quoted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy
from sqlalchemy import CHAR, VARCHAR, Column, Index, MetaData, PrimaryKeyConstraint, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import quoted_name

from jdbcstore.errors import Fault, classify
from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Inspector
    from sqlalchemy.schema import SchemaItem

    from jdbcstore.dialects.base import AnyType, Dialect

__all__ = [
    "BACKUP_LOCK_ROW",
    "NODE_ID_ROW",
    "NODE_ROWS",
    "PRIMARY_LOCK_ROW",
    "STATE_ROW",
    "check_columns",
    "create_if_missing",
    "file_table",
    "journal_table",
    "node_table",
]

# PropertySQLProvider's row ids.
STATE_ROW: Final = 0
PRIMARY_LOCK_ROW: Final = 1
BACKUP_LOCK_ROW: Final = 2
NODE_ID_ROW: Final = 3
NODE_ROWS: Final = tuple(
    {"ID": row} for row in (STATE_ROW, NODE_ID_ROW, PRIMARY_LOCK_ROW, BACKUP_LOCK_ROW)
)

# Two brokers that start together collide once for the table and once for its rows.
CREATE_ATTEMPTS: Final = 5

logger = logging.getLogger(__name__)


def journal_table(name: str, dialect: Dialect) -> Table:
    """A journal, bindings or messages: one row a record, in the order of seq.

    Args:
        name: as configured; folded to the database's case.
        dialect: of the database.

    Raises:
        OptionError: the name cannot be a table's.
    """
    types = dialect.column_types()
    table = _table(
        name,
        dialect,
        _column("id", types.big),
        _column("recordType", types.small),
        _column("compactCount", types.small),
        _column("txId", types.big),
        _column("userRecordType", types.small),
        _column("variableSize", types.integer),
        _column("record", types.blob),
        _column("txDataSize", types.integer),
        _column("txData", types.blob),
        _column("txCheckNoRecords", types.integer),
        _column("seq", types.seq, nullable=not dialect.seq_is_key),
        *([PrimaryKeyConstraint("seq")] if dialect.seq_is_key else []),
    )
    _index(table, dialect, "_IDX", "id")
    _index(table, dialect, "_TX_IDX", "txId")
    if not dialect.seq_is_key:
        _seq_index(table, dialect)
    return table


def file_table(name: str, dialect: Dialect) -> Table:
    """Large messages or the pages of an address: one row a file.

    Args:
        name: as configured; folded to the database's case.
        dialect: of the database.

    Raises:
        OptionError: the name cannot be a table's.
    """
    types = dialect.column_types()
    identity = dialect.file_identity()
    table = _table(
        name,
        dialect,
        Column(
            _plain("ID"),
            types.file_key,
            *([identity] if identity else []),
            autoincrement=True,
            nullable=False,
        ),
        _column("FILENAME", VARCHAR(255)),
        _column("EXTENSION", VARCHAR(10)),
        _column("DATA", types.file_data),
        PrimaryKeyConstraint("ID"),
    )
    _index(table, dialect, "_IDX", "FILENAME")
    return table


def node_table(name: str, dialect: Dialect) -> Table:
    """The node manager's table: leases, node id, state; see NODE_ROWS.

    Args:
        name: as configured; folded to the database's case.
        dialect: of the database.

    Raises:
        OptionError: the name cannot be a table's.
    """
    types = dialect.column_types()
    return _table(
        name,
        dialect,
        _column("ID", types.node_key, nullable=False),
        _column("HOLDER_ID", VARCHAR(128)),
        _column("HOLDER_EXPIRATION_TIME", types.big),
        _column("NODE_ID", CHAR(36)),
        _column("STATE", CHAR(1)),
        PrimaryKeyConstraint("ID"),
    )


def _table(name: str, dialect: Dialect, *parts: SchemaItem) -> Table:
    folded = quoted_name(dialect.table_name(name), quote=True)
    return Table(folded, MetaData(), *parts, **dialect.table_options)


def _plain(name: str) -> quoted_name:
    return quoted_name(name, quote=False)


def _column(name: str, kind: AnyType, *, nullable: bool = True) -> Column[Any]:
    return Column(_plain(name), kind, nullable=nullable, autoincrement=False)


def _seq_index(table: Table, dialect: Dialect) -> Index:
    """Ours: Artemis sorts the whole table at every start, and cannot find a batch again."""
    return _index(table, dialect, "_SEQ_IDX", "seq")


def _index(table: Table, dialect: Dialect, suffix: str, column: str) -> Index:
    name = dialect.index_name(str(table.name), suffix)
    return Index(quoted_name(name, quote=True), table.c[column])


def create_if_missing(
    connection: Connection,
    table: Table,
    dialect: Dialect,
    *,
    rows: Sequence[Mapping[str, object]] = (),
) -> None:
    """Create the table, its indexes and, if it is empty, its first rows.

    Any number of brokers may do so at once. A table that Artemis made is left as it is,
    apart from an index it lacks. Runs transactions of its own on `connection` and commits them.

    Args:
        connection: with no transaction open.
        table: by one of the functions above.
        dialect: of the database.
        rows: what an empty table gets, such as NODE_ROWS.

    Raises:
        sqlalchemy.exc.DBAPIError: the database refused, for `errors.classify`.
    """
    for attempt in range(CREATE_ATTEMPTS):
        try:
            _create_missing_parts(connection, table, dialect)
            _fill_empty(connection, table, rows)
        except DBAPIError as error:
            if not connection.invalidated:
                connection.rollback()
            if classify(error, dialect) is Fault.LOST or attempt == CREATE_ATTEMPTS - 1:
                raise
            # Another starter was faster, or the catalogue is stale: look again.
            logger.debug("creating %s met %s; looking again", table.name, error.orig)
        else:
            return


def check_columns(inspector: Inspector, table: Table) -> None:
    """See that a table that exists has the columns it needs.

    Args:
        inspector: of the database.
        table: by one of the functions above.

    Raises:
        OptionError: it has not: it was made for something else.
    """
    found = {str(one["name"]).lower() for one in inspector.get_columns(table.name)}
    missing = [column.name for column in table.columns if column.name.lower() not in found]
    # A cancelled statement finds none at all; see StatementCancelled.
    if missing and found:
        raise OptionError(
            f"table {table.name} was made for something else: it has no column "
            f"{', '.join(missing)}; name another table"
        )


def _create_missing_parts(connection: Connection, table: Table, dialect: Dialect) -> None:
    inspector = sqlalchemy.inspect(connection)
    wanted = set(table.indexes)
    if not inspector.has_table(table.name):
        # Not through Table.create(): its indexes follow below, one by one, so that a table whose
        # indexes were not reached (databases that commit after each DDL) is completed here too.
        connection.execute(sqlalchemy.schema.CreateTable(table))
        connection.commit()
        inspector = sqlalchemy.inspect(connection)
    else:
        check_columns(inspector, table)
        if (
            "seq" in table.c
            and not dialect.artemis_has_key
            and not inspector.get_pk_constraint(table.name)["constrained_columns"]
        ):
            # Old tables, of Artemis or ours, stay as they are: without the key.
            wanted.add(_seq_index(table, dialect))
    present = {str(found["name"]).lower() for found in inspector.get_indexes(table.name)}
    for index in sorted(wanted, key=lambda index: str(index.name)):
        if str(index.name).lower() not in present:
            connection.execute(sqlalchemy.schema.CreateIndex(index))
    connection.commit()


def _fill_empty(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        count = sqlalchemy.select(sqlalchemy.func.count()).select_from(table)
        if not connection.execute(count).scalar_one():
            connection.execute(table.insert(), [dict(row) for row in rows])
    connection.commit()
