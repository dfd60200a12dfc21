"""The JMS bridges of a running broker: the files of etc/bridges, started and stopped with it.

Each has a thread of its own. A bridge that cannot connect does not delay the broker; a file that
cannot be read or understood refuses its start, as a wrong broker.xml does.

Threads: `start()` and the views are for the broker's event loop; `stop()` blocks, for another one.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from broker.bridges.jms.blocking.own_thread import call_side_by_side
from broker.bridges.jms.definition import read_definition
from broker.bridges.jms.errors import BridgeConfigError
from broker.bridges.jms.provider_types import make_bridge

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker.bridges.jms.blocking.bridge import JMSBridge
    from broker.bridges.jms.control import JMSBridgeControl
    from broker.bridges.jms.core.in_process import InProcessBroker

__all__ = ["DeployedBridges"]

log = logging.getLogger("broker.bridges")


class DeployedBridges:
    """See the module's text. Is the `ManagementServer` of its bridges.

    Args:
        folder: with a .toml for each bridge; one that does not exist has none.
        broker: that vm:// leads to.

    Raises:
        BridgeConfigError: a file is wrong, or two bridges have one name.
    """

    def __init__(self, folder: Path, broker: InProcessBroker) -> None:
        self._controls: dict[str, JMSBridgeControl] = {}
        self._bridges: dict[str, JMSBridge] = {}
        for path in sorted(folder.glob("*.toml")):
            definition = read_definition(path)
            name = definition.object_name or definition.name
            if name in self._bridges:
                raise BridgeConfigError(f"{path}: another bridge is called {name!r}")
            bridge = make_bridge(definition, broker=broker, mbean_server=self)
            self._bridges[name] = bridge
            # Also while it is stopped, so that operators can start it.
            self._controls[name] = bridge.control

    def register(self, object_name: str, control: JMSBridgeControl) -> None:
        """See `ManagementServer`."""
        if self._controls.setdefault(object_name, control) is not control:
            raise BridgeConfigError(f"another bridge has the object_name {object_name!r}")

    def unregister(self, object_name: str) -> None:
        """Keep it: a stopped bridge can be started by management."""

    @property
    def controls(self) -> Mapping[str, JMSBridgeControl]:
        """What management has of each bridge, by name."""
        return self._controls

    def start(self) -> None:
        """Start all bridges; returns at once.

        Raises:
            JournalError: a transaction log cannot be opened.
        """
        for bridge in self._bridges.values():
            bridge.start()

    def stop(self) -> None:
        """Stop all bridges at the same time. Idempotent.

        Blocks for the longest failover_timeout of them at most, and for what their ends take.
        """
        call_side_by_side([partial(_stop, one) for one in self._bridges.values()])


def _stop(bridge: JMSBridge) -> None:
    try:
        bridge.stop()
    except Exception:
        # The broker stops all the same, and so do the other bridges.
        log.exception("JMS bridge %s: the stop failed", bridge.options.name)
