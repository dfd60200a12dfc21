"""Queues as operators write and read them: JSON with broker.xml's names (QueueConfiguration)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.management.errors import ManagementError
from broker.management.json_texts import json_text, read_object
from broker.model.routing_type import RoutingType
from broker.settings.queue_defaults import QueueRequest
from broker.settings.value_types import BOOLEAN, INT, LONG, TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.queues.queue import Queue
    from broker.settings.value_types import ValueType

__all__ = ["changes_of", "queue_line", "queue_request", "queue_text", "routing_type_of"]

T = TypeVar("T")

# Name in JSON, attribute of a QueueRequest and of a QueueBinding, kind.
_ATTRIBUTES: Final[tuple[tuple[str, str, ValueType[Any]], ...]] = (
    ("filter-string", "filter", TEXT),
    ("max-consumers", "max_consumers", INT),
    ("exclusive", "exclusive", BOOLEAN),
    ("group-rebalance", "group_rebalance", BOOLEAN),
    ("group-rebalance-pause-dispatch", "group_rebalance_pause_dispatch", BOOLEAN),
    ("group-buckets", "group_buckets", INT),
    ("group-first-key", "group_first_key", TEXT),
    ("last-value", "last_value", BOOLEAN),
    ("last-value-key", "last_value_key", TEXT),
    ("non-destructive", "non_destructive", BOOLEAN),
    ("purge-on-no-consumers", "purge_on_no_consumers", BOOLEAN),
    ("enabled", "enabled", BOOLEAN),
    ("consumers-before-dispatch", "consumers_before_dispatch", INT),
    ("delay-before-dispatch", "delay_before_dispatch", LONG),
    ("auto-delete", "auto_delete", BOOLEAN),
    ("auto-delete-delay", "auto_delete_delay", LONG),
    ("auto-delete-message-count", "auto_delete_message_count", LONG),
    ("ring-size", "ring_size", LONG),
)
# What a queue keeps as it was made with.
_FIXED: Final = ("last_value", "last_value_key", "auto_delete_delay", "auto_delete_message_count")
_FLAGS: Final = (
    ("durable", "is_durable"),
    ("temporary", "is_temporary"),
    ("auto-created", "is_auto_created"),
    ("internal", "is_internal"),
    ("configuration-managed", "is_configuration_managed"),
    ("auto-create-address", "auto_create_address"),
)


def routing_type_of(text: str | None) -> RoutingType | None:
    """Give a routing type by its name; None for none.

    Raises:
        ManagementError: there is none of that name.
    """
    if not text:
        return None
    if text.upper() not in ("ANYCAST", "MULTICAST"):
        raise ManagementError(f"no routing type {text}: ANYCAST or MULTICAST")
    return RoutingType[text.upper()]


def _value(found: Mapping[str, object], name: str, kind: ValueType[T]) -> T | None:
    value = found.get(name)
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return kind.parse(text)
    except ValueError as error:
        raise ManagementError(f"{name}: {error}") from None


def _named(text: str) -> tuple[dict[str, object], str]:
    """Give a JSON object and the queue's name in it.

    Raises:
        ManagementError: it is none, or names no queue.
    """
    found = read_object(text)
    name = _value(found, "name", TEXT)
    if not isinstance(name, str) or not name:
        raise ManagementError(f"AMQ229229: Failed to parse JSON queue configuration: {text[:200]}")
    return found, name


def queue_request(text: str, user: str | None = None) -> QueueRequest:
    """Give what a JSON text wants made; what it leaves open the address's settings decide.

    Raises:
        ManagementError: it cannot be read.
    """
    found, name = _named(text)
    # Attributes by name: their kinds are those of the table.
    given: dict[str, Any] = {
        attribute: value
        for key, attribute in _FLAGS
        if (value := _value(found, key, BOOLEAN)) is not None
    }
    given |= {attribute: _value(found, key, kind) for key, attribute, kind in _ATTRIBUTES}
    return QueueRequest(
        name=name,
        address=_value(found, "address", TEXT) or name,
        routing_type=routing_type_of(_value(found, "routing-type", TEXT)),
        user=_value(found, "user", TEXT) or user,
        **given,
    )


def changes_of(text: str) -> tuple[str, dict[str, Any]]:
    """Give the queue's name and what a JSON text wants changed of it.

    Raises:
        ManagementError: it cannot be read.
    """
    found, name = _named(text)
    changes: dict[str, Any] = {
        attribute: value
        for key, attribute, kind in _ATTRIBUTES
        if attribute not in _FIXED and (value := _value(found, key, kind)) is not None
    }
    routing_type = routing_type_of(_value(found, "routing-type", TEXT))
    if routing_type is not None:
        changes["routing_type"] = routing_type
    return name, changes


def queue_text(queue: Queue) -> str:
    """Give a queue's configuration as JSON."""
    binding = queue.binding
    shown: dict[str, object] = {
        "id": queue.queue_id,
        "name": queue.name,
        "address": binding.address,
        "routing-type": binding.routing_type.name,
        "durable": queue.is_durable,
        "temporary": queue.is_temporary,
        "auto-created": binding.auto_created,
        "internal": binding.internal,
        "configuration-managed": binding.configuration_managed,
        "user": binding.user,
        **{key: getattr(binding, attribute) for key, attribute, _ in _ATTRIBUTES},
    }
    return json_text({name: value for name, value in shown.items() if value is not None})


def queue_line(queue: Queue) -> str:
    """Give a queue in one line (QueueTextFormatter)."""
    binding = queue.binding
    parts = {
        "name": queue.name,
        "address": binding.address,
        "routingType": binding.routing_type.name,
        "durable": queue.is_durable,
        "purgeOnNoConsumers": binding.purge_on_no_consumers,
        "autoCreateAddress": False,
        "exclusive": binding.exclusive,
        "lastValue": binding.last_value,
        "lastValueKey": binding.last_value_key,
        "nonDestructive": binding.non_destructive,
        "consumersBeforeDispatch": binding.consumers_before_dispatch,
        "delayBeforeDispatch": binding.delay_before_dispatch,
        "autoCreated": binding.auto_created,
        "autoDelete": binding.auto_delete,
    }
    texts = [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in parts.items()
    ]
    return f"Queue [{', '.join(texts)}]".replace("=None", "=null")
