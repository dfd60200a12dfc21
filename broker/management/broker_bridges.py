"""Core bridges made and removed by operators."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker.config.addressing import ComponentRoutingType, Transformer
from broker.config.cluster import BridgeConfig, StaticConnectors
from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, DOUBLE, INT, LONG, MAP, NAME, TEXT, operation
from broker.management.json_texts import read_object
from broker.management.waiting import awaited
from broker.settings.value_types import BOOLEAN as TRUTH
from broker.settings.value_types import DOUBLE as REAL
from broker.settings.value_types import INT as WHOLE
from broker.settings.value_types import ValueType, choice

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from broker.management.invocation import Getters

__all__ = ["BrokerBridges"]

_TYPE: Final = choice(ComponentRoutingType)
# Keys of createBridge's JSON (BridgeConfiguration): the field of the configuration, and its kind.
_FIELDS: Final[Mapping[str, tuple[str, ValueType[Any] | None]]] = {
    "name": ("name", None),
    "queue-name": ("queue_name", None),
    "forwarding-address": ("forwarding_address", None),
    "filter-string": ("filter", None),
    "discovery-group-name": ("discovery_group_ref", None),
    "ha": ("ha", TRUTH),
    "retry-interval": ("retry_interval_ms", WHOLE),
    "retry-interval-multiplier": ("retry_interval_multiplier", REAL),
    "max-retry-interval": ("max_retry_interval_ms", WHOLE),
    "initial-connect-attempts": ("initial_connect_attempts", WHOLE),
    "reconnect-attempts": ("reconnect_attempts", WHOLE),
    "reconnect-attempts-on-same-node": ("reconnect_attempts_same_node", WHOLE),
    "use-duplicate-detection": ("use_duplicate_detection", TRUTH),
    "confirmation-window-size": ("confirmation_window_size_bytes", WHOLE),
    "producer-window-size": ("producer_window_size_bytes", WHOLE),
    "client-failure-check-period": ("check_period_ms", WHOLE),
    "connection-ttl": ("connection_ttl_ms", WHOLE),
    "min-large-message-size": ("min_large_message_size_bytes", WHOLE),
    "user": ("user", None),
    "password": ("password", None),
    "concurrency": ("concurrency", WHOLE),
    "pending-ack-timeout": ("pending_ack_timeout_ms", WHOLE),
    "client-id": ("client_id", None),
    "routing-type": ("routing_type", _TYPE),
}
# Taken and without effect: who made it is known, and calls have a timeout of 30 s.
_IGNORED: Final = frozenset({"configuration-managed", "call-timeout", "parent-name"})


def _config_of(found: Mapping[str, object]) -> BridgeConfig:
    """Give the configuration that a JSON object says.

    Raises:
        ManagementError: a key is unknown, a value is wrong, or something is missing.
    """
    values: dict[str, Any] = {}
    connectors = found.get("static-connectors")
    for key, value in found.items():
        if value is None or key in _IGNORED or key in ("static-connectors", "transformer"):
            continue
        if key == "transformer-configuration":
            values["transformer"] = _transformer(value)
            continue
        if key not in _FIELDS:
            raise ManagementError(f"a bridge has no {key!r}: {', '.join(_FIELDS)}")
        name, kind = _FIELDS[key]
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            values[name] = text if kind is None else kind.parse(text)
        except ValueError as error:
            raise ManagementError(f"{key}: {error}") from None
    if isinstance(connectors, str):
        connectors = [one.strip() for one in connectors.split(",") if one.strip()]
    if connectors is not None:
        if not isinstance(connectors, list):
            raise ManagementError("static-connectors is a list of names")
        values["static_connectors"] = StaticConnectors(connector_refs=tuple(map(str, connectors)))
    if not values.get("name") or not values.get("queue_name"):
        raise ManagementError("a bridge needs a name and a queue-name")
    return _made(values)


def _made(values: Mapping[str, Any]) -> BridgeConfig:
    defaults: dict[str, Any] = dict.fromkeys(("static_connectors", "discovery_group_ref"))
    try:
        made = BridgeConfig(**(defaults | dict(values)))
    except ValueError as error:
        raise ManagementError(str(error)) from None
    if made.concurrency < 1 or made.min_large_message_size_bytes < 1:
        raise ManagementError("concurrency and min-large-message-size are at least 1")
    return made


def _transformer(value: object) -> Transformer:
    """Give what stands in `transformer-configuration`."""
    found = read_object(value) if isinstance(value, str) else value
    if not isinstance(found, dict) or not isinstance(found.get("class-name"), str):
        raise ManagementError("transformer-configuration needs a class-name")
    properties = found.get("properties") or {}
    if not isinstance(properties, dict):
        raise ManagementError("properties of a transformer are an object of texts")
    return Transformer(
        class_name=found["class-name"],
        properties=tuple((key, str(text)) for key, text in properties.items()),
    )


class BrokerBridges(BrokerPart):
    """See the module's text."""

    getters: ClassVar[Getters] = {"getBridgeNames": lambda self: list(self._broker.bridges.by_name)}

    @operation("createBridge", NAME)
    def create_bridge_of_json(self, text: str) -> None:
        """Make a bridge as a JSON text says, and record it."""
        self._broker.bridges.create(_config_of(read_object(text)))

    # name, queue, forwarding address, filter, transformer (and its properties), retry interval,
    # multiplier, initial attempts, reconnect attempts, duplicate detection, confirmation window
    # (and producer window), check period, connectors or group, which of them, ha, user, password

    @operation(
        *("createBridge", NAME, NAME, TEXT, TEXT, TEXT, LONG, DOUBLE, INT, INT, BOOLEAN, INT),
        *(LONG, TEXT, BOOLEAN, BOOLEAN, TEXT, TEXT),
    )
    def create_bridge(self, *given: Any) -> None:  # noqa: ANN401 - by their kinds.
        """Make a bridge, and record it."""
        self._create_bridge(given[:5], None, given[5:11], None, given[11:])

    @operation(
        *("createBridge", NAME, NAME, TEXT, TEXT, TEXT, LONG, DOUBLE, INT, INT, BOOLEAN, INT, INT),
        *(LONG, TEXT, BOOLEAN, BOOLEAN, TEXT, TEXT),
    )
    def create_bridge_with_window(self, *given: Any) -> None:  # noqa: ANN401
        """The same with producer-window-size."""
        self._create_bridge(given[:5], None, given[5:11], given[11], given[12:])

    @operation(
        *("createBridge", NAME, NAME, TEXT, TEXT, TEXT, MAP, LONG, DOUBLE, INT, INT, BOOLEAN, INT),
        *(INT, LONG, TEXT, BOOLEAN, BOOLEAN, TEXT, TEXT),
    )
    @operation(
        *("createBridge", NAME, NAME, TEXT, TEXT, TEXT, TEXT, LONG, DOUBLE, INT, INT, BOOLEAN, INT),
        *(INT, LONG, TEXT, BOOLEAN, BOOLEAN, TEXT, TEXT),
    )
    def create_bridge_with_properties(self, *given: Any) -> None:  # noqa: ANN401
        """The same with properties for the transformer, as JSON or a map."""
        self._create_bridge(given[:5], given[5], given[6:12], given[12], given[13:])

    def _create_bridge(
        self,
        first: tuple[Any, ...],
        properties: object,
        retry: tuple[Any, ...],
        producer_window: int | None,
        last: tuple[Any, ...],
    ) -> None:
        name, queue, forwarding_address, filter_text, transformer = first
        interval, multiplier, initial, attempts, detects, window = retry
        check_period, leads_to, uses_group, ha, user, password = last
        values: dict[str, Any] = {
            "name": name,
            "queue_name": queue,
            "forwarding_address": forwarding_address or None,
            "filter": filter_text or None,
            "retry_interval_ms": interval,
            "retry_interval_multiplier": multiplier,
            "initial_connect_attempts": initial,
            "reconnect_attempts": attempts,
            "use_duplicate_detection": detects,
            "confirmation_window_size_bytes": window,
            "check_period_ms": check_period,
            "ha": ha,
        }
        if producer_window is not None:
            values["producer_window_size_bytes"] = producer_window
        if user is not None:
            values |= {"user": user, "password": password or ""}
        if transformer:
            values["transformer"] = _transformer(
                {
                    "class-name": transformer,
                    "properties": read_object(properties)
                    if isinstance(properties, str)
                    else properties,
                }
            )
        if uses_group:
            values["discovery_group_ref"] = leads_to
        else:
            names = tuple(one.strip() for one in (leads_to or "").split(",") if one.strip())
            values["static_connectors"] = StaticConnectors(connector_refs=names)
        self._broker.bridges.create(_made(values))

    @operation("destroyBridge", NAME)
    def destroy_bridge(self, name: str) -> Generator[float, None, None]:
        """Stop a bridge and forget it; a configured one is there again after a restart."""
        if self._broker.bridges.destroy(name):
            yield from awaited(self._broker.bridges.left(name))
