"""Why messages of a queue are not consumed, as operations of `queue.NAME`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.management.invocation import LONG, Control, operation
from broker.management.json_texts import json_text
from broker.management.reasons.observation import observe
from broker.management.reasons.rules import reasons

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.management.access import ManagedBroker
    from broker.management.reasons.state import ConsumerState
    from broker.queues.queue import Queue

__all__ = ["QueueReasons"]


class QueueReasons(Control):
    """See the module's text; a part of `QueueControl`."""

    _broker: ManagedBroker
    queue: Queue

    @operation("queryReasonsAsJSON")
    @operation("queryReasonsAsJSON", LONG)
    def why(self, message_id: int | None = None) -> Generator[float | None, None, str]:
        """Say why a message, or the next one, is not consumed; as a JSON object."""
        queue = self.queue
        state, message = yield from observe(self._broker, queue, message_id)
        found = reasons(state, message)
        return json_text(
            {
                "queue": queue.name,
                "address": queue.binding.address,
                "node": self._broker.node_id,
                "messageID": None if message is None else message.message_id,
                "place": None if message is None else message.place.value,
                "group": None if message is None else message.group,
                "messages": queue.message_count,
                "waiting": queue.waiting.count,
                "scheduled": queue.scheduled_count,
                "delivering": queue.delivering_count,
                "paged": state.paged_count,
                "undecided": queue.undecided_count,
                "consumers": state.consumer_count,
                "consumer": None if message is None else _consumer(message.consumer),
                "reasons": [
                    {"code": one.code, "text": one.text, "action": one.action} for one in found
                ],
            }
        )


def _consumer(consumer: ConsumerState | None) -> dict[str, object] | None:
    """Who has the message, by the names of `listConsumers`."""
    if consumer is None:
        return None
    return {
        "id": consumer.number,
        "session": consumer.session,
        "connection": consumer.connection,
        "remoteAddress": consumer.remote,
        "clientID": consumer.client_id,
        "user": consumer.user,
        "protocol": consumer.protocol,
        "filter": consumer.selector,
        "delivering": consumer.delivering_count,
    }
