"""Finds the dialect of an engine, or one by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy

from jdbcstore.dialects.db2 import DB2
from jdbcstore.dialects.derby import Derby
from jdbcstore.dialects.mssql import SQLServer
from jdbcstore.dialects.mysql import MySQL
from jdbcstore.dialects.oracle import Oracle
from jdbcstore.dialects.postgresql import PostgreSQL
from jdbcstore.dialects.sqlite import SQLite
from journal.errors import OptionError

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import Dialect as EngineDialect

    from jdbcstore.dialects.base import Dialect

__all__ = ["dialect_named", "dialect_of"]

# Our drivers, and how they mark parameters, for a dialect that is not given its driver.
DRIVERS: Final = {"mssql": "mssql+mssqlpython", "db2": "db2+ibm_db"}
PARAMSTYLES: Final = {"mssql": "qmark", "oracle": "named"}

# By SQLAlchemy's name of the database.
DIALECTS: Final[dict[str, type[Dialect]]] = {
    "postgresql": PostgreSQL,
    "mysql": MySQL,
    "mariadb": MySQL,
    "sqlite": SQLite,
    "derby": Derby,
    "oracle": Oracle,
    "mssql": SQLServer,
    "ibm_db_sa": DB2,
}


def dialect_of(engine_dialect: EngineDialect) -> Dialect:
    """The facts about the database that an engine speaks to.

    Raises:
        OptionError: no such database is supported.
    """
    kind = DIALECTS.get(engine_dialect.name)
    if kind is None:
        names = ", ".join(DIALECTS)
        raise OptionError(f"{engine_dialect.name} is not supported; use one of {names}")
    return kind(engine_dialect)


def dialect_named(name: str) -> Dialect:
    """The same by name, without a server, for tools that only want to show SQL.

    >>> dialect_named("postgresql").table_name("MESSAGES")
    'messages'
    """
    url = sqlalchemy.make_url(f"{DRIVERS.get(name, name)}://")
    kind: Any = url.get_dialect()
    return dialect_of(kind(paramstyle=PARAMSTYLES.get(url.get_backend_name())))
