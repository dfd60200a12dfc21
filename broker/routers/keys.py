"""The key of a client: the text that its target is selected by. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.config.connection_routers import KeyType

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

__all__ = ["NO_KEY", "RoutedClient", "key_of"]

NO_KEY: Final = "NULL"
"""The key of a client that has none, or whose key the filter does not match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedClient:
    """What is known of a client when it asks to be let in.

    Attributes:
        remote: `ADDRESS:PORT` of it.
        client_id: as it says.
        user: as authenticated.
        roles: of the user.
        sni_host: host that it has asked for by TLS.
    """

    remote: str
    client_id: str | None = None
    user: str | None = None
    roles: frozenset[str] = frozenset()
    sni_host: str | None = None


def key_of(key_type: KeyType, key_filter: re.Pattern[str] | None, client: RoutedClient) -> str:
    """Give the key of a client.

    >>> import re
    >>> client = RoutedClient(remote="10.0.0.7:50123", client_id="FOO_1")
    >>> key_of(KeyType.SOURCE_IP, None, client), key_of(KeyType.USER_NAME, None, client)
    ('10.0.0.7', 'NULL')
    >>> key_of(KeyType.CLIENT_ID, re.compile("^.{3}"), client)
    'FOO'
    """
    for text in _texts(key_type, client):
        if key_filter is None:
            return text
        found = key_filter.search(text)
        if found is not None:
            return found[0]
    return NO_KEY


def _texts(key_type: KeyType, client: RoutedClient) -> Iterable[str]:
    """Give what may be the key, in order: of several roles the first one that matches is."""
    if key_type is KeyType.ROLE_NAME:
        # A user's roles have no order: by name, so that the same one is taken each time.
        return sorted(client.roles)
    if key_type is KeyType.SOURCE_IP:
        address = client.remote.rpartition(":")[0] or client.remote
        return (address,) if address else ()
    text = {
        KeyType.CLIENT_ID: client.client_id,
        KeyType.SNI_HOST: client.sni_host,
        KeyType.USER_NAME: client.user,
    }[key_type]
    return () if text is None else (text,)
