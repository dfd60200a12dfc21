"""Unsupported settings: configured but without effect in this version; logged once at the start.

Elements of a JVM (thread pools, JMX, the critical analyzer) are not among them: nothing is missing
without. A change that implements a part takes its names out of the tables here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config.acceptors import MISSED
from broker.config.ha import ReplicationBackup, SharedStoreBackup, SharedStorePrimary
from broker.settings.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.config.load import BrokerConfig

__all__ = ["without_effect"]

# Of address-setting, by attribute.
_SETTINGS: Final[frozenset[str]] = frozenset()
# Plugins that are built in, by class.
NOTIFICATION_PLUGIN: Final = (
    "org.apache.activemq.artemis.core.server.plugin.impl.NotificationActiveMQServerPlugin"
)
BUILT_IN_PLUGINS: Final = (NOTIFICATION_PLUGIN,)


def without_effect(config: BrokerConfig) -> list[str]:
    """The elements that are configured and change nothing."""
    return [
        *_sections(config),
        *_address_settings(config),
        *_database(config),
        *_acceptors(config),
        *_ha_policy(config),
    ]


def _sections(config: BrokerConfig) -> Iterator[str]:
    cluster, sections = config.cluster, config.sections
    plugins = sections.broker_plugins
    foreign = () if plugins is None else plugins.children
    found = {
        # It decides for the other brokers of a cluster.
        "grouping-handler": None if cluster.cluster_connections else cluster.grouping_handler,
        "federations": sections.federations,
        "broker-connections": sections.broker_connections,
        "broker-plugins": [
            one for one in foreign if one.attributes.get("class-name") not in BUILT_IN_PLUGINS
        ],
        "connector-services": sections.connector_services,
        "remoting-interceptors": sections.remoting_interceptors,
        "remoting-incoming-interceptors": sections.remoting_incoming_interceptors,
        "remoting-outgoing-interceptors": sections.remoting_outgoing_interceptors,
    }
    yield from (f"<{name}>" for name, value in found.items() if value)


def _database(config: BrokerConfig) -> Iterator[str]:
    """Clients get answers once the database has committed; files alone can do without a sync."""
    persistence = config.persistence
    if not persistence.persistence_enabled or persistence.database is None:
        return
    if not persistence.journal_sync_transactional:
        yield "<journal-sync-transactional> of a database"
    if not persistence.journal_sync_non_transactional:
        yield "<journal-sync-non-transactional> of a database"


def _acceptors(config: BrokerConfig) -> Iterator[str]:
    for acceptor in config.cluster.acceptors:
        for name in sorted(acceptor.parameters.keys() & MISSED):
            yield f"{name} of acceptor {acceptor.name}"


def _ha_policy(config: BrokerConfig) -> Iterator[str]:
    policy = config.cluster.ha_policy
    if (
        isinstance(policy, SharedStorePrimary | SharedStoreBackup)
        and not config.persistence.persistence_enabled
    ):
        yield "<shared-store> of <ha-policy>"
    if isinstance(policy, ReplicationBackup) and policy.scale_down is not None:
        yield "<scale-down> of a <replication> <backup>"


def _address_settings(config: BrokerConfig) -> Iterator[str]:
    given = {name for _, one in config.addressing.address_settings for name in one.given}
    for item in SETTINGS:
        if item.attribute in given & _SETTINGS:
            yield f"<{item.elements[0]}>"
