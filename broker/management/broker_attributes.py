"""What a broker was configured with, as attributes: directories, journal, timers, security.

Names and units are Artemis's. Attributes of a JVM's threads are answered with an error that says
so: this broker has one event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from broker.config.ha import (
    Colocated,
    PrimaryOnly,
    ReplicationBackup,
    ReplicationPrimary,
    SharedStoreBackup,
    SharedStorePrimary,
)
from broker.config.unsupported import BUILT_IN_PLUGINS
from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.storage.open import FileStoreOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.config import BrokerConfig
    from broker.management.invocation import Getters
    from broker.options import BrokerOptions
    from journal.options import JournalOptions

__all__ = ["BrokerAttributes"]

# Names of Artemis (HAPolicyConfiguration.TYPE), by what the configuration has.
_POLICIES: Final = {
    PrimaryOnly: "Primary Only",
    SharedStorePrimary: "Shared Store Primary",
    SharedStoreBackup: "Shared Store Backup",
    ReplicationPrimary: "Replication Primary w/quorum voting",
    ReplicationBackup: "Replication Backup w/quorum voting",
    Colocated: "Colocated",
}
# Without pairs that hand the work to and fro no transition is counted.
_NO_SEQUENCE: Final = -1


def _of_a_jvm(what: str) -> Callable[[object], object]:
    def refuse(control: object) -> object:
        raise ManagementError(f"{what} is an attribute of a JVM: this broker has one event loop")

    return refuse


class BrokerAttributes(BrokerPart):
    """See the module's text."""

    getters: ClassVar[Getters] = {
        # Stores.
        "isPersistenceEnabled": lambda self: self._broker.parts.storage.is_persistent,
        "getBindingsDirectory": lambda self: self._directory(
            self._config.persistence.bindings_directory, lambda files: files.bindings.directory
        ),
        "getJournalDirectory": lambda self: self._directory(
            self._config.persistence.journal_directory, lambda files: files.messages.directory
        ),
        "getPagingDirectory": lambda self: self._directory(
            self._config.persistence.paging_directory,
            lambda files: files.paging or files.messages.directory.parent / "paging",
        ),
        "getLargeMessagesDirectory": lambda self: self._directory(
            self._config.persistence.large_messages_directory,
            lambda files: files.large_messages or files.messages.directory.parent / "largemessages",
        ),
        "isCreateBindingsDir": lambda self: self._config.persistence.create_bindings_dir,
        "isCreateJournalDir": lambda self: self._config.persistence.create_journal_dir,
        "getJournalType": lambda self: self._journal.journal_type.name,
        "isJournalSyncTransactional": lambda self: self._journal.sync_transactional,
        "isJournalSyncNonTransactional": lambda self: self._journal.sync_non_transactional,
        "getJournalFileSize": lambda self: self._journal.file_size,
        "getJournalMinFiles": lambda self: self._journal.min_files,
        "getJournalPoolFiles": lambda self: self._journal.pool_files,
        "getJournalMaxIO": lambda self: self._journal.effective_max_io(),
        "getJournalBufferSize": lambda self: self._journal.buffer_size,
        "getJournalBufferTimeout": lambda self: self._journal.effective_buffer_timeout_ns(),
        "getJournalCompactMinFiles": lambda self: self._journal.compact_min_files,
        "getJournalCompactPercentage": lambda self: self._journal.compact_percentage,
        "isPersistDeliveryCountBeforeDelivery": lambda self: (
            self._config.persistence.persist_delivery_count_before_delivery
        ),
        "getDiskScanPeriod": lambda self: self._options.disk_scan_period,
        "getMaxDiskUsage": lambda self: self._options.max_disk_usage,
        # Clients, messages, transactions.
        "isWildcardRoutingEnabled": lambda self: self._addresses.wildcards.routing_enabled,
        "getManagementAddress": lambda self: self._options.management.address,
        "getManagementNotificationAddress": lambda self: self._options.notifications.address,
        "getConnectionTTLOverride": lambda self: self._options.connection_ttl_override,
        "getIDCacheSize": lambda self: self._broker.parts.postoffice.duplicates.size,
        "isPersistIDCache": lambda self: self._broker.parts.postoffice.duplicates.is_persistent,
        "getTransactionTimeout": lambda self: self._options.transaction_timeout,
        "getTransactionTimeoutScanPeriod": lambda self: (
            self._options.transaction_timeout_scan_period
        ),
        "getMessageExpiryScanPeriod": lambda self: self._options.message_expiry_scan_period,
        "getSecurityInvalidationInterval": lambda self: (
            self._config.security.security_invalidation_interval_ms
        ),
        # High availability.
        "getHAPolicy": lambda self: _POLICIES.get(type(self._config.cluster.ha_policy)),
        "isSharedStore": lambda self: self._options.shares_store,
        "isFailoverOnServerShutdown": lambda self: (
            isinstance(self._config.cluster.ha_policy, SharedStoreBackup)
            and self._config.cluster.ha_policy.failover_on_shutdown
        ),
        "getActivationSequence": lambda self: _NO_SEQUENCE,
        # Classes and threads.
        "getBrokerPluginClassNames": lambda self: self._plugins,
        "getIncomingInterceptorClassNames": lambda self: [],
        "getOutgoingInterceptorClassNames": lambda self: [],
        "getThreadPoolMaxSize": _of_a_jvm("thread-pool-max-size"),
        "getScheduledThreadPoolMaxSize": _of_a_jvm("scheduled-thread-pool-max-size"),
        "getMessageExpiryThreadPriority": _of_a_jvm("message-expiry-thread-priority"),
        "isAsyncConnectionExecutionEnabled": _of_a_jvm("async-connection-execution-enabled"),
    }

    @property
    def _options(self) -> BrokerOptions:
        return self._broker.options

    @property
    def _config(self) -> BrokerConfig:
        return self._broker.options.configuration

    def _directory(self, configured: str, used: Callable[[FileStoreOptions], Path]) -> str:
        """Give a directory as the configuration has it; without a file, the one in use."""
        store = self._options.store
        if self._config.file is None and isinstance(store, FileStoreOptions):
            return str(used(store))
        return configured

    @property
    def _journal(self) -> JournalOptions:
        """How the message journal is kept; with a database, how it would be."""
        store = self._options.store
        if isinstance(store, FileStoreOptions):
            return store.messages
        return self._config.persistence.journal_options(self._config.instance)

    @property
    def _plugins(self) -> list[str]:
        section = self._config.sections.broker_plugins
        names = [] if section is None else [one.attributes for one in section.children]
        return [one["class-name"] for one in names if one.get("class-name", "") in BUILT_IN_PLUGINS]
