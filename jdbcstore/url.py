"""Where a database is: JDBC URLs and SQLAlchemy URLs, as the URL that SQLAlchemy connects to."""

from __future__ import annotations

import re
from typing import Final

import sqlalchemy

from journal.errors import OptionError

__all__ = ["sqlalchemy_url"]

# The driver for each database: what `<database>://` means here.
DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "sqlite": "sqlite+pysqlite",
}
PORTS: Final = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}


def sqlalchemy_url(text: str) -> sqlalchemy.URL:
    """The URL that SQLAlchemy connects to, of a JDBC URL or a SQLAlchemy URL.

    Raises:
        OptionError: it is neither; passwords in it are not repeated.

    >>> sqlalchemy_url("jdbc:postgresql://db/artemis").drivername
    'postgresql+psycopg'
    >>> sqlalchemy_url("sqlite:////var/lib/broker.db").database
    '/var/lib/broker.db'
    """
    if text.startswith("jdbc:"):
        return _jdbc(text.removeprefix("jdbc:"))
    try:
        url = sqlalchemy.make_url(text)
    except sqlalchemy.exc.ArgumentError:
        raise OptionError("jdbc-connection-url is neither a JDBC nor a SQLAlchemy URL") from None
    return url.set(drivername=DRIVERS.get(url.drivername, url.drivername))


def _jdbc(text: str) -> sqlalchemy.URL:
    if text.startswith("sqlite:"):
        return sqlalchemy.URL.create(DRIVERS["sqlite"], database=text.removeprefix("sqlite:"))
    match = re.fullmatch(r"(postgresql|mysql|mariadb)://([^/:?]+)(?::(\d+))?/([^?]+)", text)
    if match is None:
        raise OptionError(f"jdbc:{text.partition(':')[0]}: this form of URL is not known")
    vendor, host, port, database = match.groups()
    return sqlalchemy.URL.create(
        DRIVERS[vendor], host=host, port=int(port or PORTS[vendor]), database=database
    )
