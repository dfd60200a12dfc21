"""An instance's broker.xml as a running broker sees it: read at the start, and again when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.config.load import load
from broker.options.from_config import broker_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from broker.config.cluster import BridgeConfig
    from broker.config.load import BrokerConfig
    from broker.config.transport import TransportConfig
    from broker.model.routing_type import RoutingType
    from broker.records.binding_records import Divert
    from broker.security.permission import RoleTable
    from broker.settings.queue_defaults import QueueRequest
    from broker.settings.settings import AddressSettings

__all__ = ["ConfigurationFile", "Reloadable"]


class Reloadable(NamedTuple):
    """What of a configuration is applied without a restart.

    Attributes:
        permissions: roles by match; None where security is off.
        address_settings: by match.
        addresses: with their routing types.
        queues: as their creators ask for them.
        diverts: a name once.
        connectors: where bridges lead.
        bridges: of a name the last one counts.
    """

    permissions: Sequence[tuple[str, RoleTable]] | None
    address_settings: Sequence[tuple[str, AddressSettings]]
    addresses: Sequence[tuple[str, tuple[RoutingType, ...]]]
    queues: Sequence[QueueRequest]
    diverts: Sequence[Divert]
    connectors: Sequence[TransportConfig]
    bridges: Sequence[BridgeConfig]


class ConfigurationFile:
    """Implements `broker.server.reload.ConfigurationSource`.

    Args:
        path: of broker.xml; files that it includes are read with it and not watched, as in Artemis.
        lenient: unknown names are logged, not refused.
    """

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        self._path = path
        self._lenient = lenient
        self._seen = self._state()

    def load(self) -> BrokerConfig:
        """The configuration as a whole.

        Raises:
            ConfigError: one line with file and line.
        """
        # Before it is read: a change meanwhile is found by the next look.
        self._seen = self._state()
        return load(self._path, lenient=self._lenient)

    def has_changed(self) -> bool:
        """Whether the file is another one than at the last call, or the last load."""
        state = self._state()
        if state is None or state == self._seen:
            return False
        self._seen = state
        return True

    def read(self) -> Reloadable:
        """Read what is applied without a restart.

        Raises:
            ConfigError: any part of the file is wrong.
        """
        config = self.load()
        options = broker_options(config)
        permissions = config.permissions.security_settings.permissions
        return Reloadable(
            permissions=permissions if config.security.security_enabled else None,
            address_settings=config.addressing.address_settings,
            addresses=options.addresses,
            queues=options.queues,
            diverts=options.diverts,
            connectors=config.cluster.connectors,
            bridges=config.cluster.bridges,
        )

    def _state(self) -> tuple[int, int, int] | None:
        """What changes with the file; None while there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size
