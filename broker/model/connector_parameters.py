"""Which parameters a connector takes, in broker.xml and in the URI of a client.

What one does, its reader decides: some of them are Artemis's alone, and do nothing here.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CONNECTOR_PARAMETERS", "OF_CLIENTS"]

# Parameters of a client (ServerLocator, ActiveMQConnectionFactory): a URI may be copied from one.
OF_CLIENTS: Final = frozenset(
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
        *("deserializationWhiteList", "onMessageWaitTimeout", "onMessageCloseTimeout"),
        *("failoverOnInitialConnection", "flowControlThreadPoolMaxSize", "passwordCodec"),
        *("ignoreJTA", "nodeID", "identity", "protocolManagerFactory"),
    }
)
# TransportConstants.ALLOWABLE_CONNECTOR_KEYS, and the keys of vm://.
CONNECTOR_PARAMETERS: Final = (
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
    | OF_CLIENTS
)
