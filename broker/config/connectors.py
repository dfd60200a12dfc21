"""Connectors: which parameters they take.

They are told to clients and to other brokers; what a parameter does, they decide. One that Artemis
does not have is refused with the nearest name, as an acceptor's is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config.transport import TransportConfig, transports

if TYPE_CHECKING:
    from broker.config.document import Element
    from broker.config.xml_fields import Context

__all__ = ["connectors"]

# Parameters of a client (ServerLocator, ActiveMQConnectionFactory): a URI may be copied from one.
_OF_CLIENTS: Final = frozenset(
    {
        *(
            "user",
            "password",
            "clientID",
            "groupID",
            "ha",
            "name",
            "type",
            "protocolManagerFactoryStr",
        ),
        *("connectionTTL", "clientFailureCheckPeriod", "callTimeout", "callFailoverTimeout"),
        *("minLargeMessageSize", "compressLargeMessage", "compressionLevel", "cacheDestinations"),
        *("consumerWindowSize", "consumerMaxRate", "producerWindowSize", "producerMaxRate"),
        *("confirmationWindowSize", "blockOnAcknowledge", "blockOnDurableSend"),
        *("blockOnNonDurableSend", "autoGroup", "preAcknowledge", "ackBatchSize"),
        *("retryInterval", "retryIntervalMultiplier", "maxRetryInterval", "reconnectAttempts"),
        *("initialConnectAttempts", "failoverAttempts", "useTopologyForLoadBalancing"),
        *("refreshTimeout", "initialWaitTimeout"),
        *("connectionLoadBalancingPolicyClassName", "initialMessagePacketSize"),
        *("useGlobalPools", "threadPoolMaxSize", "scheduledThreadPoolMaxSize"),
        *("cacheLargeMessagesClient", "incomingInterceptorList", "outgoingInterceptorList"),
        *("transactionBatchSize", "dupsOKBatchSize", "enableSharedClientID", "enable1xPrefixes"),
        *("deserializationAllowList", "deserializationDenyList", "deserializationBlackList"),
        *("deserializationWhiteList", "onMessageWaitTimeout"),
    }
)
# TransportConstants.ALLOWABLE_CONNECTOR_KEYS, and the keys of vm://.
_KNOWN: Final = (
    frozenset(
        {
            *("activemqServerName", "host", "port", "localAddress", "localPort", "sslEnabled"),
            *(
                "keyStoreProvider",
                "keyStoreType",
                "keyStorePath",
                "keyStorePassword",
                "keyStoreAlias",
            ),
            *("trustStoreProvider", "trustStoreType", "trustStorePath", "trustStorePassword"),
            *("crlPath", "enabledCipherSuites", "enabledProtocols", "verifyHost", "trustAll"),
            *("forceSSLParameters", "sniHost", "useDefaultSslContext", "sslProvider"),
            *("trustManagerFactoryPlugin", "handshake-timeout", "connect-timeout-millis"),
            *(
                "httpEnabled",
                "httpClientIdleTime",
                "httpClientIdleScanPeriod",
                "httpRequiresSessionId",
            ),
            *("httpUpgradeEnabled", "httpUpgradeEndpoint", "useServlet", "servletPath"),
            *("useNio", "useNioGlobalWorkerPool", "useEpoll", "useKQueue", "useGlobalWorkerPool"),
            *("tcpNoDelay", "tcpSendBufferSize", "tcpReceiveBufferSize", "batchDelay"),
            *("writeBufferHighWaterMark", "writeBufferLowWaterMark", "nioRemotingThreads"),
            *("remotingThreads", "socksEnabled", "socksHost", "socksPort", "socksVersion"),
            *("socksUsername", "socksPassword", "socksRemoteDNS"),
            *("activemq.usemaskedpassword", "activemq.passwordcodec"),
            *("serverId", "bufferPooling"),
        }
    )
    | _OF_CLIENTS
)


def connectors(parent: Element, context: Context) -> tuple[TransportConfig, ...]:
    """What stands in <connectors>."""
    return transports(parent, context, _KNOWN)
