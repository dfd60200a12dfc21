"""`jdbc:mysql:` and `jdbc:mariadb:` URLs, for PyMySQL.

Form: `//[user[:password]@]host[:port]/database?property=value&…`
(https://dev.mysql.com/doc/connector-j/en/connector-j-reference-jdbc-url-format.html,
https://mariadb.com/kb/en/about-mariadb-connector-j/). PyMySQL speaks to one host; a list of them
needs a proxy in front of the servers.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

import sqlalchemy

from jdbcstore.urls.properties import Meaning, is_true, pairs, seconds, split_host, translate
from journal.errors import OptionError

__all__ = ["parse"]

PORT: Final = 3306

VERIFY: Final = {"ssl_verify_cert": "true"}
VERIFY_HOST: Final = {"ssl_verify_cert": "true", "ssl_verify_identity": "true"}
ENCRYPT: Final = {"ssl_verify_cert": "false", "ssl_verify_identity": "false"}
# Connector/J's names, then MariaDB's. PREFERRED is what PyMySQL does when told nothing.
SSL_MODES: Final[dict[str, dict[str, str]]] = {
    "disabled": {"ssl_disabled": "true"},
    "preferred": {},
    "required": ENCRYPT,
    "verify_ca": VERIFY,
    "verify_identity": VERIFY_HOST,
    "disable": {"ssl_disabled": "true"},
    "trust": ENCRYPT,
    "verify-ca": VERIFY,
    "verify-full": VERIFY_HOST,
}


def _ssl_mode(value: str) -> dict[str, str]:
    try:
        return SSL_MODES[value.lower()]
    except KeyError:
        raise OptionError(f"jdbc-connection-url: sslMode is {value!r}") from None


def _session_variables(value: str) -> dict[str, str]:
    return {"init_command": f"SET {value}"}


PROPERTIES: Final[Meaning] = {
    "user": "user",
    "password": "password",
    "sslMode": _ssl_mode,
    "useSSL": lambda value: {} if is_true(value) else SSL_MODES["disabled"],
    "requireSSL": lambda value: ENCRYPT if is_true(value) else {},
    "verifyServerCertificate": lambda value: VERIFY if is_true(value) else {},
    "serverSslCert": "ssl_ca",
    "connectTimeout": lambda value: {"connect_timeout": seconds(value, 1)},
    "sessionVariables": _session_variables,
    "localSocket": "unix_socket",
}
WITHOUT_EFFECT: Final = (
    "allowMultiQueries",
    "allowPublicKeyRetrieval",
    "autoReconnect",
    "autoReconnectForPools",
    "cacheCallableStmts",
    "cachePrepStmts",
    "cacheResultSetMetadata",
    "cacheServerConfiguration",
    "characterEncoding",  # Always utf8mb4.
    "connectionCollation",
    "connectionTimeZone",
    "createDatabaseIfNotExist",
    "elideSetAutoCommits",
    "failOverReadOnly",
    "forceConnectionTimeZoneToSession",
    "jdbcCompliantTruncation",
    "maintainTimeStats",
    "maxReconnects",
    "nullCatalogMeansCurrent",
    "prepStmtCacheSize",
    "prepStmtCacheSqlLimit",
    "rewriteBatchedStatements",
    "serverTimezone",
    "socketTimeout",  # jdbc-network-timeout says it.
    "tcpKeepAlive",
    "tcpNoDelay",
    "tinyInt1isBit",
    "useAffectedRows",
    "useBulkStmts",
    "useCompression",
    "useLegacyDatetimeCode",
    "useLocalSessionState",
    "useServerPrepStmts",
    "useUnicode",
    "zeroDateTimeBehavior",
)


def parse(text: str, vendor: str = "mysql") -> sqlalchemy.URL:
    """The URL of what stands behind `jdbc:mysql:` or `jdbc:mariadb:`.

    >>> parse("//db:3307/artemis?user=me").port
    3307
    """
    where, _, query = text.partition("?")
    arguments = translate("MySQL", pairs(query, "&"), PROPERTIES, WITHOUT_EFFECT)
    if not where.startswith("//"):
        raise OptionError(f"jdbc-connection-url: jdbc:{vendor}: is followed by //host/database")
    authority, _, database = where[2:].partition("/")
    login, _, host = authority.rpartition("@")
    if "," in host or "(" in host:
        raise OptionError(
            "jdbc-connection-url: several MySQL hosts need a proxy in front of them; name that"
        )
    user, _, password = login.partition(":")
    name, port = split_host(host or "localhost", PORT)
    return sqlalchemy.URL.create(
        f"{vendor}+pymysql",
        username=arguments.pop("user", unquote(user) or None),
        password=arguments.pop("password", unquote(password) or None),
        host=name,
        port=port,
        database=unquote(database) or None,
        query=arguments,
    )
