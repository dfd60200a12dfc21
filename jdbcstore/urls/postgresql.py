"""`jdbc:postgresql:` URLs, for psycopg.

Forms: `//host[:port][,host[:port]…]/database`, `//host/`, `database` (on this machine), each with
`?property=value&…` (https://jdbc.postgresql.org/documentation/use/).
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

import sqlalchemy

from jdbcstore.urls.properties import Meaning, is_true, pairs, seconds, split_host, translate
from journal.errors import OptionError

__all__ = ["parse"]

PORT: Final = 5432

# libpq's target_session_attrs for the driver's targetServerType.
SESSIONS: Final = {
    "any": "any",
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "slave": "standby",
    "preferprimary": "any",
    "prefersecondary": "prefer-standby",
    "preferslave": "prefer-standby",
}


def _session(value: str) -> dict[str, str]:
    try:
        return {"target_session_attrs": SESSIONS[value.lower()]}
    except KeyError:
        raise OptionError(f"jdbc-connection-url: targetServerType is {value!r}") from None


def _ssl(value: str) -> dict[str, str]:
    # Since 42.2.5 ssl=true verifies certificate and host name; without it TLS is tried.
    return {"sslmode": "verify-full"} if is_true(value) else {}


PROPERTIES: Final[Meaning] = {
    "user": "user",
    "password": "password",
    "PGDBNAME": "dbname",
    "ssl": _ssl,
    "sslmode": "sslmode",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslrootcert": "sslrootcert",
    "sslpassword": "sslpassword",
    "sslNegotiation": "sslnegotiation",
    "channelBinding": "channel_binding",
    "gssEncMode": "gssencmode",
    "kerberosServerName": "krbsrvname",
    "requireAuth": "require_auth",
    "connectTimeout": lambda value: {"connect_timeout": seconds(value, 1000)},
    "loginTimeout": lambda value: {"connect_timeout": seconds(value, 1000)},
    "ApplicationName": "application_name",
    "options": "options",
    "currentSchema": lambda value: {"options": f"-c search_path={value.replace(' ', '')}"},
    "targetServerType": _session,
    "loadBalanceHosts": lambda value: {
        "load_balance_hosts": "random" if is_true(value) else "disable"
    },
    "tcpKeepAlive": lambda value: {"keepalives": "1" if is_true(value) else "0"},
    "prepareThreshold": "prepare_threshold",
}
WITHOUT_EFFECT: Final = (
    "adaptiveFetch",
    "adaptiveFetchMaximum",
    "adaptiveFetchMinimum",
    "allowEncodingChanges",
    "assumeMinServerVersion",
    "autosave",
    "binaryTransfer",
    "binaryTransferDisable",
    "binaryTransferEnable",
    "cancelSignalTimeout",
    "cleanupSavepoints",
    "databaseMetadataCacheFields",
    "databaseMetadataCacheFieldsMiB",
    "defaultRowFetchSize",
    "disableColumnSanitiser",
    "escapeSyntaxCallMode",
    "hideUnprivilegedObjects",
    "hostRecheckSeconds",
    "logServerErrorDetail",
    "logUnclosedConnections",
    "loggerFile",
    "loggerLevel",
    "maxResultBuffer",
    "preferQueryMode",
    "preparedStatementCacheQueries",
    "preparedStatementCacheSizeMiB",
    "quoteReturningIdentifiers",
    "reWriteBatchedInserts",
    "readOnlyMode",
    "receiveBufferSize",
    "sendBufferSize",
    "socketTimeout",  # jdbc-network-timeout says it.
    "stringtype",
    "tcpNoDelay",
    "unknownLength",
)


def parse(text: str) -> sqlalchemy.URL:
    """The URL of what stands behind `jdbc:postgresql:`.

    >>> parse("//a,b:5433/db?ssl=true").query["host"]
    ('a:5432', 'b:5433')
    """
    where, _, query = text.partition("?")
    arguments = translate("PostgreSQL", pairs(query, "&"), PROPERTIES, WITHOUT_EFFECT)
    hosts, database = "localhost", where
    if where.startswith("//"):
        hosts, _, database = where[2:].partition("/")
    found = [split_host(host, PORT) for host in (hosts or "localhost").split(",")]
    user = arguments.pop("user", None)
    name = arguments.pop("dbname", unquote(database).strip("/") or user)
    url = sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=user,
        password=arguments.pop("password", None),
        database=name,
        query=arguments,
    )
    if len(found) == 1:
        return url.set(host=found[0][0], port=found[0][1])
    return url.update_query_dict({"host": [f"{host}:{port}" for host, port in found]})
