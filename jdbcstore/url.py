"""Turns JDBC URLs of every vendor, and SQLAlchemy URLs, into SQLAlchemy URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy

from jdbcstore import passwords
from jdbcstore.urls import db2, derby, mssql, mysql, oracle, postgresql
from journal.errors import OptionError
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from jdbcstore.options import DatabaseStoreOptions

__all__ = ["connection_url", "sqlalchemy_url"]

# What a SQLAlchemy URL without a driver means here.
DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "sqlite": "sqlite+pysqlite",
    "oracle": "oracle+oracledb",
    "mssql": "mssql+mssqlpython",
    "db2": "db2+ibm_db",
    "ibm_db_sa": "db2+ibm_db",
    "derby": "derby+embedded",
}

# jdbc-driver-class-name → what the URL's driver may begin with.
DRIVER_CLASSES: Final = {
    "org.apache.derby.jdbc.EmbeddedDriver": ("derby+embedded",),
    "org.apache.derby.jdbc.AutoloadedDriver": ("derby+",),
    "org.apache.derby.iapi.jdbc.AutoloadedDriver": ("derby+",),
    "org.apache.derby.jdbc.ClientDriver": ("derby+network",),
    "org.apache.derby.client.ClientAutoloadedDriver": ("derby+network",),
    "org.postgresql.Driver": ("postgresql",),
    "com.mysql.jdbc.Driver": ("mysql", "mariadb"),
    "com.mysql.cj.jdbc.Driver": ("mysql", "mariadb"),
    "org.mariadb.jdbc.Driver": ("mysql", "mariadb"),
    "oracle.jdbc.OracleDriver": ("oracle",),
    "oracle.jdbc.driver.OracleDriver": ("oracle",),
    "com.ibm.db2.jcc.DB2Driver": ("db2",),
    "com.microsoft.sqlserver.jdbc.SQLServerDriver": ("mssql",),
    "net.sourceforge.jtds.jdbc.Driver": ("mssql",),
    "org.sqlite.JDBC": ("sqlite",),
}


def _sqlite(text: str) -> sqlalchemy.URL:
    return sqlalchemy.URL.create(DRIVERS["sqlite"], database=text)


VENDORS: Final[dict[str, Callable[[str], sqlalchemy.URL]]] = {
    "postgresql": postgresql.parse,
    "mysql": mysql.parse,
    "mariadb": lambda text: mysql.parse(text, "mariadb"),
    "oracle": oracle.parse,
    "db2": db2.parse,
    "sqlserver": mssql.parse,
    "jtds": mssql.parse_jtds,
    "derby": derby.parse,
    "sqlite": _sqlite,
}


def sqlalchemy_url(text: str) -> sqlalchemy.URL:
    """The URL that SQLAlchemy connects to, of a JDBC URL or a SQLAlchemy URL.

    Raises:
        OptionError: it is neither, or a property of it is not known; passwords are not repeated.

    >>> sqlalchemy_url("jdbc:postgresql://db/artemis").drivername
    'postgresql+psycopg'
    >>> sqlalchemy_url("sqlite:////var/lib/broker.db").database
    '/var/lib/broker.db'
    """
    if text.startswith("jdbc:"):
        vendor, colon, rest = text.removeprefix("jdbc:").partition(":")
        parse = VENDORS.get(vendor)
        if parse is None or not colon:
            near = nearest(vendor, VENDORS) or f"; known are {', '.join(sorted(VENDORS))}"
            raise OptionError(f"jdbc-connection-url: no database is called {vendor!r}{near}")
        return parse(rest)
    try:
        url = sqlalchemy.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise OptionError("jdbc-connection-url is neither a JDBC nor a SQLAlchemy URL") from None
    return url.set(drivername=DRIVERS.get(url.drivername, url.drivername))


def connection_url(options: DatabaseStoreOptions) -> sqlalchemy.URL:
    """The URL to connect to, with user and password, of all options that say something about it.

    The pool's own `url`, `username`, `password` and `driverClassName` win, as in Artemis.

    Raises:
        OptionError: no URL, one that the driver class does not fit, a user of a database that has
            none, or a mask that does not decode.
    """
    properties = options.data_source_properties
    text = properties.get("url") or options.connection_url
    if not text:
        raise OptionError("jdbc-connection-url is missing")
    url = sqlalchemy_url(passwords.unmask(text))
    user = properties.get("username") or options.user
    password = properties.get("password") or options.password
    if user is not None:
        url = url.set(username=passwords.unmask(user))
    if password is not None:
        url = url.set(password=passwords.unmask(password))
    if url.get_backend_name() == "sqlite":
        _check_sqlite(url)
    _check_driver_class(properties.get("driverClassName") or options.driver_class_name, url)
    return url


def _check_sqlite(url: sqlalchemy.URL) -> None:
    is_named = url.username is not None or url.password is not None
    if is_named or not url.query.keys().isdisjoint(("user", "password")):
        raise OptionError("SQLite has no users: leave jdbc-user and jdbc-password out")
    if url.host or url.port is not None:
        raise OptionError(
            f"SQLite has no host: {url.host!r} in jdbc-connection-url; a file's URL is "
            "sqlite:///relative/path or sqlite:////absolute/path"
        )


def _check_driver_class(name: str | None, url: sqlalchemy.URL) -> None:
    if name is None:
        return
    prefixes = DRIVER_CLASSES.get(name)
    if prefixes is None:
        near = nearest(name, DRIVER_CLASSES)
        raise OptionError(f"jdbc-driver-class-name {name!r} is not known{near}")
    if not url.drivername.startswith(prefixes):
        raise OptionError(
            f"jdbc-driver-class-name {name} does not fit the URL, which leads to "
            f"{url.get_backend_name()}"
        )
