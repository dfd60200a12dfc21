"""What a queue tells about itself, its messages and its consumers (QueueControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.contents import InPages, delivering, each, in_parts, look, select
from broker.management.errors import ManagementError
from broker.management.invocation import INT, TEXT, operation
from broker.management.json_texts import json_text
from broker.management.message_maps import message_map
from broker.management.queue_counters import QueueCounters
from broker.management.transactions import acknowledged_of
from broker.management.views import consumer_row
from broker.routing.retroactive import is_retroactive

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from broker.management.access import ManagedBroker
    from broker.management.invocation import Getters
    from broker.model.message import Message
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference

__all__ = ["QueueQueries"]


def _size(message: Message) -> int:
    return message.encoded_size if message.large is None else message.large_size


class QueueQueries(QueueCounters):
    """See the module's text; what changes a queue is in queue_control.py.

    Args:
        broker: that has it.
        queue: to manage.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self.queue.name,
        "getAddress": lambda self: self.queue.binding.address,
        "getID": lambda self: self.queue.queue_id,
        "isTemporary": lambda self: self.queue.is_temporary,
        "isRetroactiveResource": lambda self: is_retroactive(
            self._broker.parts.retroactive, self.queue.name
        ),
        "isDurable": lambda self: self.queue.is_durable,
        "getUser": lambda self: self.queue.binding.user,
        "getRoutingType": lambda self: self.queue.binding.routing_type.name,
        "getFilter": lambda self: self.queue.binding.filter or None,
        "getMessageCount": lambda self: self.queue.message_count,
        "isInternalQueue": lambda self: self.queue.binding.internal,
        "getScheduledCount": lambda self: self.queue.scheduled_count,
        "getConsumerCount": lambda self: self.queue.consumer_count,
        "getDeliveringCount": lambda self: self.queue.delivering_count,
        "getMessagesAdded": lambda self: self.queue.added_count,
        "getMessagesAcknowledged": lambda self: self.queue.acknowledged_count,
        "getMessagesExpired": lambda self: self.queue.expired_count,
        "getMessagesKilled": lambda self: self.queue.killed_count,
        "getExpiryAddress": lambda self: self.queue.settings.expiry_address,
        "getDeadLetterAddress": lambda self: self.queue.settings.dead_letter_address,
        "getMaxConsumers": lambda self: self.queue.binding.max_consumers,
        "isPurgeOnNoConsumers": lambda self: self.queue.binding.purge_on_no_consumers,
        "isEnabled": lambda self: self.queue.binding.enabled,
        "isConfigurationManaged": lambda self: self.queue.binding.configuration_managed,
        "isExclusive": lambda self: self.queue.binding.exclusive,
        "isLastValue": lambda self: self.queue.binding.last_value,
        "getLastValueKey": lambda self: self.queue.binding.last_value_key,
        "getConsumersBeforeDispatch": lambda self: self.queue.binding.consumers_before_dispatch,
        "getDelayBeforeDispatch": lambda self: self.queue.binding.delay_before_dispatch,
        "isPaused": lambda self: self.queue.is_paused,
        "isPersistedPause": lambda self: self.queue.status_record_id != 0,
        "getGroupCount": lambda self: len(self.queue.groups),
        "getRingSize": lambda self: self.queue.binding.ring_size,
        "isGroupRebalance": lambda self: self.queue.binding.group_rebalance,
        "isGroupRebalancePauseDispatch": lambda self: (
            self.queue.binding.group_rebalance_pause_dispatch
        ),
        "getGroupBuckets": lambda self: self.queue.binding.group_buckets,
        "getGroupFirstKey": lambda self: self.queue.binding.group_first_key,
        "isAutoDelete": lambda self: self.queue.binding.auto_delete,
    }

    def __init__(self, broker: ManagedBroker, queue: Queue) -> None:
        self._broker = broker
        self._addresses = broker.parts.postoffice.addresses
        self.queue = queue

    def _filter(self, text: str | None) -> Filter | None:
        return self._broker.parse_filter(text) if text else None

    def _wanted(self, text: str | None) -> Callable[[Reference], bool]:
        return select(self._filter(text))

    # --- sums over its messages ---------------------------------------------------------------

    def _sum(
        self,
        value: Callable[[Message], int],
        *,
        waiting: bool = True,
        delivered: bool = True,
        only_scheduled: bool = False,
    ) -> Generator[None, None, int]:
        total = 0
        if waiting:
            for reference in look(self.queue, lambda one: True):
                if reference is None:
                    yield
                elif not only_scheduled or reference.scheduled_ms:
                    total += value(reference.message)
        if delivered:
            for _, references in delivering(self._broker, self.queue):
                total += sum(value(reference.message) for reference in references)
        return total

    @operation("getPersistentSize")
    def persistent_size(self) -> Generator[None, None, int]:
        """Bytes of all its messages."""
        return self._sum(_size)

    @operation("getDurablePersistentSize")
    def durable_persistent_size(self) -> Generator[None, None, int]:
        """Bytes of its durable messages."""
        return self._sum(lambda message: _size(message) if message.durable else 0)

    @operation("getDurableMessageCount")
    def durable_message_count(self) -> Generator[None, None, int]:
        """How many durable ones it holds."""
        return self._sum(lambda message: int(message.durable))

    @operation("getScheduledSize")
    def scheduled_size(self) -> Generator[None, None, int]:
        """Bytes of those not due yet."""
        return self._sum(_size, delivered=False, only_scheduled=True)

    @operation("getDurableScheduledCount")
    def durable_scheduled_count(self) -> Generator[None, None, int]:
        """How many durable ones are not due yet."""
        return self._sum(lambda one: int(one.durable), delivered=False, only_scheduled=True)

    @operation("getDeliveringSize")
    def delivering_size(self) -> Generator[None, None, int]:
        """Bytes of those delivered and not acknowledged."""
        return self._sum(_size, waiting=False)

    @operation("getDurableDeliveringSize")
    def durable_delivering_size(self) -> Generator[None, None, int]:
        """Bytes of durable ones that are delivered and not acknowledged."""
        return self._sum(lambda one: _size(one) if one.durable else 0, waiting=False)

    @operation("getDurableScheduledSize")
    def durable_scheduled_size(self) -> Generator[None, None, int]:
        """Bytes of durable ones that are not due yet."""
        return self._sum(
            lambda one: _size(one) if one.durable else 0, delivered=False, only_scheduled=True
        )

    @operation("getPreparedTransactionMessageCount")
    def prepared_count(self) -> int:
        """How many of it are acknowledged by transactions that wait for their decision."""
        return sum(
            reference.queue is self.queue
            for tx in self._broker.parts.transactions.prepared()
            for reference in tx.acknowledged
        )

    @operation("getAcknowledgeAttempts")
    def acknowledge_attempts(self) -> int:
        """How many were acknowledged, also in transactions that are open or were rolled back."""
        in_doubt = sum(len(found) for _, _, found in acknowledged_of(self._broker, self.queue))
        return self.queue.acknowledged_count + self.queue.unacknowledged_count + in_doubt

    @operation("getDurableDeliveringCount")
    def durable_delivering_count(self) -> Generator[None, None, int]:
        """How many durable ones are delivered and not acknowledged."""
        return self._sum(lambda message: int(message.durable), waiting=False)

    # --- looking ------------------------------------------------------------------------------

    def _map(self, message: Message) -> dict[str, object]:
        return message_map(message, self.queue.settings.management_message_attribute_size_limit)

    def _listed(
        self, text: str | None, first: int = 0, most: int | None = None
    ) -> Generator[None, None, list[dict[str, object]]]:
        """Give messages that wait, from the one of this number on."""
        found: list[dict[str, object]] = []
        if most is None:
            most = self.queue.settings.management_browse_page_size
        if most == 0:
            return found
        number = 0
        for reference in look(self.queue, self._wanted(text)):
            if reference is None:
                yield
            elif not reference.scheduled_ms:
                if number >= first:
                    found.append(self._map(reference.message))
                    if len(found) == most:
                        break
                number += 1
        return found

    @operation("browse")
    @operation("browse", TEXT)
    def browse(self, text: str | None = None) -> Generator[None, None, list[dict[str, object]]]:
        """As listMessages; Artemis gives serialised Java here."""
        return self._listed(text)

    @operation("browse", INT, INT)
    @operation("browse", INT, INT, TEXT)
    def browse_page(
        self, page: int, page_size: int, text: str | None = None
    ) -> Generator[None, None, list[dict[str, object]]]:
        """One page of it, from 1."""
        if page < 1 or page_size < 1:
            raise ManagementError("pages are counted from 1, and have at least one message")
        return self._listed(text, (page - 1) * page_size, page_size)

    @operation("listMessages", TEXT)
    def list_messages(self, text: str | None) -> Generator[None, None, list[dict[str, object]]]:
        """Give messages that wait, management-browse-page-size at most."""
        return self._listed(text)

    @operation("listMessagesAsJSON", TEXT)
    def list_messages_as_json(self, text: str | None) -> Generator[None, None, str]:
        """The same as text."""
        return json_text((yield from self._listed(text)))

    @operation("listScheduledMessages")
    def list_scheduled(self) -> Generator[None, None, list[dict[str, object]]]:
        """Give those not due yet."""
        found = []
        for reference in in_parts(self.queue.scheduled()):
            if reference is None:
                yield
            else:
                found.append(self._map(reference.message))
        return found

    @operation("listScheduledMessagesAsJSON")
    def list_scheduled_as_json(self) -> Generator[None, None, str]:
        """The same as text."""
        return json_text((yield from self.list_scheduled()))

    @operation("listDeliveringMessages")
    def list_delivering(self) -> Generator[None, None, dict[str, list[dict[str, object]]]]:
        """Give those delivered and not acknowledged, by consumer."""
        found: dict[str, list[dict[str, object]]] = {}
        for name, references in list(delivering(self._broker, self.queue)):
            found[name] = []
            for reference in in_parts(references):
                if reference is None:
                    yield
                else:
                    found[name].append(self._map(reference.message))
        return found

    @operation("listDeliveringMessagesAsJSON")
    def list_delivering_as_json(self) -> Generator[None, None, str]:
        """The same as text."""
        found = yield from self.list_delivering()
        return json_text([{"consumerName": name, "elements": maps} for name, maps in found.items()])

    def _first(self) -> Message | None:
        first = self.queue.waiting.head()
        return None if first is None else first.message

    @operation("getFirstMessageAsJSON")
    def first_message_as_json(self) -> str:
        """Give the next one in an array, cut to the size limit; an array of null for none."""
        first = self._first()
        return json_text([None if first is None else self._map(first)])

    @operation("peekFirstMessageAsJSON")
    def peek_first(self) -> str:
        """Give the next one; the text `null` for none."""
        first = self._first()
        return json_text(None if first is None else message_map(first))

    @operation("peekFirstScheduledMessageAsJSON")
    def peek_first_scheduled(self) -> str:
        """Give the one that is due first; the text `null` for none."""
        first = next(self.queue.scheduled(), None)
        return json_text(None if first is None else message_map(first.message))

    @operation("getFirstMessageTimestamp")
    def first_timestamp(self) -> int | None:
        """When the next one was sent, ms since 1970."""
        first = self._first()
        return None if first is None else first.timestamp

    @operation("getFirstMessageAge")
    def first_age(self) -> int | None:
        """Ms since then."""
        sent_ms = self.first_timestamp()
        return None if sent_ms is None else self._broker.clock_ms() - sent_ms

    @operation("countMessages")
    @operation("countMessages", TEXT)
    def count_messages(self, text: str | None = None) -> Generator[float | None, None, int]:
        """How many it holds; with a filter how many of those that wait or are not due yet."""
        if text:
            return (yield from self._count(self._wanted(text)))
        return self.queue.message_count

    def _count(self, wanted: Callable[[Reference], bool]) -> Generator[float | None, None, int]:
        return (yield from each(self.queue, wanted, lambda one: True, in_pages=InPages.SHOWN))

    @operation("countMessages", TEXT, TEXT)
    def count_by_property(self, text: str | None, name: str | None) -> Generator[None, None, str]:
        """Give, as a JSON object, how many there are of each value of a property."""
        counts: dict[str, int] = {}
        for reference in look(self.queue, self._wanted(text)):
            if reference is None:
                yield
            else:
                _count(counts, reference.message, name)
        return json_text(counts)

    @operation("countDeliveringMessages", TEXT)
    def count_delivering(self, text: str | None) -> Generator[None, None, int]:
        """How many are delivered and not acknowledged."""
        if not text:
            return self.queue.delivering_count
        wanted, count = self._wanted(text), 0
        for reference in self._delivering():
            if reference is None:
                yield
            else:
                count += wanted(reference)
        return count

    def _delivering(self) -> Iterator[Reference | None]:
        for _, references in list(delivering(self._broker, self.queue)):
            yield from in_parts(references)

    @operation("countDeliveringMessages", TEXT, TEXT)
    def count_delivering_by_property(
        self, text: str | None, name: str | None
    ) -> Generator[None, None, str]:
        """The same for each value of a property, as a JSON object."""
        counts: dict[str, int] = {}
        wanted = self._wanted(text)
        for reference in self._delivering():
            if reference is None:
                yield
            elif wanted(reference):
                _count(counts, reference.message, name)
        return json_text(counts)

    @operation("listConsumersAsJSON")
    def list_consumers(self) -> str:
        """Give its consumers."""
        sessions = self._broker.clients.sessions.values()
        return json_text(
            [
                consumer_row(consumer, session)
                for session in sessions
                for consumer in session.consumers.values()
                if consumer.queue is self.queue
            ]
        )

    @operation("listGroupsAsJSON")
    def list_groups(self) -> str:
        """Give which consumer has which message group."""
        return json_text(
            [
                {"groupID": str(group), "consumerID": consumer.consumer_id}
                for group, consumer in self.queue.groups.owners().items()
            ]
        )


def _count(counts: dict[str, int], message: Message, name: str | None) -> None:
    value = None if name is None else message.get(name)
    key = "null" if value is None else str(value)
    counts[key] = counts.get(key, 0) + 1
