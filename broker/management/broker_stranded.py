"""Messages that wait although a consumer takes them, as an attribute of `broker`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from broker.management.broker_part import BrokerPart
from broker.management.json_texts import json_text

if TYPE_CHECKING:
    from broker.management.invocation import Getters

__all__ = ["BrokerStranded"]


class BrokerStranded(BrokerPart):
    """See the module's text."""

    getters: ClassVar[Getters] = {
        "getStrandedMessagesAsJSON": lambda self: json_text(self._stranded_rows()),
    }

    def _stranded_rows(self) -> list[dict[str, object]]:
        """Give a row for each queue; none in a broker that joins no other."""
        stranded = self._broker.cluster.stranded
        if stranded is None:
            return []
        now_s = asyncio.get_running_loop().time()
        return [
            {
                "queue": name,
                "count": one.count,
                "messageID": one.message_id,
                "forMs": int((now_s - one.since_s) * 1000),
                "takenBy": one.where,
            }
            for name, one in stranded.by_queue.items()
        ]
