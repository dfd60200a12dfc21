"""`jdbc:oracle:thin:` URLs, for oracledb in thin mode.

Forms: `[user/password]@host:port:SID`, `@//host[:port]/service`, `@host[:port]/service`,
`@tcps://host:port/service?…`, `@(DESCRIPTION=…)`, `@alias`
(https://docs.oracle.com/en/database/oracle/oracle-database/23/jjdbc/data-sources-and-URLs.html).
"""

from __future__ import annotations

import re
from typing import Final

import sqlalchemy

from journal.errors import OptionError

__all__ = ["parse"]

PORT: Final = 1521


def parse(text: str) -> sqlalchemy.URL:
    """The URL of what stands behind `jdbc:oracle:`.

    >>> parse("thin:@//db/orders").query["service_name"]
    'orders'
    >>> parse("thin:@db:1522:XE").database
    'XE'
    """
    kind, _, rest = text.partition(":")
    if kind == "oci":
        raise OptionError("jdbc-connection-url: jdbc:oracle:oci needs a client; use oracle:thin")
    login, at, target = rest.partition("@")
    if kind != "thin" or not at or not target:
        raise OptionError("jdbc-connection-url: jdbc:oracle:thin: is followed by @target")
    user, _, password = login.partition("/")
    url = sqlalchemy.URL.create("oracle+oracledb", username=user or None, password=password or None)
    by_sid = re.fullmatch(r"([^:/()@]+|\[[^]]+\]):(\d+):([^:/()]+)", target)
    if by_sid:
        host, port, sid = by_sid.groups()
        return url.set(host=host.strip("[]"), port=int(port), database=sid)
    by_service = re.fullmatch(r"(?://)?([^:/()@?]+|\[[^]]+\])(?::(\d+))?/([^/:()?]+)", target)
    if by_service:
        host, port, service = by_service.groups()
        return url.set(
            host=host.strip("[]"), port=int(port or PORT), query={"service_name": service}
        )
    # A description, an alias of tnsnames.ora, or Easy Connect Plus: oracledb reads them itself.
    return url.set(host=target)
