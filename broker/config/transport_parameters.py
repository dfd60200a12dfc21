"""Parameters that every acceptor has, whatever it speaks, with Artemis's defaults.

Those of a protocol are its factory's (broker.protocols.registry). This is what the manual says of
them; `acceptors.py` says which names are taken at all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ACCEPTOR_PARAMETERS", "CLIENT_PARAMETERS", "TransportParameter"]


class TransportParameter(NamedTuple):
    """A parameter in the URI of an acceptor or of a client.

    Attributes:
        name: Artemis's (TransportConstants).
        type: of its value.
        default: where the URI does not have it.
        meaning: what it does.
    """

    name: str
    type: str
    default: str
    meaning: str


_BOOLEAN: Final = "true or false"
_STORE: Final = "A PEM file, or a keystore of Java (PKCS12, JKS); its content says which."

ACCEPTOR_PARAMETERS: Final = tuple(
    TransportParameter(*row)
    for row in (
        ("protocols", "names, by commas", "all", "Protocols that clients may speak here."),
        ("protocol", "a name", "", "Older form of `protocols`."),
        ("host", "text", "the URI's", "Address to listen on; `0.0.0.0` is all."),
        ("port", "integer", "the URI's", "Port to listen on; 0 takes a free one."),
        ("scheme", "text", "tcp", "Set from the URI."),
        ("autoStart", _BOOLEAN, "true", "Whether it listens as soon as the broker is active."),
        ("backlog", "integer", "the system's", "Connections that may wait to be accepted."),
        ("connectionsAllowed", "integer", "-1", "Most connections at once; -1 without limit."),
        ("handshake-timeout", "seconds", "10", "How long a client may take to say who it is."),
        ("sslEnabled", _BOOLEAN, "false", "Whether connections are TLS, version 1.2 or later."),
        ("keyStorePath", "file", "", f"Certificate and key of the broker. {_STORE}"),
        ("keyStoreType", "PEM, PKCS12, JKS", "by content", "Kind of that file."),
        ("keyStorePassword", "text, may be masked", "", "Of that file."),
        ("keyStoreAlias", "text", "the only one", "Which key of that file."),
        ("trustStorePath", "file", "", f"Authorities of clients' certificates. {_STORE}"),
        ("trustStoreType", "PEM, PKCS12, JKS", "by content", "Kind of that file."),
        ("trustStorePassword", "text, may be masked", "", "Of that file."),
        ("crlPath", "file", "", "Certificates that were revoked (PEM)."),
        ("enabledCipherSuites", "names, by commas", "the system's", "Ciphers that are offered."),
        ("enabledProtocols", "names, by commas", "TLSv1.2,TLSv1.3", "Versions of TLS."),
        ("needClientAuth", _BOOLEAN, "false", "Whether clients need a certificate."),
        ("wantClientAuth", _BOOLEAN, "false", "Whether clients are asked for one."),
        ("sniHost", "regular expression", "", "Hosts that clients of TLS may ask for."),
        ("router", "a name", "", "Connection router that sends clients to other brokers."),
        ("proxyProtocolEnabled", _BOOLEAN, "false", "Whether proxies say whom they connect for."),
        ("webSocketMaxFramePayloadLength", "bytes", "65536", "Most in a frame of a WebSocket."),
        ("stompMaxFramePayloadLength", "bytes", "", "Older name of it."),
        ("webSocketEncoderType", "binary or text", "binary", "What STOMP is sent as."),
        ("webSocketCompressionSupported", _BOOLEAN, "false", "Whether permessage-deflate is."),
    )
)

# What broker.client.aio.transport reads of a connection; ClientOptions has the others.
CLIENT_PARAMETERS: Final = tuple(
    TransportParameter(*row)
    for row in (
        ("sslEnabled", _BOOLEAN, "false", "Whether the connection is TLS."),
        (
            "trustStorePath",
            "file",
            "the system's",
            f"Authorities that the broker's certificate may be of. {_STORE}",
        ),
        ("trustStorePassword", "text", "", "Of that file."),
        ("trustAll", _BOOLEAN, "false", "Take any certificate, of any host: for tests only."),
        (
            "verifyHost",
            _BOOLEAN,
            "true",
            "Whether the certificate has to be of the host that the URL names.",
        ),
        ("keyStorePath", "file", "", f"The client's own certificate and key. {_STORE}"),
        ("keyStorePassword", "text", "", "Of that file."),
        ("keyStoreAlias", "text", "the only one", "Which key of that file."),
        ("sniHost", "text", "the URL's host", "Host that is asked for, and verified, by TLS."),
    )
)
