r"""`jdbc:sqlserver:` and `jdbc:jtds:sqlserver:` URLs, for mssql-python.

Forms: `//[server[\instance][:port]][;property=value…]`, where a value in braces may hold
semicolons (https://learn.microsoft.com/sql/connect/jdbc/building-the-connection-url), and jTDS's
`//server[:port][/database][;property=value…]`. The arguments in the URL's query are keywords of
the ODBC driver that mssql-python brings along.
"""

from __future__ import annotations

import re
from typing import Final

import sqlalchemy

from jdbcstore.urls.properties import Meaning, is_true, split_host, translate
from journal.errors import OptionError

__all__ = ["parse", "parse_jtds"]

PORT: Final = 1433

PROPERTY: Final = re.compile(r"\s*([^=;{}]+)=(?:\{((?:[^}]|\}\})*)\}|([^;]*))(?:;|$)")


def _encrypt(value: str) -> dict[str, str]:
    if value.lower() in ("strict", "mandatory", "optional"):
        return {"Encrypt": value.lower()}
    return {"Encrypt": "yes" if is_true(value) else "no"}


PROPERTIES: Final[Meaning] = {
    "user": "user",
    "userName": "user",
    "password": "password",
    "databaseName": "database",
    "database": "database",
    "serverName": "server",
    "server": "server",
    "portNumber": "port",
    "port": "port",
    "instanceName": "instance",
    "instance": "instance",
    "encrypt": _encrypt,
    "trustServerCertificate": lambda value: {
        "TrustServerCertificate": "yes" if is_true(value) else "no"
    },
    "hostNameInCertificate": "HostNameInCertificate",
    "serverCertificate": "ServerCertificate",
    "authentication": "Authentication",
    "integratedSecurity": lambda value: {"Trusted_Connection": "yes"} if is_true(value) else {},
    "multiSubnetFailover": lambda value: {"MultiSubnetFailover": "yes"} if is_true(value) else {},
    "applicationIntent": "ApplicationIntent",
    "packetSize": "PacketSize",
    "ipAddressPreference": "IpAddressPreference",
}
WITHOUT_EFFECT: Final = (
    "applicationName",
    "appName",
    "columnEncryptionSetting",
    "connectRetryCount",
    "connectRetryInterval",
    "disableStatementPooling",
    "lastUpdateCount",
    "lockTimeout",
    "loginTimeout",  # jdbc-network-timeout says it.
    "queryTimeout",
    "responseBuffering",
    "selectMethod",
    "sendStringParametersAsUnicode",
    "sendTimeAsDatetime",
    "socketTimeout",
    "statementPoolingCacheSize",
    "tcpNoDelay",
    "workstationID",
    "xopenStates",
)


def parse(text: str) -> sqlalchemy.URL:
    r"""The URL of what stands behind `jdbc:sqlserver:`.

    >>> parse("//db:1434;databaseName=artemis;password={a;b}").password
    'a;b'
    """
    where, _, properties = text.partition(";")
    if not where.startswith("//"):
        raise OptionError("jdbc-connection-url: jdbc:sqlserver: is followed by //host;property=…")
    return _url(where[2:], _pairs(properties))


def parse_jtds(text: str) -> sqlalchemy.URL:
    """The URL of what stands behind `jdbc:jtds:`.

    >>> parse_jtds("sqlserver://db/artemis").database
    'artemis'
    """
    where, _, properties = text.partition(";")
    if not where.startswith("sqlserver://"):
        raise OptionError(
            "jdbc-connection-url: jdbc:jtds: is followed by sqlserver://host/database"
        )
    host, _, database = where.removeprefix("sqlserver://").partition("/")
    return _url(host, {**({"database": database} if database else {}), **_pairs(properties)})


def _pairs(text: str) -> dict[str, str]:
    found, position = {}, 0
    while position < len(text):
        match = PROPERTY.match(text, position)
        if match is None:
            if not text[position:].strip(" ;"):
                break
            raise OptionError("jdbc-connection-url: a property of SQL Server reads name=value")
        name, braced, bare = match.groups()
        found[name.strip()] = bare.strip() if braced is None else braced.replace("}}", "}")
        position = match.end()
    return found


def _url(where: str, given: dict[str, str]) -> sqlalchemy.URL:
    arguments = translate("SQL Server", given, PROPERTIES, WITHOUT_EFFECT)
    authority, _, tail = where.partition("\\")
    instance, _, port = tail.partition(":")
    host, number = split_host(authority + (f":{port}" if port else ""), PORT)
    host = arguments.pop("server", host) or "localhost"
    instance = arguments.pop("instance", instance)
    if "port" in arguments:
        number = split_host(f"x:{arguments.pop('port')}", PORT)[1]
    # With an instance the server's browser service tells the port, unless one is given too.
    has_port = bool(port) or number != PORT or not instance
    return sqlalchemy.URL.create(
        "mssql+mssqlpython",
        username=arguments.pop("user", None),
        password=arguments.pop("password", None),
        host=f"{host}\\{instance}" if instance and not has_port else host,
        port=number if has_port else None,
        database=arguments.pop("database", None),
        query=arguments,
    )
