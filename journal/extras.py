"""What installs a package of Python that is missing: this distribution's extra for it.

`quiver-mq` has one extra for each database, and for Spark; README.md has the table.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["DATABASES", "extra_of_url", "install_line", "is_database_url", "missing_package"]

# Package, as it is imported, to the extra that brings it.
EXTRAS: Final = {
    "sqlalchemy": "sql",
    "psycopg": "postgresql",
    "pymysql": "mysql",
    "oracledb": "oracle",
    "ibm_db": "db2",
    "ibm_db_dbi": "db2",
    "ibm_db_sa": "db2",
    "mssql_python": "mssql",
    "jpype": "derby",
    "pyspark": "spark",
    "pyarrow": "spark",
    "matplotlib": "report",
    "fsspec": "object-store",
    "s3fs": "object-store",
    "adlfs": "object-store",
    "gcsfs": "object-store",
}
# The database in a URL, JDBC's or SQLAlchemy's, to the extra that brings its driver.
EXTRAS_OF_URLS: Final = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "oracle": "oracle",
    "db2": "db2",
    "ibm_db_sa": "db2",
    "mssql": "mssql",
    "sqlserver": "mssql",
    "jtds": "mssql",
    "derby": "derby",
}
DATABASE: Final = re.compile(r"(?:jdbc:)?([a-z0-9_]+)")
# What a URL of SQLAlchemy begins with; behind a `+` may be the driver.
DATABASES: Final = ("sqlite", "postgresql", "mysql", "mariadb", "oracle", "db2", "mssql", "derby")


def install_line(extra: str) -> str:
    """The command that installs an extra, as typed into a shell.

    >>> install_line("mysql")
    "pip install 'quiver-mq[mysql]'"
    """
    return f"pip install 'quiver-mq[{extra}]'"


def extra_of_url(url: str) -> str:
    """The extra that brings a database's driver; SQLite's is in Python.

    >>> extra_of_url("jdbc:mariadb://db/a"), extra_of_url("db2+ibm_db://db/a")
    ('mysql', 'db2')
    >>> extra_of_url("sqlite:///a.db")
    'sql'
    """
    found = DATABASE.match(url)
    return EXTRAS_OF_URLS.get(found[1] if found else "", "sql")


def is_database_url(url: str) -> bool:
    """Whether a URL is one of a database that we know; of JDBC's the vendor is not looked at.

    >>> is_database_url("jdbc:derby:a"), is_database_url("mysql+pymysql://db/a")
    (True, True)
    >>> is_database_url("hdfs://host/a")
    False
    """
    if url.startswith("jdbc:"):
        return True
    found = DATABASE.match(url)
    return found is not None and found[1] in (*EXTRAS_OF_URLS, *DATABASES)


def missing_package(error: ModuleNotFoundError, extra: str | None = None) -> str:
    """What is missing, and the command that installs it.

    Args:
        error: of the import.
        extra: the one that brings it; None asks the table by the package's name.

    >>> missing_package(ModuleNotFoundError(name="pyspark.sql"))
    "the Python package pyspark is missing: type pip install 'quiver-mq[spark]'"
    >>> missing_package(ModuleNotFoundError(name="x"))
    'the Python package x is missing: type pip install x'
    """
    package = (error.name or "").partition(".")[0]
    extra = extra or EXTRAS.get(package)
    line = install_line(extra) if extra else f"pip install {package}"
    return f"the Python package {package} is missing: type {line}"
