r"""The TLS of an acceptor, from the parameters of its URI.

    sslEnabled=true;keyStorePath=server.pem;keyStorePassword=…       certificate and key
    trustStorePath=clients.pem;needClientAuth=true                   clients that may connect
    sniHost=.*\.example\.com                                        hosts that clients may ask for

A store is a PEM file or a keystore of Java (PKCS12, JKS). A relative path is below the working
directory or, as on Artemis's class path, in the folder of broker.xml.
"""

from __future__ import annotations

import os
import re
import ssl
from typing import TYPE_CHECKING, Final

from broker.config.errors import ConfigError
from broker.security.keystores import load_key, load_trusted
from broker.settings.value_types import BOOLEAN, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.config.transport import TransportConfig

__all__ = ["server_context"]

# By content: Java reads PKCS12 under the name JKS, and the other way round.
_STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
_VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


def server_context(transport: TransportConfig, folder: Path | None = None) -> ssl.SSLContext:
    """The context of a TLS acceptor: TLS 1.2 or later, the system's ciphers unless told otherwise.

    Args:
        transport: the acceptor.
        folder: of broker.xml, where relative paths are looked for, too.

    Raises:
        ConfigError: no certificate, or one that cannot be read.
    """
    parameters = transport.parameters
    if not parameters.get("keyStorePath"):
        raise ConfigError(
            f"{transport.where}: sslEnabled needs keyStorePath: a PEM file, PKCS12 or JKS"
        )
    for name in ("keyStoreType", "trustStoreType"):
        kind = parameters.get(name, "PEM")
        if kind.upper() not in _STORE_TYPES:
            raise ConfigError(f"{transport.where}: {name} {kind!r}; one of {list(_STORE_TYPES)}")

    def path(name: str) -> str:
        text = parameters.get(name, "").removeprefix("file:")
        if text and folder is not None and not os.path.isfile(text) and (folder / text).is_file():
            return str(folder / text)
        return text

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = TlsObject
    context.sni_callback = _noted
    try:
        _limit_versions(context, parameters.get("enabledProtocols", ""))
        load_key(
            context,
            path("keyStorePath"),
            parameters.get("keyStorePassword"),
            parameters.get("keyStoreAlias"),
        )
        if trust_store := path("trustStorePath"):
            load_trusted(context, trust_store, parameters.get("trustStorePassword"))
        if revoked := path("crlPath"):
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
        if ciphers := parameters.get("enabledCipherSuites"):
            context.set_ciphers(":".join(TEXTS.parse(ciphers)))
        if host := parameters.get("sniHost"):
            context.sni_callback = _only(host)
        # Wanted, or else refused; only one of the two holds.
        if BOOLEAN.parse(parameters.get("needClientAuth", "false")):
            context.verify_mode = ssl.CERT_REQUIRED
        elif BOOLEAN.parse(parameters.get("wantClientAuth", "false")):
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ValueError, re.error) as error:
        raise ConfigError(f"{transport.where}: TLS: {error}") from None
    return context


class TlsObject(ssl.SSLObject):
    """The TLS of one connection.

    Attributes:
        sni_host: host that the client has asked for; None without one.
    """

    sni_host: str | None = None


def _noted(connection: ssl.SSLObject, asked: str | None, context: ssl.SSLContext) -> None:
    """Keep what a client has asked for: a connection router may want it (SNI_HOST)."""
    if isinstance(connection, TlsObject):
        connection.sni_host = asked


def _only(host: str) -> Callable[[ssl.SSLObject, str | None, ssl.SSLContext], int | None]:
    """Refuse clients that ask for a host which does not match; those that ask for none come in.

    Args:
        host: a regular expression for all of the name, in letters of either case (sniHost).

    Raises:
        re.error: it is none.
    """
    matches = re.compile(host, re.IGNORECASE).fullmatch

    def check(connection: ssl.SSLObject, asked: str | None, context: ssl.SSLContext) -> int | None:
        _noted(connection, asked, context)
        if asked is None or matches(asked):
            return None
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    return check


def _limit_versions(context: ssl.SSLContext, text: str) -> None:
    """Allow the versions of TLS that are named (enabledProtocols); those before 1.2 never."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not text:
        return
    versions = [_VERSIONS[one] for one in TEXTS.parse(text) if one in _VERSIONS]
    if not versions:
        raise ValueError(f"enabledProtocols: none of {', '.join(_VERSIONS)} in {text!r}")
    context.minimum_version, context.maximum_version = min(versions), max(versions)
