"""A core bridge, managed: `bridge.NAME` (BridgeControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.invocation import Control, operation
from broker.management.json_texts import json_text
from broker.management.waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.bridges.core.bridge import CoreBridge
    from broker.management.invocation import Getters

__all__ = ["BridgeControl"]


class BridgeControl(Control):
    """See the module's text.

    Args:
        bridge: to manage.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self.bridge.name,
        "getQueueName": lambda self: self._config.queue_name,
        "getForwardingAddress": lambda self: self._config.forwarding_address,
        "getFilterString": lambda self: self._config.filter,
        "getTransformerClassName": lambda self: self._transformer[0],
        "getTransformerProperties": lambda self: self._transformer[1],
        "getTransformerPropertiesAsJSON": lambda self: json_text(self._transformer[1]),
        "getStaticConnectors": lambda self: (
            []
            if self._config.static_connectors is None
            else list(self._config.static_connectors.connector_refs)
        ),
        "getDiscoveryGroupName": lambda self: self._config.discovery_group_ref,
        "getRetryInterval": lambda self: self._config.retry_interval_ms,
        "getRetryIntervalMultiplier": lambda self: self._config.retry_interval_multiplier,
        "getMaxRetryInterval": lambda self: self._config.max_retry_interval_ms,
        "getReconnectAttempts": lambda self: self._config.reconnect_attempts,
        "isUseDuplicateDetection": lambda self: self._config.use_duplicate_detection,
        "isHA": lambda self: self._config.ha,
        "isStarted": lambda self: self.bridge.is_started,
        "isConnected": lambda self: self.bridge.is_connected,
        "getMessagesPendingAcknowledgement": lambda self: self.bridge.status.pending_count,
        "getMessagesAcknowledged": lambda self: self.bridge.status.acknowledged_count,
        "getMetrics": lambda self: {
            "messagesPendingAcknowledgement": self.bridge.status.pending_count,
            "messagesAcknowledged": self.bridge.status.acknowledged_count,
        },
        "getStatusAsJSON": lambda self: self._status,
    }

    def __init__(self, bridge: CoreBridge) -> None:
        self.bridge = bridge
        self._config = bridge.config

    @property
    def _transformer(self) -> tuple[str | None, dict[str, str]]:
        found = self._config.transformer
        if found is None:
            return self._config.transformer_class_name, {}
        return found.class_name, dict(found.properties)

    @property
    def _status(self) -> str:
        """What it does and why it does not move, with numbers."""
        status = self.bridge.status
        return json_text(
            {
                "name": status.name,
                "queue": status.queue,
                "forwardingAddress": self._config.forwarding_address,
                "state": status.state.name,
                "connected": status.is_connected,
                "target": status.target,
                "window": status.window,
                "messageCount": status.message_count,
                "messagesPendingAcknowledgement": status.pending_count,
                "messagesAcknowledged": status.acknowledged_count,
                "moving": status.is_moving,
                "reason": status.reason,
            }
        )

    @operation("start")
    @operation("resume")
    def start(self) -> None:
        """Forward, again where it was stopped or paused."""
        self.bridge.start()

    @operation("stop")
    def stop(self) -> Generator[float, None, None]:
        """Stop forwarding, and wait for confirmations as long as pending-ack-timeout says."""
        yield from awaited(self.bridge.stop())

    @operation("pause")
    def pause(self) -> Generator[float, None, None]:
        """The same; it is called paused then."""
        yield from awaited(self.bridge.pause())
