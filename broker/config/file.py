"""An instance's broker.xml as a running broker sees it: read at the start, and again when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.load import load
from broker.config.options import broker_options
from broker.server.reload import Reloadable

if TYPE_CHECKING:
    from pathlib import Path

    from broker.config.load import BrokerConfig

__all__ = ["ConfigurationFile"]


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
        )

    def _state(self) -> tuple[int, int, int] | None:
        """What changes with the file; None while there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size
