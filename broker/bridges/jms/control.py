"""What management has of a JMS bridge: Artemis's JMSBridgeControl, and the counters beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from broker.bridges.jms.options import JMSBridgeOptions

__all__ = ["JMSBridgeControl", "ManagedBridge", "ManagementServer"]


class ManagedBridge(Protocol):
    """What the control needs of the bridge."""

    options: JMSBridgeOptions

    def start(self) -> None:
        """Begin to connect and move."""

    def stop(self) -> None:
        """Stop."""

    def pause(self) -> None:
        """Move nothing."""

    def resume(self) -> None:
        """Move messages again."""

    def snapshot(self) -> dict[str, Any]:
        """Give name, state, why, mode, counters and lag."""


class ManagementServer(Protocol):
    """Where bridges are managed: the `mbean_server` of a bridge."""

    def register(self, object_name: str, control: JMSBridgeControl) -> None:
        """Let operators find a bridge under this name.

        Raises:
            BridgeConfigError: another one has the name.
        """

    def unregister(self, object_name: str) -> None:
        """Forget it; no error if it is not there."""


class JMSBridgeControl:
    """See the module's text. Its methods may block for `failover_timeout`.

    Args:
        bridge: that it stands for.
    """

    def __init__(self, bridge: ManagedBridge) -> None:
        self._bridge = bridge

    # Operations.

    def start(self) -> None:
        """Start the bridge."""
        self._bridge.start()

    def stop(self) -> None:
        """Stop the bridge."""
        self._bridge.stop()

    def pause(self) -> None:
        """Pause the bridge."""
        self._bridge.pause()

    def resume(self) -> None:
        """Resume the bridge."""
        self._bridge.resume()

    # Attributes.

    def attributes(self) -> dict[str, Any]:
        """Give all attributes by Artemis's names, without passwords; and those that it has not."""
        options, now = self._bridge.options, self._bridge.snapshot()
        state = now["state"]
        return {
            "sourceUsername": options.source_user_name,
            "targetUsername": options.target_user_name,
            "selector": options.selector,
            "failureRetryInterval": options.failure_retry_interval,
            "maxRetries": options.max_retries,
            "qualityOfServiceMode": options.quality_of_service.value,
            "maxBatchSize": options.max_batch_size,
            "maxBatchTime": options.max_batch_time,
            "subscriptionName": options.subscription_name,
            "clientID": options.client_id,
            "addMessageIDInHeader": options.add_message_id_in_header,
            "started": state in _RUNNING,
            "paused": state == "paused",
            "failed": state in ("failed", "retrying"),
            "messageCount": now.get("moved", 0),
            "abortedMessageCount": now.get("aborted", 0),
            "retriedMessageCount": now.get("retried", 0),
            "inDoubtCount": now.get("in_doubt", 0),
            "lag": now.get("lag_ms"),
            "state": state,
            "why": now["why"],
            "mode": now.get("mode"),
        }


_RUNNING = ("connecting", "started", "paused", "retrying")
