"""The configuration read again while the broker runs, because its file has changed or on request.

    file changed, or a request ─▶ read and checked as a whole ─▶ security and address settings,
                                      │                          addresses, queues, diverts,
                                      │                          connectors, bridges
                                      └─▶ wrong: an error, and nothing has changed

Everything else in the file waits for a restart. What operators set at run time stays in force.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from broker.options.file import Reloadable
    from broker.server.bridging import Bridging
    from broker.server.deployment import Deployment
    from broker.server.stored_connectors import StoredConnectors
    from broker.server.stored_permissions import StoredPermissions
    from broker.server.stored_settings import StoredSettings

__all__ = ["ConfigurationSource", "Reload"]

log = logging.getLogger("broker")


class ConfigurationSource(Protocol):
    """A configuration that may change; `broker.options.file` has the one of an instance."""

    def has_changed(self) -> bool:
        """Whether it is another one than when it was asked, or read, the last time."""

    def read(self) -> Reloadable:
        """Read it.

        Raises:
            ValueError: it is wrong; the text is one line.
        """


class Reload:
    """See the module's text.

    Args:
        source: of the configuration.
        stored_permissions: permissions, the recorded ones over the configured ones.
        stored_settings: address settings, the recorded ones over the configured ones.
        deployment: makes addresses, queues and diverts.
        stored_connectors: connectors, the recorded ones over the configured ones.
        bridges: start, change and stop.
    """

    def __init__(
        self,
        source: ConfigurationSource,
        stored_permissions: StoredPermissions,
        stored_settings: StoredSettings,
        deployment: Deployment,
        stored_connectors: StoredConnectors,
        bridges: Bridging,
    ) -> None:
        self._source = source
        self._stored_permissions = stored_permissions
        self._stored_settings = stored_settings
        self._deployment = deployment
        self._stored_connectors = stored_connectors
        self._bridges = bridges

    def look(self) -> None:
        """Apply the configuration if it has changed; what is wrong with it is logged."""
        if not self._source.has_changed():
            return
        try:
            self.apply()
        except BrokerError as error:
            log.error(
                "AMQ224069: configuration changed, reload failed, nothing changed: %s", error.text
            )

    def apply(self) -> None:
        """Read the configuration and apply it.

        Raises:
            BrokerError: it is wrong, and nothing has changed.
            JournalError: the storage has failed.
        """
        try:
            found = self._source.read()
        except ValueError as wrong:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, str(wrong)) from None
        log.info(
            "AMQ221056: Reloading configuration: security settings, address settings, addresses, "
            "queues, diverts, connectors, bridges"
        )
        if found.permissions is not None:
            self._stored_permissions.replace_configured(found.permissions)
        self._stored_settings.replace_configured(found.address_settings)
        errors = self._deployment.apply(found.addresses, found.queues, found.diverts)
        self._stored_connectors.replace_configured(found.connectors)
        errors += self._bridges.apply(found.bridges)
        for error in errors:
            log.warning("AMQ222274: reload: %s", error)
