"""Queues made, changed and removed by operators: every form that Artemis has of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import (
    BOOLEAN,
    BOOLEAN_OR_NULL,
    INT,
    INT_OR_NULL,
    LONG,
    LONG_OR_NULL,
    NAME,
    TEXT,
    operation,
)
from broker.management.queue_texts import (
    changes_of,
    queue_line,
    queue_request,
    queue_text,
    routing_type_of,
)
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from broker.management.invocation import ArgumentType
    from broker.queues.queue import Queue

__all__ = ["BrokerQueues"]

# Parameters of the long forms of createQueue, in order: an attribute of a QueueRequest and a kind.
_CREATED: Final[tuple[tuple[str, ArgumentType], ...]] = (
    ("address", TEXT),
    ("routing_type", TEXT),
    ("name", NAME),
    ("filter", TEXT),
    ("is_durable", BOOLEAN),
    ("max_consumers", INT),
    ("purge_on_no_consumers", BOOLEAN),
    ("exclusive", BOOLEAN),
    ("group_rebalance", BOOLEAN),
    ("group_buckets", INT),
    ("group_first_key", TEXT),
    ("last_value", BOOLEAN),
    ("last_value_key", TEXT),
    ("non_destructive", BOOLEAN),
    ("consumers_before_dispatch", INT),
    ("delay_before_dispatch", LONG),
    ("auto_delete", BOOLEAN),
    ("auto_delete_delay", LONG),
    ("auto_delete_message_count", LONG),
    ("auto_create_address", BOOLEAN),
    ("ring_size", LONG),
)
_DELETION: Final = ("auto_delete", "auto_delete_delay", "auto_delete_message_count")
# Likewise of updateQueue: attributes of a QueueBinding, and `user`.
_UPDATED: Final[tuple[tuple[str, ArgumentType], ...]] = (
    ("name", NAME),
    ("routing_type", TEXT),
    ("filter", TEXT),
    ("max_consumers", INT_OR_NULL),
    ("purge_on_no_consumers", BOOLEAN_OR_NULL),
    ("exclusive", BOOLEAN_OR_NULL),
    ("group_rebalance", BOOLEAN_OR_NULL),
    ("group_buckets", INT_OR_NULL),
    ("group_first_key", TEXT),
    ("non_destructive", BOOLEAN_OR_NULL),
    ("consumers_before_dispatch", INT_OR_NULL),
    ("delay_before_dispatch", LONG_OR_NULL),
    ("user", TEXT),
    ("ring_size", LONG_OR_NULL),
)


def _without(
    table: tuple[tuple[str, ArgumentType], ...], *names: str
) -> tuple[tuple[str, ArgumentType], ...]:
    return tuple(item for item in table if item[0] not in names)


def _kinds(table: tuple[tuple[str, ArgumentType], ...]) -> tuple[ArgumentType, ...]:
    return tuple(kind for _, kind in table)


_CREATE_21: Final = _CREATED
_CREATE_20: Final = _without(_CREATED, "ring_size")
_CREATE_19: Final = _without(_CREATE_20, "group_first_key")
_CREATE_16: Final = _without(_CREATE_19, *_DELETION)
_CREATE_8: Final = (*_CREATED[:7], ("auto_create_address", BOOLEAN))
_CREATES: Final = {
    len(table): [name for name, _ in table]
    for table in (_CREATE_8, _CREATE_16, _CREATE_19, _CREATE_20, _CREATE_21)
}
_UPDATE_14: Final = _UPDATED
_UPDATE_13: Final = _without(_UPDATED, "ring_size")
_UPDATE_12: Final = _without(_UPDATE_13, "group_first_key")
_UPDATE_6: Final = (*_UPDATED[:2], *_UPDATED[3:6], ("user", TEXT))
_UPDATES: Final = {
    len(table): [name for name, _ in table]
    for table in (_UPDATE_6[:4], _UPDATE_6[:5], _UPDATE_6, _UPDATE_12, _UPDATE_13, _UPDATE_14)
}


class BrokerQueues(BrokerPart):
    """See the module's text."""

    def _create(self, request: QueueRequest) -> Queue:
        if not request.name:
            raise ManagementError("a queue needs a name")
        if not request.address:
            request = replace(request, address=request.name)
        return self._broker.parts.administration.create_queue(request)

    @operation("createQueue", NAME, NAME)
    @operation("createQueue", NAME, NAME, TEXT)
    def create_queue(self, address: str, name: str, routing_type: str | None = None) -> None:
        """Make a durable queue."""
        self._create(
            QueueRequest(address=address, name=name, routing_type=routing_type_of(routing_type))
        )

    @operation("createQueue", NAME, NAME, BOOLEAN)
    @operation("createQueue", NAME, NAME, BOOLEAN, TEXT)
    def create_queue_of_durability(
        self, address: str, name: str, durable: bool, routing_type: str | None = None
    ) -> None:
        """Make a queue, durable or not."""
        self._create(
            QueueRequest(
                address=address,
                name=name,
                is_durable=durable,
                routing_type=routing_type_of(routing_type),
            )
        )

    @operation("createQueue", NAME, NAME, TEXT, BOOLEAN)
    @operation("createQueue", NAME, NAME, TEXT, BOOLEAN, TEXT)
    def create_filtered_queue(
        self,
        address: str,
        name: str,
        filter: str | None,
        durable: bool,
        routing_type: str | None = None,
    ) -> None:
        """Make a queue with a filter."""
        self._create(
            QueueRequest(
                address=address,
                name=name,
                filter=filter or None,
                is_durable=durable,
                routing_type=routing_type_of(routing_type),
            )
        )

    @operation("createQueue", *_kinds(_CREATE_8))
    @operation("createQueue", *_kinds(_CREATE_16))
    @operation("createQueue", *_kinds(_CREATE_19))
    @operation("createQueue", *_kinds(_CREATE_20))
    @operation("createQueue", *_kinds(_CREATE_21))
    def create_queue_of_all(self, *values: object) -> str:
        """Make a queue of all its attributes, or of the older ones; it as a line."""
        given: dict[str, Any] = dict(zip(_CREATES[len(values)], values, strict=True))
        for name in ("address", "filter", "group_first_key", "last_value_key"):
            # Blank is none.
            given[name] = given.get(name) or None
        given["address"] = given["address"] or given["name"]
        given["routing_type"] = routing_type_of(given["routing_type"])
        return queue_line(self._create(QueueRequest(**given)))

    @operation("createQueue", NAME)
    @operation("createQueue", NAME, BOOLEAN)
    def create_queue_of_json(self, text: str, ignores_existing: bool = False) -> str:
        """Make a queue as a JSON text says; its configuration as JSON."""
        request = queue_request(text)
        found = self._addresses.queues.get(request.name)
        if found is None or not ignores_existing:
            found = self._broker.parts.administration.create_queue(request)
        return queue_text(found)

    @operation("deployQueue", NAME, NAME, TEXT)
    @operation("deployQueue", NAME, NAME, TEXT, BOOLEAN)
    def deploy_queue(
        self, address: str, name: str, filter: str | None, durable: bool = True
    ) -> None:
        """Make a queue unless it is there."""
        if name not in self._addresses.queues:
            self.create_filtered_queue(address, name, filter, durable)

    @operation("updateQueue", NAME)
    def update_queue_of_json(self, text: str) -> str:
        """Change a queue as a JSON text says; its configuration as JSON."""
        name, changes = changes_of(text)
        return queue_text(self._addresses.update_queue(name, **changes))

    @operation("updateQueue", *_kinds(_UPDATE_6[:4]))
    @operation("updateQueue", *_kinds(_UPDATE_6[:5]))
    @operation("updateQueue", *_kinds(_UPDATE_6))
    @operation("updateQueue", *_kinds(_UPDATE_12))
    @operation("updateQueue", *_kinds(_UPDATE_13))
    @operation("updateQueue", *_kinds(_UPDATE_14))
    def update_queue(self, *values: object) -> str:
        """Change attributes that are not null; the queue as a line."""
        given: dict[str, Any] = dict(zip(_UPDATES[len(values)], values, strict=True))
        name = given.pop("name")
        given["routing_type"] = routing_type_of(given["routing_type"])
        user = given.pop("user", None)
        if user is not None:
            given["metadata"] = f"user={user};"
        changes = {key: value for key, value in given.items() if value is not None}
        if "filter" in changes:
            changes["filter"] = changes["filter"] or None
        return queue_line(self._addresses.update_queue(name, **changes))

    @operation("destroyQueue", NAME)
    @operation("destroyQueue", NAME, BOOLEAN)
    @operation("destroyQueue", NAME, BOOLEAN, BOOLEAN)
    def destroy_queue(
        self, name: str, removes_consumers: bool = False, deletes_address: bool = False
    ) -> None:
        """Remove a queue; one with consumers only if they may be closed."""
        self._addresses.delete_queue(
            name, check_consumers=not removes_consumers, delete_address=deletes_address
        )
