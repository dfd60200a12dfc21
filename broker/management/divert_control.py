"""A divert, looked at: `divert.NAME` (DivertControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.invocation import Control
from broker.management.json_texts import json_text
from broker.routing.retroactive import is_retroactive

if TYPE_CHECKING:
    from broker.management.invocation import Getters
    from broker.routing.divert import DivertBinding
    from broker.routing.retroactive import Retroactive

__all__ = ["DivertControl"]


class DivertControl(Control):
    """See the module's text.

    Args:
        divert: to look at.
        retroactive: has diverts of its own; None has none.
    """

    getters: ClassVar[Getters] = {
        "getUniqueName": lambda self: self.divert.unique_name,
        "getAddress": lambda self: self.divert.record.address,
        "getForwardingAddress": lambda self: self.divert.record.forwarding_address,
        "getRoutingName": lambda self: self.divert.record.routing_name,
        "getRoutingType": lambda self: self.divert.record.routing_type.name,
        "getFilter": lambda self: self.divert.record.filter,
        "isExclusive": lambda self: self.divert.is_exclusive,
        "isRetroactiveResource": lambda self: is_retroactive(
            self._retroactive, self.divert.unique_name
        ),
        "getTransformerClassName": lambda self: (
            None if self._transformer is None else self._transformer.class_name
        ),
        "getTransformerProperties": lambda self: self._properties,
        "getTransformerPropertiesAsJSON": lambda self: json_text(self._properties),
    }

    def __init__(self, divert: DivertBinding, retroactive: Retroactive | None) -> None:
        self._retroactive = retroactive
        self.divert = divert
        self._transformer = divert.record.transformer

    @property
    def _properties(self) -> dict[str | None, str | None]:
        return {} if self._transformer is None else dict(self._transformer.properties)
