"""Where everything goes when a broker stops for good: what an operator has chosen, or the policy.

    management's scaleDown ─▶ by_operator() ─┐
    <scale-down> of the configuration ───────┴─▶ at_stop() ─▶ ScaleDown with a target, or None
    <scale-down> of a backup that has taken over ─▶ of_backup() ─▶ the same, at once

An operator's choice is made while the broker is active, and refused at once if no node is reached.
The policy chooses at the stop; if it finds no node, everything stays, and the report says why. A
backup serves then.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from broker.config.ha import ScaleDown as ScaleDownPolicy
    from broker.server.activation import Activation
    from broker.server.scale_down import ScaleDown, ScaleDownReport

__all__ = ["ScaleDownChoice"]

log = logging.getLogger("broker")


class ScaleDownChoice:
    """See the module's text.

    Args:
        policy: of the configuration; None moves nothing but for an operator.
        told_to_end: ends the policy's search for a node.

    Attributes:
        report: what the last scale-down did; None before.
    """

    def __init__(self, policy: ScaleDownPolicy | None, told_to_end: asyncio.Event) -> None:
        self.report: ScaleDownReport | None = None
        self._policy = policy
        self._told_to_end = told_to_end
        self._chosen: ScaleDown | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether everything goes elsewhere without an operator's word."""
        return self._policy is not None

    async def of_backup(
        self, activation: Activation, restart: Callable[[str, ScaleDown], Awaitable[None]]
    ) -> None:
        """Hand to another node what a backup has taken over; then it waits again.

        Args:
            activation: of the broker, which is active.
            restart: of the broker.
        """
        chosen = await self.at_stop(activation, is_active=True)
        if chosen is not None:
            await restart(f"what it has taken over goes to node {chosen.target_id}", chosen)

    async def by_operator(
        self, activation: Activation, connector: str | None, *, is_forced: bool = False
    ) -> str:
        """Choose a node for the next stop; which one.

        Args:
            activation: of the broker, which is active.
            connector: name of one of the configuration; None takes a node by the policy.
            is_forced: any node will do, where none of the group is there.

        Raises:
            BrokerError: no such node is reached: nothing is chosen.
        """
        chosen = activation.scale_down()
        await chosen.choose(connector, is_forced=is_forced)
        self._chosen = chosen
        return chosen.target_id

    async def at_stop(self, activation: Activation | None, *, is_active: bool) -> ScaleDown | None:
        """Find where everything goes when the broker stops for good; None keeps it here.

        Args:
            activation: of the broker; None where it has not begun.
            is_active: whether the broker has been active: else there is nothing to move.
        """
        chosen, self._chosen = self._chosen, None
        if chosen is None and self._policy is not None and activation is not None:
            if not is_active:
                return None
            try:
                made = activation.scale_down()
                self.report = made.report
                await made.choose(told_to_end=self._told_to_end)
            except BrokerError as error:
                log.error("scale-down: %s; everything stays in the store of this broker", error)
                if self.report is not None:
                    self.report.error = str(error)
                return None
            chosen = made
        if chosen is not None:
            self.report = chosen.report
        return chosen
