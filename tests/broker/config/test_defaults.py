"""Every element of <core> that is a single value has Artemis's default, but where it says so.

From ActiveMQDefaultConfiguration; `half of the timeout` and the like are 0 or None here and said in
the field's comment.
"""

import dataclasses

import pytest

from broker.config import BrokerConfig
from broker.config.cluster import BridgeConfig, BroadcastGroup, ClusterConnection, DiscoveryGroup
from broker.config.core import (
    CriticalAnalyzerPolicy,
    GeneralConfig,
    LimitsConfig,
    ManagementConfig,
    SecurityConfig,
    WatchConfig,
)
from broker.config.persistence import PersistenceConfig
from broker.config.xml_fields import _items
from journal.options import JournalType

DEFAULTS = {
    GeneralConfig: {
        "name": None,
        "system-property-prefix": "brokerconfig.",
        "resolve-protocols": True,
        "graceful-shutdown-enabled": False,
        "graceful-shutdown-timeout": -1,
        "configuration-file-refresh-period": 5000,
        "scheduled-thread-pool-max-size": 5,
        "thread-pool-max-size": 30,
        "async-connection-execution-enabled": True,
        "connection-ttl-override": -1,
        "connection-ttl-check-interval": 2000,
        "transaction-timeout": 300000,
        "transaction-timeout-scan-period": 1000,
        "message-expiry-scan-period": 30000,
        "address-queue-scan-period": 30000,
        "id-cache-size": 20000,
        "persist-id-cache": True,
        "wild-card-routing-enabled": True,
        "literal-match-markers": None,
        "temporary-queue-namespace": "",
        "uuid-namespace": "",
        "internal-naming-prefix": "$.artemis.internal.",
        "amqp-use-core-subscription-naming": False,
        "suppress-session-notifications": False,
        "mqtt-session-scan-interval": 5000,
        "mqtt-session-state-persistence-timeout": 5000,
        "mqtt-subscription-persistence-enabled": True,
        "mirror-page-transaction": False,
        "mirror-ack-manager-page-attempts": 2,
        "mirror-ack-manager-queue-attempts": 5,
        "mirror-ack-manager-retry-delay": 100,
        "mirror-ack-manager-warn-unacked": False,
        "log-delegate-factory-class-name": None,
    },
    LimitsConfig: {
        "global-max-size": -1,
        "global-max-size-percent-of-jvm-max-memory": 50,
        "global-max-messages": -1,
        "max-disk-usage": 90,
        "min-disk-free": -1,
        "disk-scan-period": 5000,
        "memory-warning-threshold": 25,
        "memory-measure-interval": -1,
    },
    SecurityConfig: {
        "security-enabled": True,
        "security-invalidation-interval": 10000,
        "authentication-cache-size": 1000,
        "authorization-cache-size": 1000,
        "cluster-user": "ACTIVEMQ.CLUSTER.ADMIN.USER",
        "cluster-password": "CHANGE ME!!",
        "mask-password": None,
        "password-codec": "org.apache.activemq.artemis.utils.DefaultSensitiveStringCodec",
        "populate-validated-user": False,
        "reject-empty-validated-user": False,
    },
    ManagementConfig: {
        "management-address": "activemq.management",
        "management-notification-address": "activemq.notifications",
        "management-message-rbac": False,
        "management-rbac-prefix": "mops",
        "view-permission-method-match-pattern": "^(get|is|count|list|browse|query).*$",
        "jmx-management-enabled": True,
        "jmx-domain": "org.apache.activemq.artemis",
        "jmx-use-broker-name": True,
        "message-counter-enabled": False,
        "message-counter-sample-period": 10000,
        "message-counter-max-day-history": 10,
    },
    WatchConfig: {
        "server-dump-interval": -1,
        "stranded-message-period": 60000,
        "critical-analyzer": True,
        "critical-analyzer-timeout": 120000,
        "critical-analyzer-check-period": 0,
        "critical-analyzer-policy": CriticalAnalyzerPolicy.LOG,
        "network-check-list": None,
        "network-check-URL-list": None,
        "network-check-period": 5000,
        "network-check-timeout": 1000,
        "network-check-NIC": None,
        "network-check-ping-command": None,
        "network-check-ping6-command": None,
    },
    PersistenceConfig: {
        "persistence-enabled": True,
        "store": None,
        "bindings-directory": "data/bindings",
        "create-bindings-dir": True,
        "journal-directory": "data/journal",
        "create-journal-dir": True,
        "node-manager-lock-directory": None,
        "paging-directory": "data/paging",
        "large-messages-directory": "data/largemessages",
        "journal-retention-directory": None,
        "journal-type": JournalType.ASYNCIO,
        "journal-datasync": True,
        "journal-sync-transactional": True,
        "journal-sync-non-transactional": True,
        "journal-file-size": 10485760,
        "journal-min-files": 2,
        "journal-pool-files": -1,
        "journal-max-io": None,
        "journal-buffer-timeout": None,
        "journal-buffer-size": 501760,
        "journal-device-block-size": None,
        "journal-compact-min-files": 10,
        "journal-compact-percentage": 30,
        "journal-lock-acquisition-timeout": None,
        "journal-file-open-timeout": 5,
        "journal-max-attic-files": 10,
        "log-journal-write-rate": False,
        "page-sync-timeout": None,
        "page-max-concurrent-io": 5,
        "read-whole-page": False,
        "purge-page-folders": False,
        "large-message-sync": True,
        "persist-delivery-count-before-delivery": False,
        "max-redelivery-records": 10,
    },
    BroadcastGroup: {
        "local-bind-address": None,
        "local-bind-port": -1,
        "group-address": None,
        "group-port": -1,
        "broadcast-period": 2000,
        "connector-ref": (),
        "jgroups-file": None,
        "jgroups-channel": None,
        "endpoint": None,
    },
    DiscoveryGroup: {
        "local-bind-address": None,
        "local-bind-port": -1,
        "group-address": None,
        "group-port": -1,
        "refresh-timeout": 10000,
        "initial-wait-timeout": 10000,
        "jgroups-file": None,
        "jgroups-channel": None,
        "endpoint": None,
    },
    ClusterConnection: {
        "address": "",
        "check-period": 30000,
        "connection-ttl": 60000,
        "min-large-message-size": 102400,
        "call-timeout": 30000,
        "call-failover-timeout": -1,
        "retry-interval": 500,
        "retry-interval-multiplier": 1.0,
        "max-retry-interval": 2000,
        "initial-connect-attempts": -1,
        "reconnect-attempts": -1,
        "use-duplicate-detection": True,
        "forward-when-no-consumers": None,
        "max-hops": 1,
        "confirmation-window-size": 10485760,
        # Artemis has 1 MiB: docs/decisions/0022.
        "producer-window-size": 8388608,
        "notification-interval": 1000,
        "notification-attempts": 2,
        "topology-scanner-attempts": 30,
        "client-id": None,
        "discovery-group-ref": None,
        "static-connectors": None,
        "scale-down-connector": None,
    },
    BridgeConfig: {
        "forwarding-address": None,
        "ha": False,
        "filter": None,
        "transformer": None,
        "transformer-class-name": None,
        "min-large-message-size": 102400,
        "check-period": 30000,
        "connection-ttl": 60000,
        "retry-interval": 2000,
        "retry-interval-multiplier": 1.0,
        "max-retry-interval": 2000,
        "initial-connect-attempts": -1,
        "reconnect-attempts": -1,
        "reconnect-attempts-same-node": 10,
        "use-duplicate-detection": True,
        "confirmation-window-size": 10485760,
        # Artemis has 1 MiB: docs/decisions/0022.
        "producer-window-size": 8388608,
        "user": "ACTIVEMQ.CLUSTER.ADMIN.USER",
        "password": "CHANGE ME!!",
        "concurrency": 1,
        "pending-ack-timeout": 60000,
        "client-id": None,
        "static-connectors": None,
        "discovery-group-ref": None,
        "failover-on-server-shutdown": None,
    },
}
# Enumerations that are told by their name alone.
NAMED = {"message-load-balancing": "ON_DEMAND", "routing-type": "PASS"}


@pytest.mark.parametrize("cls", DEFAULTS, ids=lambda cls: cls.__name__)
def test_every_element_has_artemis_default(cls):
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}

    found = {}
    for name, item, is_required in _items(cls):
        if item.elements and not is_required:
            value = defaults[name]
            if item.elements[0] in NAMED:
                assert value.name == NAMED[item.elements[0]]
            else:
                found[item.elements[0]] = value
    assert found == DEFAULTS[cls]


def test_an_empty_configuration_is_all_defaults(tmp_path):
    from broker.config import load

    file = tmp_path / "broker.xml"
    file.write_text('<core xmlns="urn:activemq:core"/>')

    config = load(file)

    untold = BrokerConfig()
    for group in ("general", "limits", "security", "management", "watch", "sections", "addressing"):
        assert getattr(config, group) == getattr(untold, group)
    assert config.instance == tmp_path
