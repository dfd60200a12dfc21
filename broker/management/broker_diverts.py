"""Diverts made, changed and removed by operators."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, MAP, NAME, TEXT, operation
from broker.management.json_texts import read_object
from broker.model.routing_type import RoutingType
from broker.notifications import NotificationType
from broker.records.binding_records import Divert, Transformer
from broker.routing.divert import DivertBinding

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BrokerDiverts"]

_TYPES: Final = ("MULTICAST", "ANYCAST", "STRIP", "PASS")


def _routing_type(name: str) -> RoutingType:
    if name.upper() not in _TYPES:
        raise ManagementError(f"no routing type {name}: {', '.join(_TYPES)}")
    return RoutingType[name.upper()]


def _texts(found: Mapping[str, object]) -> dict[str, str]:
    """Give every value of a divert's configuration as text, without those that are null."""
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in found.items()
        if value is not None and key != "transformer-configuration"
    }


def _transformer(class_name: str | None, properties: object) -> Transformer | None:
    """Give the transformer that an operation names; None where it names none.

    Raises:
        ManagementError: properties are not an object of texts.
    """
    if not class_name:
        return None
    found = read_object(properties) if isinstance(properties, str) and properties else properties
    if not isinstance(found, dict | None):
        raise ManagementError("properties of a transformer are an object of texts")
    return Transformer(
        class_name,
        tuple((key, None if text is None else str(text)) for key, text in (found or {}).items()),
    )


def _transformer_of_json(found: Mapping[str, object]) -> Transformer | None:
    """Give what stands in `transformer-configuration`.

    Raises:
        ManagementError: it is not an object with a class-name.
    """
    value = found.get("transformer-configuration")
    if value is None:
        return None
    inner = read_object(value) if isinstance(value, str) else value
    if not isinstance(inner, dict) or not isinstance(inner.get("class-name"), str):
        raise ManagementError("transformer-configuration needs a class-name")
    return _transformer(inner["class-name"], inner.get("properties"))


class BrokerDiverts(BrokerPart):
    """See the module's text."""

    @operation("createDivert", NAME)
    def create_divert_of_json(self, text: str) -> None:
        """Make a divert as a JSON text says."""
        given = read_object(text)
        found = _texts(given)
        self._create_divert(
            name=found.get("name", ""),
            routing_name=found.get("routing-name") or None,
            address=found.get("address", ""),
            forwarding_address=found.get("forwarding-address", ""),
            exclusive=found.get("exclusive", "false").lower() == "true",
            filter=found.get("filter-string") or None,
            routing_type=found.get("routing-type", "STRIP"),
            transformer=_transformer_of_json(given),
        )

    @operation("createDivert", NAME, TEXT, NAME, NAME, BOOLEAN, TEXT, TEXT)
    @operation("createDivert", NAME, TEXT, NAME, NAME, BOOLEAN, TEXT, TEXT, TEXT)
    def create_divert(
        self,
        name: str,
        routing_name: str | None,
        address: str,
        forwarding_address: str,
        exclusive: bool,
        filter: str | None,
        transformer: str | None,
        routing_type: str | None = None,
    ) -> None:
        """Make a divert, and record it."""
        self.create_divert_with_properties(
            name,
            routing_name,
            address,
            forwarding_address,
            exclusive,
            filter,
            transformer,
            None,
            routing_type,
        )

    @operation("createDivert", NAME, TEXT, NAME, NAME, BOOLEAN, TEXT, TEXT, MAP, TEXT)
    @operation("createDivert", NAME, TEXT, NAME, NAME, BOOLEAN, TEXT, TEXT, TEXT, TEXT)
    def create_divert_with_properties(
        self,
        name: str,
        routing_name: str | None,
        address: str,
        forwarding_address: str,
        exclusive: bool,
        filter: str | None,
        transformer: str | None,
        properties: object,
        routing_type: str | None,
    ) -> None:
        """The same; properties are for a transformer."""
        self._create_divert(
            name=name,
            routing_name=routing_name,
            address=address,
            forwarding_address=forwarding_address,
            exclusive=exclusive,
            filter=filter or None,
            routing_type=routing_type or "STRIP",
            transformer=_transformer(transformer, properties),
        )

    def _create_divert(
        self,
        *,
        name: str,
        routing_name: str | None,
        address: str,
        forwarding_address: str,
        exclusive: bool,
        filter: str | None,
        routing_type: str,
        transformer: Transformer | None,
    ) -> None:
        if not (name and address and forwarding_address):
            raise ManagementError("a divert needs a name, an address and a forwarding address")
        kind = _routing_type(routing_type)
        if self._addresses.find_divert(name) is not None:
            raise ManagementError(f"divert {name} exists")
        self._broker.parts.administration.ensure_address(address, [], is_auto_created=True)
        record = Divert(
            name=name,
            address=address,
            forwarding_address=forwarding_address,
            routing_name=routing_name or name,
            exclusive=exclusive,
            filter=filter,
            routing_type=kind,
            transformer=transformer,
        )
        divert = DivertBinding(record, parse_filter=self._broker.parse_filter)
        divert.binding_id = self._broker.parts.storage.add_setting(record)
        self._addresses.bind(divert)
        self._broker.parts.notifications.binding(NotificationType.BINDING_ADDED, divert)

    @operation("updateDivert", NAME)
    def update_divert_of_json(self, text: str) -> None:
        """Change a divert as a JSON text says; what it leaves out stays, but for the filter."""
        given = read_object(text)
        found = _texts(given)
        self._update(
            found.get("name", ""),
            found.get("forwarding-address"),
            found.get("filter-string"),
            found.get("routing-type"),
            _transformer_of_json(given),
        )

    @operation("updateDivert", NAME, TEXT, TEXT, TEXT, MAP, TEXT)
    def update_divert(
        self,
        name: str,
        forwarding_address: str | None,
        filter: str | None,
        transformer: str | None,
        properties: object,
        routing_type: str | None,
    ) -> None:
        """Change a divert: no filter is none from now on, null of the others leaves them."""
        made = _transformer(transformer, properties)
        self._update(name, forwarding_address, filter, routing_type, made)

    def _update(
        self,
        name: str,
        forwarding_address: str | None,
        filter: str | None,
        routing_type: str | None,
        transformer: Transformer | None,
    ) -> None:
        divert = self._divert(name)
        record = replace(
            divert.record,
            filter=filter or None,
            forwarding_address=forwarding_address or divert.record.forwarding_address,
            routing_type=_routing_type(routing_type)
            if routing_type
            else divert.record.routing_type,
            transformer=transformer or divert.record.transformer,
        )
        if record == divert.record:
            return
        changed = DivertBinding(record, divert.binding_id, parse_filter=self._broker.parse_filter)
        if divert.binding_id:
            changed.binding_id = self._broker.parts.storage.replace_setting(
                divert.binding_id, record
            )
        self._addresses.bind(changed)

    def _divert(self, name: str) -> DivertBinding:
        found = self._addresses.find_divert(name)
        if found is None:
            raise BrokerError(
                ErrorCode.DIVERT_DOES_NOT_EXIST, f"AMQ229231: Divert Does Not Exist: {name}"
            )
        return found

    @operation("destroyDivert", NAME)
    def destroy_divert(self, name: str) -> None:
        """Remove a divert; a configured one is there again after a restart."""
        self._addresses.delete_divert(self._divert(name))
