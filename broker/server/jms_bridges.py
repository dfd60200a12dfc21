"""The JMS bridges of a broker, as far as it has any: read, started, stopped with it.

Threads: the event loop's; what blocks is done in another one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker.bridges.jms.control import JMSBridgeControl
    from broker.bridges.jms.core.in_process import InProcessBroker
    from broker.bridges.jms.deployed import DeployedBridges

__all__ = ["JMSBridges"]


class JMSBridges:
    """See the module's text.

    Args:
        folder: with a .toml for each; None, or one that is not there, has none.
        broker: that vm:// leads to.
    """

    def __init__(self, folder: Path | None, broker: InProcessBroker) -> None:
        self._folder = folder
        self._broker = broker
        self._deployed: DeployedBridges | None = None

    @property
    def controls(self) -> Mapping[str, JMSBridgeControl]:
        """What management has of each, by name."""
        return {} if self._deployed is None else self._deployed.controls

    def read(self) -> None:
        """Read the files.

        Raises:
            BrokerError: one is wrong.
        """
        if self._folder is None or not any(self._folder.glob("*.toml")):
            return
        # The client's modules, which a broker without bridges does not need.
        from broker.bridges.jms.deployed import DeployedBridges
        from broker.bridges.jms.errors import BridgeConfigError

        try:
            self._deployed = DeployedBridges(self._folder, self._broker)
        except BridgeConfigError as error:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, str(error)) from error

    async def start(self) -> None:
        """Start all.

        Raises:
            BrokerError: a transaction log cannot be opened.
        """
        if self._deployed is None:
            return
        try:
            await asyncio.to_thread(self._deployed.start)
        except JournalError as error:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, f"a JMS bridge: {error}") from error

    async def stop(self) -> None:
        """Stop all, while the broker still serves them. Idempotent."""
        deployed, self._deployed = self._deployed, None
        if deployed is not None:
            await asyncio.to_thread(deployed.stop)
