"""What an acceptor knows of WebSockets before one comes: their limits, and how they begin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from broker.protocols.registry import Detection

__all__ = ["HTTP_SIZE", "WebSocketEncoder", "WebSocketOptions", "is_http"]

# Methods that Artemis takes for HTTP (ProtocolHandler.isHttp).
_METHODS: Final = tuple(
    f"{name} ".encode()
    for name in ("GET", "POST", "PUT", "HEAD", "OPTIONS", "PATCH", "DELETE", "TRACE")
)
HTTP_SIZE: Final = max(map(len, _METHODS))  # Bytes that is_http() needs at most.


class WebSocketEncoder(Enum):
    """What messages the broker sends."""

    binary = "binary"
    text = "text"
    """Of text, by protocols that may; others send binary ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketOptions:
    """The WebSockets of an acceptor.

    Attributes:
        frame_size_max: bytes of a frame's payload (webSocketMaxFramePayloadLength).
        encoder: which messages are sent (webSocketEncoderType).
        compresses: clients may ask for permessage-deflate (webSocketCompressionSupported).
    """

    # DEFAULT_WEB_SOCKET_MAX_FRAME_PAYLOAD_LENGTH
    frame_size_max: int = 64 * 1024
    encoder: WebSocketEncoder = WebSocketEncoder.binary
    compresses: bool = False


def is_http(first: bytes) -> Detection:
    """Whether a connection begins with a request of HTTP."""
    if first.startswith(_METHODS):
        return Detection.YES
    if any(method.startswith(first) for method in _METHODS):
        return Detection.MORE
    return Detection.NO
