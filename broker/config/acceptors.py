"""Acceptors: which parameters they take, and which protocols they are for.

A parameter that no acceptor has is refused with the nearest name, as an element is. The protocols
that are installed have their own. Those of Artemis that tune a JVM or a protocol that is not
installed are taken and change nothing; those that an operator would miss are in `MISSED`, and
`broker run` names them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from broker.config.transport import TransportConfig, transports
from broker.errors import BrokerError
from broker.protocols.registry import installed_protocols, read_parameters, unavailable
from broker.settings.value_types import TEXTS
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.document import Element
    from broker.config.xml_fields import Context
    from broker.protocols.registry import ProtocolManagerFactory

__all__ = ["MISSED", "acceptors"]

# Protocols that Artemis has.
_OF_ARTEMIS: Final = frozenset({"CORE", "AMQP", "STOMP", "HORNETQ", "MQTT", "OPENWIRE"})

_EFFECTIVE: Final = frozenset(
    {
        *("host", "port", "scheme", "protocol", "protocols", "autoStart", "backlog"),
        *("connectionsAllowed", "handshake-timeout", "sslEnabled", "keyStorePath", "keyStoreType"),
        *("keyStorePassword", "keyStoreAlias", "trustStorePath", "trustStoreType"),
        *("trustStorePassword", "crlPath", "enabledCipherSuites", "enabledProtocols"),
        *("needClientAuth", "wantClientAuth", "webSocketMaxFramePayloadLength"),
        *("stompMaxFramePayloadLength", "webSocketEncoderType", "webSocketCompressionSupported"),
        *("sniHost", "proxyProtocolEnabled", "router"),
    }
)
# Without effect in this version, and worth a word.
MISSED: Final = frozenset(
    {
        *("sslAutoReload", "securityDomain", "trustManagerFactoryPlugin", "verifyHost"),
        *("keyStoreProvider", "trustStoreProvider", "useInvm"),
    }
)
# Netty's and the JVM's (TransportConstants).
_OF_A_JVM: Final = frozenset(
    {
        *("httpResponseTime", "httpServerScanPeriod", "httpUpgradeEnabled", "useNio", "useEpoll"),
        *("useKQueue", "tcpNoDelay", "tcpSendBufferSize", "tcpReceiveBufferSize", "batchDelay"),
        *("writeBufferHighWaterMark", "writeBufferLowWaterMark", "nioRemotingThreads"),
        *("remotingThreads", "directDeliver", "sslProvider", "shutdownTimeout", "quietPeriod"),
        *("activemq.usemaskedpassword", "activemq.passwordcodec"),
    }
)
# Of AMQP, STOMP, MQTT and OpenWire (the setters of their protocol managers).
_OF_PROTOCOLS: Final = frozenset(
    {
        *("connectionTtl", "connectionTtlMax", "connectionTtlMin", "allowLinkStealing"),
        *("heartBeatToConnectionTtlModifier", "stomp-enable-message-id", "stompEnableMessageId"),
        *("stomp-min-large-message-size", "stompMinLargeMessageSize", "stompConsumerCredits"),
        *("stompConsumerWindowSize", "disableStompServerHeader"),
        *("ackManagerFlushTimeout", "mirrorMaxPendingAcks", "amqpMinLargeMessageSize"),
        *("amqpDuplicateDetection", "amqpIdleTimeout", "amqpCredits", "amqpLowCredits"),
        *("pubSubPrefix", "maxFrameSize", "saslMechanisms", "saslLoginConfigScope"),
        *("initialRemoteMaxFrameSize", "amqpUseModifiedForTransientDeliveryErrors"),
        *("amqpTreatRejectAsUnmodifiedDeliveryFailed", "amqpDrainOnTransientDeliveryErrors"),
        *("amqpLinkQuiesceTimeout", "defaultMqttSessionExpiryInterval", "topicAliasMaximum"),
        *("receiveMaximum", "maximumPacketSize", "serverKeepAlive"),
        *("closeMqttConnectionOnPublishAuthorizationFailure", "openwireMaxPacketChunkSize"),
        *("defaultMaximumInFlightPublishMessages", "openwireUseDuplicateDetectionOnFailover"),
        *("actorThresholdBytes", "rebalanceClusterClients", "updateClusterClients"),
        *("updateClusterClientsOnRemove", "brokerName", "useKeepAlive", "maxInactivityDuration"),
        *("maxInactivityDurationInitalDelay", "supportAdvisory", "openWireDestinationCacheSize"),
        *("suppressInternalManagementObjects", "virtualTopicConsumerWildcards"),
        *("virtualTopicConsumerLruCacheMax",),
    }
)
_KNOWN: Final = _EFFECTIVE | MISSED | _OF_A_JVM | _OF_PROTOCOLS


def acceptors(parent: Element, context: Context) -> tuple[TransportConfig, ...]:
    """Read <acceptors>; with `lenient`, skip those of protocols that are not installed."""
    elements = [child for child in parent.children if child.name == "acceptor"]
    try:
        installed = installed_protocols()
    except BrokerError as error:
        raise parent.wrong(error.text) from None
    own = {name for one in installed.values() for name in one.parameters}
    found = transports(parent, context, _KNOWN | own)
    checked = (_checked(*one, installed, context) for one in zip(elements, found, strict=True))
    return tuple(one for one in checked if one is not None)


def _checked(
    element: Element,
    transport: TransportConfig,
    installed: Mapping[str, ProtocolManagerFactory],
    context: Context,
) -> TransportConfig | None:
    parameters = transport.parameters
    if "protocols" not in parameters and "protocol" not in parameters:
        return _with_valid(element, transport, installed, installed, context)
    asked = [
        one for name in ("protocols", "protocol") for one in TEXTS.parse(parameters.get(name, ""))
    ]
    names = _OF_ARTEMIS | installed.keys()
    spoken = {name: one for name, one in installed.items() if unavailable(one) is None}
    for one in asked:
        if one in spoken:
            continue
        if one in installed:
            what = f"which cannot be spoken: {unavailable(installed[one])}"
        elif one in names:
            what = f"which this version does not speak; it speaks {', '.join(installed)}"
        else:
            what = f"which is unknown{nearest(one, names, '{}')}"
        context.unknown(element, f"acceptor {transport.name!r} is for protocol {one}, {what}")
    served = {one: spoken[one] for one in asked if one in spoken}
    if asked and not served:
        context.unknown(element, f"acceptor {transport.name!r} has no protocol and does not listen")
        return None
    found = dataclasses.replace(transport, parameters={**parameters, "protocols": ",".join(served)})
    return _with_valid(element, found, served or installed, installed, context)


def _with_valid(
    element: Element,
    transport: TransportConfig,
    spoken: Mapping[str, ProtocolManagerFactory],
    installed: Mapping[str, ProtocolManagerFactory],
    context: Context,
) -> TransportConfig:
    """Give it without parameters of protocols that it does not speak (lenient).

    Raises:
        ConfigError: a parameter of a protocol has a value that is not valid.
    """
    parameters = dict(transport.parameters)
    known = _KNOWN.union(*(one.parameters for one in spoken.values()))
    for name in transport.parameters:
        owner = next((one for one in installed.values() if name in one.parameters), None)
        if owner is not None and name not in known:
            context.unknown(
                element,
                f"acceptor {transport.name!r} has no parameter {name}; it is one of protocol "
                f"{owner.name}",
            )
            del parameters[name]
    try:
        for one in spoken.values():
            read_parameters(one, parameters)
    except ValueError as error:
        raise element.wrong(f"acceptor {transport.name!r}: {error}") from None
    return dataclasses.replace(transport, parameters=parameters)
