"""Counts of what lies in pages, made sure of by operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.management.broker_part import BrokerPart
from broker.management.invocation import operation

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["BrokerPages"]

_LOOK_AGAIN_S: Final = 0.05


class BrokerPages(BrokerPart):
    """See the module's text."""

    @operation("rebuildPageCounters")
    def rebuild_counters(self) -> Generator[float | None, None, None]:
        """Wait until all that lies in pages is counted.

        Counts follow every message that comes and goes; after a start pages are counted once, by
        reading them.
        """
        paging = self._broker.parts.paging
        while paging is not None and not all(one.is_counted for one in paging.stores.values()):
            yield _LOOK_AGAIN_S
