"""Makes the options of an acceptor of what its URI says."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.config.errors import ConfigError
from broker.config.tls import server_context
from broker.protocols.registry import installed_protocols
from broker.settings.value_types import (
    BOOLEAN,
    INT,
    TEXTS,
    ValueType,
    at_least,
    choice,
    minus_one_or_more_than,
)
from broker.transport.acceptor import AcceptorOptions
from broker.transport.web_socket_options import WebSocketEncoder, WebSocketOptions

if TYPE_CHECKING:
    from typing import TypeVar

    from broker.config.load import BrokerConfig
    from broker.config.transport import TransportConfig

    T = TypeVar("T")

__all__ = ["acceptor_options"]

log = logging.getLogger("broker")

_SIZE: Final = minus_one_or_more_than(INT, 0, most=2**31 - 1)


def acceptor_options(transport: TransportConfig, config: BrokerConfig) -> AcceptorOptions:
    """Give the options of one acceptor.

    Raises:
        ConfigError: a value is not valid, or a certificate cannot be read.
    """
    if transport.scheme != "tcp":
        raise ConfigError(f"{transport.where}: scheme {transport.scheme!r}; acceptors take tcp")
    return AcceptorOptions(
        name=transport.name,
        host=transport.host or "localhost",
        port=transport.port,
        handshake_timeout_s=float(_parameter(transport, "handshake-timeout", INT, 10)),
        connections_allowed=_parameter(transport, "connectionsAllowed", INT, -1),
        ssl=server_context(transport, config.etc)
        if _parameter(transport, "sslEnabled", BOOLEAN, False)
        else None,
        protocols=TEXTS.parse(transport.parameters.get("protocols", "")),
        auto_start=_parameter(transport, "autoStart", BOOLEAN, True),
        backlog=_parameter(transport, "backlog", at_least(INT, 1), AcceptorOptions().backlog),
        router=transport.parameters.get("router", ""),
        is_behind_proxy=_parameter(transport, "proxyProtocolEnabled", BOOLEAN, False),
        web_socket=_web_socket(transport),
        parameters=_of_protocols(transport),
    )


def _web_socket(transport: TransportConfig) -> WebSocketOptions:
    defaults = WebSocketOptions()
    # The older name counts where the newer one is missing.
    older = _parameter(transport, "stompMaxFramePayloadLength", _SIZE, -1)
    if older != -1:
        log.info(
            "AMQ221038: acceptor %s: stompMaxFramePayloadLength is deprecated; use "
            "webSocketMaxFramePayloadLength",
            transport.name,
        )
    newer = _parameter(transport, "webSocketMaxFramePayloadLength", _SIZE, -1)
    return WebSocketOptions(
        frame_size_max=next(one for one in (newer, older, defaults.frame_size_max) if one != -1),
        encoder=_parameter(
            transport, "webSocketEncoderType", choice(WebSocketEncoder), defaults.encoder
        ),
        compresses=_parameter(transport, "webSocketCompressionSupported", BOOLEAN, False),
    )


def _of_protocols(transport: TransportConfig) -> dict[str, str]:
    """Give the parameters of its protocols; `broker.config.acceptors` has seen them all."""
    installed = installed_protocols()
    asked = TEXTS.parse(transport.parameters.get("protocols", "")) or installed
    own = {name for one in asked if one in installed for name in installed[one].parameters}
    return {name: text for name, text in transport.parameters.items() if name in own}


def _parameter(transport: TransportConfig, name: str, kind: ValueType[T], default: T) -> T:
    text = transport.parameters.get(name)
    if text is None:
        return default
    try:
        return kind.parse(text)
    except ValueError as error:
        raise ConfigError(f"{transport.where}: {name}: {error}") from None
