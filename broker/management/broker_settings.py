"""Address settings given by operators: as JSON, or one argument a setting."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, DOUBLE, INT, LONG, NAME, TEXT, operation
from broker.management.json_texts import json_text, read_object
from broker.settings.settings import SETTINGS, AddressSettings

if TYPE_CHECKING:
    from broker.management.invocation import ArgumentType

__all__ = ["BrokerSettings"]

# Parameters of addAddressSettings behind the match, in order: a setting's name in JSON, its kind.
_PARAMETERS: Final[tuple[tuple[str, ArgumentType], ...]] = (
    ("deadLetterAddress", TEXT),
    ("expiryAddress", TEXT),
    ("expiryDelay", LONG),
    ("defaultLastValueQueue", BOOLEAN),
    ("maxDeliveryAttempts", INT),
    ("maxSizeBytes", LONG),
    ("pageSizeBytes", INT),
    ("pageCacheMaxSize", INT),
    ("redeliveryDelay", LONG),
    ("redeliveryMultiplier", DOUBLE),
    ("maxRedeliveryDelay", LONG),
    ("redistributionDelay", LONG),
    ("sendToDLAOnNoRoute", BOOLEAN),
    ("addressFullMessagePolicy", TEXT),
    ("slowConsumerThreshold", LONG),
    ("slowConsumerCheckPeriod", LONG),
    ("slowConsumerPolicy", TEXT),
    ("autoCreateJmsQueues", BOOLEAN),
    ("autoDeleteJmsQueues", BOOLEAN),
    ("autoCreateJmsTopics", BOOLEAN),
    ("autoDeleteJmsTopics", BOOLEAN),
    # From here on newer ones: the shorter forms end at _LENGTHS.
    ("autoCreateQueues", BOOLEAN),
    ("autoDeleteQueues", BOOLEAN),
    ("autoCreateAddresses", BOOLEAN),
    ("autoDeleteAddresses", BOOLEAN),
    ("configDeleteQueues", TEXT),
    ("configDeleteAddresses", TEXT),
    ("maxSizeBytesRejectThreshold", LONG),
    ("defaultLastValueKey", TEXT),
    ("defaultNonDestructive", BOOLEAN),
    ("defaultExclusiveQueue", BOOLEAN),
    ("defaultGroupRebalance", BOOLEAN),
    ("defaultGroupBuckets", INT),
    ("defaultGroupFirstKey", TEXT),
    ("defaultMaxConsumers", INT),
    ("defaultPurgeOnNoConsumers", BOOLEAN),
    ("defaultConsumersBeforeDispatch", INT),
    ("defaultDelayBeforeDispatch", LONG),
    ("defaultQueueRoutingType", TEXT),
    ("defaultAddressRoutingType", TEXT),
    ("defaultConsumerWindowSize", INT),
    ("defaultRingSize", LONG),
    ("autoDeleteCreatedQueues", BOOLEAN),
    ("autoDeleteQueuesDelay", LONG),
    ("autoDeleteQueuesMessageCount", LONG),
    ("autoDeleteAddressesDelay", LONG),
    ("redeliveryCollisionAvoidanceFactor", DOUBLE),
    ("retroactiveMessageCount", LONG),
    ("autoCreateDeadLetterResources", BOOLEAN),
    ("deadLetterQueuePrefix", TEXT),
    ("deadLetterQueueSuffix", TEXT),
    ("autoCreateExpiryResources", BOOLEAN),
    ("expiryQueuePrefix", TEXT),
    ("expiryQueueSuffix", TEXT),
    ("minExpiryDelay", LONG),
    ("maxExpiryDelay", LONG),
    ("enableMetrics", BOOLEAN),
)
_KINDS: Final = tuple(kind for _, kind in _PARAMETERS)
_LENGTHS: Final = (21, 25, 48, 54, 57)
_DEFAULTS: Final = AddressSettings()


def _default(json_name: str) -> object:
    """Give what Artemis sets for a parameter that a shorter form, or a blank text, leaves out."""
    for item in SETTINGS:
        if item.json_name == json_name:
            value = getattr(_DEFAULTS, item.attribute)
            return value.name if isinstance(value, Enum) else value
    raise LookupError(json_name)


class BrokerSettings(BrokerPart):
    """See the module's text."""

    @operation("addAddressSettings", NAME, NAME)
    def add_address_settings(self, match: str, text: str) -> str:
        """Set what holds for a match; what was taken, as JSON."""
        return self._add(match, read_object(text))

    def _add(self, match: str, found: dict[str, object]) -> str:
        try:
            settings = AddressSettings.from_json(found)
            most = settings.max_size_bytes
            if 0 < most < settings.page_size_bytes and "page_size_bytes" in settings.given:
                raise ManagementError(
                    f"pageSizeBytes {settings.page_size_bytes} is larger than maxSizeBytes {most}"
                )
            self._broker.parts.stored_settings.add(match, settings)
        except ValueError as error:
            raise ManagementError(str(error)) from None
        return json_text(settings.to_json())

    @operation("addAddressSettings", NAME, *_KINDS[: _LENGTHS[0]])
    @operation("addAddressSettings", NAME, *_KINDS[: _LENGTHS[1]])
    @operation("addAddressSettings", NAME, *_KINDS[: _LENGTHS[2]])
    @operation("addAddressSettings", NAME, *_KINDS[: _LENGTHS[3]])
    @operation("addAddressSettings", NAME, *_KINDS[: _LENGTHS[4]])
    def add_all_address_settings(self, match: str, *values: object) -> None:
        """Set every setting of a match that there is a parameter for, defaults for the others."""
        found: dict[str, object] = {}
        for at, (name, kind) in enumerate(_PARAMETERS):
            value = values[at] if at < len(values) else None
            if value is None or (kind is TEXT and not value):
                value = _default(name)
            if isinstance(value, str) and _is_choice(name):
                value = value.upper()
            found[name] = value
        self._add(match, found)

    @operation("removeAddressSettings", NAME)
    def remove_address_settings(self, match: str) -> None:
        """Take a match away."""
        self._broker.parts.stored_settings.remove(match)


def _is_choice(json_name: str) -> bool:
    return json_name.endswith(("Policy", "RoutingType")) or json_name.startswith("configDelete")
