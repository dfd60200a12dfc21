"""A connection router, managed: `connectionrouter.NAME` (ConnectionRouterControl)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from broker.management.errors import ManagementError
from broker.management.invocation import NAME, TEXT, Control, operation
from broker.management.json_texts import json_text
from broker.protocols.redirection import RoutingRefusal

if TYPE_CHECKING:
    from broker.management.invocation import Getters
    from broker.routers.pools import Target
    from broker.routers.router import ConnectionRouter

__all__ = ["ConnectionRouterControl"]


class ConnectionRouterControl(Control):
    """See the module's text.

    Args:
        router: to manage.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self.router.config.name,
        "getLocalTargetFilter": lambda self: _text(self.router.config.local_target_filter),
        "getTargetKeyFilter": lambda self: _text(self.router.config.key_filter),
        "getTargetsAsJSON": lambda self: json_text(self._targets),
    }

    def __init__(self, router: ConnectionRouter) -> None:
        self.router = router

    @property
    def _targets(self) -> list[dict[str, object]]:
        """Those of the pool, ready or not; Artemis has no such attribute."""
        pool = self.router.pool
        return [] if pool is None else [_row(one) | {"ready": one.is_ready} for one in pool.targets]

    @operation("getTargetAsJSON", NAME)
    def target(self, key: str) -> str | None:
        """Give the broker that serves the clients of a key; null if there is none now."""
        found = self.router.target(key)
        return None if isinstance(found, RoutingRefusal) else json_text(_row(found))

    @operation("setLocalTargetFilter", TEXT)
    def set_local_target_filter(self, pattern: str | None) -> None:
        """Change which keys this broker serves itself, until it starts again."""
        found = _pattern(pattern)
        self.router.config = replace(self.router.config, local_target_filter=found)

    @operation("setTargetKeyFilter", TEXT)
    def set_key_filter(self, pattern: str | None) -> None:
        """Change which part of its text is a client's key, until the broker starts again."""
        self.router.config = replace(self.router.config, key_filter=_pattern(pattern))


def _text(pattern: re.Pattern[str] | None) -> str | None:
    return None if pattern is None else pattern.pattern


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ManagementError(f"{text!r} is not a valid regular expression: {error}") from None


def _row(target: Target) -> dict[str, object]:
    connector = target.connector
    return {
        "nodeID": target.node_id,
        "local": target.is_local,
        "connector": None if connector is None else f"{connector.host}:{connector.port}",
    }
