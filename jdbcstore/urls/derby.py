"""`jdbc:derby:` URLs, for our own dialect over Derby's driver.

Forms: `[directory:]path[;property=value…]` in this process, `//host[:port]/path[;…]` on a network
server (https://db.apache.org/derby/docs/10.17/ref/rrefjdbc37352.html).
"""

from __future__ import annotations

from typing import Final

import sqlalchemy

from jdbcstore.urls.properties import pairs, split_host, translate
from journal.errors import OptionError

__all__ = ["parse"]

PORT: Final = 1527

# Passed on to Derby as they are.
PROPERTIES: Final = {
    name: name
    for name in (
        "user",
        "password",
        "create",
        "bootPassword",
        "collation",
        "dataEncryption",
        "decryptDatabase",
        "encryptionAlgorithm",
        "encryptionKey",
        "encryptionKeyLength",
        "encryptionProvider",
        "logDevice",
        "newBootPassword",
        "newEncryptionKey",
        "restoreFrom",
        "rollForwardRecoveryFrom",
        "securityMechanism",
        "ssl",
        "territory",
        "upgrade",
    )
}


def parse(text: str) -> sqlalchemy.URL:
    """The URL of what stands behind `jdbc:derby:`.

    >>> str(parse("data/derby/store;create=true"))
    'derby+embedded:///data/derby/store?create=true'
    >>> str(parse("//db/store"))
    'derby+network://db:1527/store'
    """
    where, _, properties = text.partition(";")
    arguments = translate("Derby", pairs(properties, ";"), PROPERTIES)
    user, password = arguments.pop("user", None), arguments.pop("password", None)
    if where.startswith("//"):
        authority, _, database = where[2:].partition("/")
        host, port = split_host(authority, PORT)
        if not host or not database:
            raise OptionError("jdbc-connection-url: jdbc:derby:// is followed by host/database")
        return sqlalchemy.URL.create(
            "derby+network", user, password, host, port, database, arguments
        )
    kind, _, rest = where.partition(":")
    if kind in ("memory", "classpath", "jar") and rest:
        raise OptionError(f"jdbc-connection-url: a Derby database in {kind}: keeps nothing")
    path = rest if kind == "directory" and rest else where
    if not path:
        raise OptionError("jdbc-connection-url: jdbc:derby: is followed by a path")
    return sqlalchemy.URL.create("derby+embedded", user, password, database=path, query=arguments)
