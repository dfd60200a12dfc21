"""`jdbc:db2:` URLs, for ibm_db.

Form: `//host[:port]/database[:property=value;…]`, each property ending in a semicolon
(https://www.ibm.com/docs/en/db2/12.1?topic=cdsudidsdjs-url-format-data-server-driver-jdbc-sqlj).
The arguments in the URL's query are keywords of the CLI driver's connection string.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy

from jdbcstore.urls.properties import Meaning, is_true, pairs, seconds, split_host, translate
from journal.errors import OptionError

__all__ = ["parse"]

PORT: Final = 50000

# securityMechanism of the JDBC driver → Authentication of the CLI driver.
MECHANISMS: Final = {"3": "SERVER", "4": "SERVER", "9": "SERVER_ENCRYPT", "11": "KERBEROS"}


def _mechanism(value: str) -> dict[str, str]:
    try:
        return {"Authentication": MECHANISMS[value]}
    except KeyError:
        raise OptionError(
            f"jdbc-connection-url: securityMechanism {value} is not one of {', '.join(MECHANISMS)}"
        ) from None


PROPERTIES: Final[Meaning] = {
    "user": "user",
    "password": "password",
    "sslConnection": lambda value: {"Security": "SSL"} if is_true(value) else {},
    "sslCertLocation": "SSLServerCertificate",
    "sslClientHostnameValidation": lambda value: {
        "SSLClientHostnameValidation": "Basic" if is_true(value) else "Off"
    },
    "currentSchema": "CurrentSchema",
    "securityMechanism": _mechanism,
    "loginTimeout": lambda value: {"ConnectTimeout": seconds(value, 1000)},
    "connectionTimeout": lambda value: {"ConnectTimeout": seconds(value, 1000)},
    "clientProgramName": "ClientApplName",
    "clientApplicationInformation": "ClientApplName",
    "authentication": "Authentication",
}
WITHOUT_EFFECT: Final = (
    "blockingReadConnectionTimeout",  # jdbc-network-timeout says it.
    "deferPrepares",
    "driverType",
    "enableSeamlessFailover",
    "enableSysplexWLB",
    "fullyMaterializeLobData",
    "progressiveStreaming",
    "queryDataSize",
    "retrieveMessagesFromServerOnGetMessage",
    "traceLevel",
)


def parse(text: str) -> sqlalchemy.URL:
    """The URL of what stands behind `jdbc:db2:`.

    >>> parse("//db:50001/SAMPLE:sslConnection=true;user=me;").query["Security"]
    'SSL'
    """
    if not text.startswith("//"):
        raise OptionError("jdbc-connection-url: jdbc:db2: is followed by //host:port/database")
    authority, _, rest = text[2:].partition("/")
    database, _, properties = rest.partition(":")
    arguments = translate("DB2", pairs(properties, ";"), PROPERTIES, WITHOUT_EFFECT)
    host, port = split_host(authority, PORT)
    if not host or not database:
        raise OptionError("jdbc-connection-url: jdbc:db2: is followed by //host:port/database")
    return sqlalchemy.URL.create(
        "db2+ibm_db",
        username=arguments.pop("user", None),
        password=arguments.pop("password", None),
        host=host,
        port=port,
        database=database,
        query=arguments,
    )
