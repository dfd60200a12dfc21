"""Artemis's text of address settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.java_text import double_text, text_of
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.records.address_settings import AddressSetting, AddressSettingJson

# Every setting in the order of the text.
_NAMES: Final = (
    *("addressFullMessagePolicy", "maxSizeBytes", "maxReadPageBytes", "maxReadPageMessages"),
    *("prefetchPageBytes", "prefetchPageMessages", "pageLimitBytes", "pageLimitMessages"),
    *("pageFullMessagePolicy", "diskFullMessagePolicy", "maxSizeMessages", "pageSizeBytes"),
    *("pageCacheMaxSize", "maxDeliveryAttempts", "messageCounterHistoryDayLimit"),
    *("redeliveryDelay", "redeliveryMultiplier", "redeliveryCollisionAvoidanceFactor"),
    *("maxRedeliveryDelay", "deadLetterAddress", "expiryAddress", "expiryDelay"),
    *("minExpiryDelay", "maxExpiryDelay", "noExpiry", "defaultLastValueQueue"),
    *("defaultLastValueKey", "defaultNonDestructive", "defaultExclusiveQueue"),
    *("defaultGroupRebalance", "defaultGroupRebalancePauseDispatch", "defaultGroupBuckets"),
    *("defaultGroupFirstKey", "redistributionDelay", "sendToDLAOnNoRoute"),
    *("slowConsumerThreshold", "slowConsumerThresholdMeasurementUnit"),
    *("slowConsumerCheckPeriod", "slowConsumerPolicy", "autoCreateJmsQueues"),
    *("autoDeleteJmsQueues", "autoCreateJmsTopics", "autoDeleteJmsTopics", "autoCreateQueues"),
    *("autoDeleteQueues", "autoDeleteCreatedQueues", "autoDeleteQueuesDelay"),
    *("autoDeleteQueuesSkipUsageCheck", "autoDeleteQueuesMessageCount", "defaultRingSize"),
    *("retroactiveMessageCount", "configDeleteQueues", "autoCreateAddresses"),
    *("autoDeleteAddresses", "autoDeleteAddressesDelay", "autoDeleteAddressesSkipUsageCheck"),
    *("configDeleteAddresses", "configDeleteDiverts", "managementBrowsePageSize"),
    *("maxSizeBytesRejectThreshold", "defaultMaxConsumers", "defaultPurgeOnNoConsumers"),
    *("defaultConsumersBeforeDispatch", "defaultDelayBeforeDispatch", "defaultQueueRoutingType"),
    *("defaultAddressRoutingType", "defaultConsumerWindowSize", "autoCreateDeadLetterResources"),
    *("deadLetterQueuePrefix", "deadLetterQueueSuffix", "autoCreateExpiryResources"),
    *("expiryQueuePrefix", "expiryQueueSuffix", "enableMetrics"),
    *("managementMessageAttributeSizeLimit", "enableIngressTimestamp", "idCacheSize"),
    *("queuePrefetch", "initialQueueBufferSize"),
)
# The one setting that the text calls otherwise.
_TEXT_NAMES: Final = {"pageCacheMaxSize": "pageMaxCache"}
_DOUBLES: Final = ("redeliveryMultiplier", "redeliveryCollisionAvoidanceFactor")
_ROUTING_TYPES: Final = ("defaultQueueRoutingType", "defaultAddressRoutingType")
_ROUTING_TYPE_NAMES: Final[Mapping[object, str]] = {
    kind.value: kind.name for kind in (RoutingType.MULTICAST, RoutingType.ANYCAST)
}
_UNIT: Final = "slowConsumerThresholdMeasurementUnit"
_UNIT_NAMES: Final[Mapping[object, str]] = {
    1: "MESSAGES_PER_SECOND",
    60: "MESSAGES_PER_MINUTE",
    3600: "MESSAGES_PER_HOUR",
    86400: "MESSAGES_PER_DAY",
}


def json_settings_text(record: AddressSettingJson) -> str:
    """Give the text of settings kept as JSON; a name that is not a setting is left out.

    Raises:
        RecordFormatError: they are not a JSON object.
    """
    return _settings_text(record.settings())


def binary_settings_text(record: AddressSetting) -> str:
    """Give the text of settings in the old binary form."""
    settings: dict[str, object] = dict(record.settings)
    for name in _ROUTING_TYPES:
        number = settings.get(name)
        settings[name] = _ROUTING_TYPE_NAMES.get(number)
    settings[_UNIT] = _UNIT_NAMES.get(settings.get(_UNIT))
    return _settings_text(settings)


def _settings_text(settings: Mapping[str, object]) -> str:
    pairs = (
        f"{_TEXT_NAMES.get(name, name)}={_value_text(name, settings.get(name))}" for name in _NAMES
    )
    return f"AddressSettings{{{', '.join(pairs)}}}"


def _value_text(name: str, value: object) -> str:
    if name in _DOUBLES and isinstance(value, int | float):
        return double_text(float(value))
    return text_of(value)
