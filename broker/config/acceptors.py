"""Acceptors: which parameters they take, and which protocols they are for.

A parameter that no acceptor has is refused with the nearest name, as an element is. Those of
Artemis that tune a JVM or a protocol that is not there yet are taken and change nothing; those that
an operator would miss are in `MISSED`, and `broker run` names them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from broker.config.binding import Context, nearest
from broker.config.transport import TransportConfig, transports
from broker.settings.value_types import TEXTS

if TYPE_CHECKING:
    from broker.config.document import Element

__all__ = ["MISSED", "SERVED", "acceptors"]

# Protocols of this version, and those that Artemis has beside.
SERVED: Final = ("CORE",)
_ALL: Final = (*SERVED, "AMQP", "STOMP", "HORNETQ", "MQTT", "OPENWIRE")

_EFFECTIVE: Final = frozenset(
    {
        *("host", "port", "scheme", "protocol", "protocols", "autoStart", "backlog"),
        *("connectionsAllowed", "handshake-timeout", "sslEnabled", "keyStorePath", "keyStoreType"),
        *("keyStorePassword", "keyStoreAlias", "trustStorePath", "trustStoreType"),
        *("trustStorePassword", "crlPath", "enabledCipherSuites", "enabledProtocols"),
        *("needClientAuth", "wantClientAuth"),
    }
)
# Without effect in this version, and worth a word.
MISSED: Final = frozenset(
    {
        *("anycastPrefix", "multicastPrefix", "sniHost", "sslAutoReload", "proxyProtocolEnabled"),
        *("router", "securityDomain", "trustManagerFactoryPlugin", "verifyHost"),
        *("keyStoreProvider", "trustStoreProvider", "useInvm", "clusterConnection"),
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
        *("stompConsumerWindowSize", "stompMaxFramePayloadLength", "disableStompServerHeader"),
        *(
            "webSocketMaxFramePayloadLength",
            "webSocketEncoderType",
            "webSocketCompressionSupported",
        ),
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
    """What stands in <acceptors>, without those that no served protocol is left to (lenient)."""
    found = transports(parent, context, _KNOWN)
    elements = [child for child in parent.children if child.name == "acceptor"]
    checked = (_checked(*one, context) for one in zip(elements, found, strict=True))
    return tuple(one for one in checked if one is not None)


def _checked(
    element: Element, transport: TransportConfig, context: Context
) -> TransportConfig | None:
    parameters = transport.parameters
    if "protocols" not in parameters and "protocol" not in parameters:
        return transport
    asked = [
        one for name in ("protocols", "protocol") for one in TEXTS.parse(parameters.get(name, ""))
    ]
    for one in asked:
        if one in SERVED:
            continue
        if one in _ALL:
            what = f"which this version does not speak; it speaks {', '.join(SERVED)}"
        else:
            what = f"which is unknown{nearest(one, _ALL, '{}')}"
        context.unknown(element, f"acceptor {transport.name!r} is for protocol {one}, {what}")
    served = [one for one in asked if one in SERVED]
    if asked and not served:
        context.unknown(element, f"acceptor {transport.name!r} has no protocol and does not listen")
        return None
    return dataclasses.replace(transport, parameters={**parameters, "protocols": ",".join(served)})
