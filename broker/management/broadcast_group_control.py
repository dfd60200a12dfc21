"""A broadcast group, managed: `broadcastgroup.NAME` (BroadcastGroupControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.errors import ManagementError
from broker.management.invocation import Control, operation
from broker.management.json_texts import json_text
from broker.management.waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.cluster.broadcast_group import BroadcastGroup
    from broker.management.invocation import Getters

__all__ = ["BroadcastGroupControl"]


class BroadcastGroupControl(Control):
    """See the module's text.

    Args:
        group: to manage.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self.group.config.name,
        "getBroadcastPeriod": lambda self: self.group.config.broadcast_period_ms,
        "getConnectorPairs": lambda self: list(self.group.config.connector_refs),
        "getConnectorPairsAsJSON": lambda self: json_text(list(self.group.config.connector_refs)),
        "getLocalBindPort": lambda self: self._udp("local_bind_port"),
        "getGroupAddress": lambda self: self._udp("group_address"),
        "getGroupPort": lambda self: self._udp("group_port"),
        "isStarted": lambda self: self.group.is_started,
    }

    def __init__(self, group: BroadcastGroup) -> None:
        self.group = group

    def _udp(self, name: str) -> object:
        if self.group.config.endpoint is not None:
            raise ManagementError(
                "Invalid request because this is not a UDP Broadcast configuration."
            )
        return getattr(self.group.config, name)

    @operation("start")
    def start(self) -> Generator[float, None, None]:
        """Broadcast again, where it was stopped."""
        try:
            yield from awaited(self.group.start())
        except (OSError, ValueError) as error:
            raise ManagementError(f"broadcast group {self.group.config.name}: {error}") from None

    @operation("stop")
    def stop(self) -> Generator[float, None, None]:
        """Broadcast no more, until it is started or the broker is."""
        yield from awaited(self.group.stop())
