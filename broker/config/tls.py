"""The TLS of an acceptor, from the parameters of its URI.

    sslEnabled=true;keyStorePath=server.pem;keyStorePassword=…       certificate and key, PEM
    trustStorePath=clients.pem;needClientAuth=true                   who may come

Keystores of Java (JKS, PKCS #12) cannot be read by Python's ssl module; the error says how to turn
one into PEM.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from broker.config.errors import ConfigError
from broker.kinds import BOOLEAN, TEXTS

if TYPE_CHECKING:
    from broker.config.transport import TransportConfig

__all__ = ["server_context"]

FOREIGN_STORES = (".jks", ".jceks", ".p12", ".pfx", ".keystore")


def server_context(transport: TransportConfig) -> ssl.SSLContext:
    """The context of a TLS acceptor: TLS 1.2 or later, the system's ciphers unless told otherwise.

    Raises:
        ConfigError: no certificate, or one that cannot be read.
    """
    parameters = transport.parameters
    key_store = parameters.get("keyStorePath", "")
    if not key_store:
        raise ConfigError(f"{transport.where}: sslEnabled needs keyStorePath, a PEM file")
    for name in ("keyStorePath", "trustStorePath"):
        if parameters.get(name, "").lower().endswith(FOREIGN_STORES):
            raise ConfigError(
                f"{transport.where}: {name} is a keystore of Java; turn it into PEM with "
                "`openssl pkcs12 -in STORE -out FILE.pem -nodes`"
            )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(key_store, password=parameters.get("keyStorePassword"))
        if trust_store := parameters.get("trustStorePath"):
            context.load_verify_locations(trust_store)
        if ciphers := parameters.get("enabledCipherSuites"):
            context.set_ciphers(":".join(TEXTS.parse(ciphers)))
        # Wanted, or else refused; only one of the two holds.
        if BOOLEAN.parse(parameters.get("needClientAuth", "false")):
            context.verify_mode = ssl.CERT_REQUIRED
        elif BOOLEAN.parse(parameters.get("wantClientAuth", "false")):
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ValueError) as error:
        raise ConfigError(f"{transport.where}: TLS: {error}") from None
    return context
