"""A broker that stops for good, and one that gets the messages of another, told by operators."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, LIST, NAME, TEXT, operation
from broker.management.waiting import awaited
from broker.routing.duplicates import SCALED_DOWN_NODES, KeptNames

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

__all__ = ["BrokerScaleDown"]


class BrokerScaleDown(BrokerPart):
    """See the module's text."""

    @operation("scaleDown", TEXT)
    @operation("scaleDown", TEXT, BOOLEAN)
    def scale_down(
        self, connector: str | None, is_forced: bool = False
    ) -> Generator[float, None, str]:
        """Move everything to another node of the cluster, and stop; which node, at once.

        Where no node of the group is there the broker refuses, and goes on. `is_forced` takes any.
        """
        try:
            return (
                yield from awaited(self._broker.scale_down(connector or None, is_forced=is_forced))
            )
        except BrokerError as error:
            raise ManagementError(str(error)) from None

    # --- for a node that scales down to this one ----------------------------------------------

    @operation("beginScaleDown", NAME)
    def begin(self, node_id: str) -> None:
        """The messages of a node are about to come."""
        self._nodes.discard(node_id)

    @operation("isScaledDown", NAME)
    def is_scaled_down(self, node_id: str) -> bool:
        """Whether all messages of a node are here, since it stopped for good."""
        return node_id in self._nodes

    @property
    def _nodes(self) -> KeptNames:
        return KeptNames(self._broker.parts.postoffice.duplicates, SCALED_DOWN_NODES)

    @operation("addDuplicateIds", NAME, LIST)
    def add_duplicate_ids(self, address: str, texts: list[object]) -> None:
        """Remember duplicate ids of an address, in base 64, the oldest first."""
        try:
            found = [base64.b64decode(str(one), validate=True) for one in texts]
        except ValueError as error:
            raise ManagementError(f"not base 64: {error}") from None
        self._remember(address, found)

    @operation("updateDuplicateIdCache", NAME, LIST)
    def update_duplicate_ids(self, address: str, texts: list[object]) -> None:
        """Remember duplicate ids, as Artemis tells them: texts, whose UTF-8 they are."""
        self._remember(address, (str(one).encode(errors="replace") for one in texts))

    def _remember(self, address: str, ids: Iterable[bytes]) -> None:
        cache = self._broker.parts.postoffice.duplicates.of(address)
        for one in ids:
            if one not in cache:
                cache.add(one, cache.record(one, None))
        self._context.note()
