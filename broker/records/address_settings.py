"""Address settings as records: the JSON of type 52, and the binary form of type 25.

The binary form is only read: new writers always use JSON. Its layout is a table, oldest field
first; a version of the broker that added fields added them at the end, so the later ones may be
missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from broker.model.encoding import (
    BYTE,
    NB,
    ND,
    NI,
    NL,
    NSS,
    SS,
    BodyReader,
    BodyWriter,
    Codec,
    RecordFormatError,
)
from broker.model.wire import RecordType, WireRecord, wire

SettingValue: TypeAlias = bool | int | float | str | None

# What no setting is called: the place of a field that old versions wrote.
_IGNORED: Final = "dropMessagesWhenFull"
_NOT_LATER: Final = ("configDeleteQueues", "configDeleteAddresses", "configDeleteDiverts")


class _Setting(NamedTuple):
    name: str
    codec: Codec[Any]


def _settings(codec: Codec[Any], *names: str) -> tuple[_Setting, ...]:
    return tuple(_Setting(name, codec) for name in names)


_REQUIRED: Final = (
    *_settings(NSS, "addressFullMessagePolicy"),
    *_settings(NL, "maxSizeBytes", "pageSizeBytes"),
    *_settings(NI, "pageCacheMaxSize"),
    *_settings(NB, _IGNORED),
    *_settings(NI, "maxDeliveryAttempts", "messageCounterHistoryDayLimit"),
    *_settings(NL, "redeliveryDelay"),
    *_settings(ND, "redeliveryMultiplier"),
    *_settings(NL, "maxRedeliveryDelay"),
    *_settings(NSS, "deadLetterAddress", "expiryAddress"),
    *_settings(NL, "expiryDelay"),
    *_settings(NB, "defaultLastValueQueue"),
    *_settings(NL, "redistributionDelay"),
    *_settings(NB, "sendToDLAOnNoRoute"),
    *_settings(NL, "slowConsumerThreshold", "slowConsumerCheckPeriod"),
    *_settings(NSS, "slowConsumerPolicy"),
    *_settings(NB, "autoCreateJmsQueues", "autoDeleteJmsQueues"),
    *_settings(NB, "autoCreateJmsTopics", "autoDeleteJmsTopics"),
    *_settings(NB, "autoCreateQueues", "autoDeleteQueues"),
    *_settings(NSS, "configDeleteQueues"),
    *_settings(NB, "autoCreateAddresses", "autoDeleteAddresses"),
    *_settings(NSS, "configDeleteAddresses"),
    *_settings(NI, "managementBrowsePageSize"),
    *_settings(NL, "maxSizeBytesRejectThreshold"),
    *_settings(NI, "defaultMaxConsumers"),
    *_settings(NB, "defaultPurgeOnNoConsumers"),
    *_settings(BYTE, "defaultQueueRoutingType", "defaultAddressRoutingType"),
)
_OPTIONAL: Final = (
    *_settings(NB, "defaultExclusiveQueue"),
    *_settings(NI, "defaultConsumersBeforeDispatch"),
    *_settings(NL, "defaultDelayBeforeDispatch"),
    *_settings(NI, "defaultConsumerWindowSize"),
    *_settings(NSS, "defaultLastValueKey"),
    *_settings(NB, "defaultNonDestructive"),
    *_settings(NL, "autoDeleteQueuesDelay", "autoDeleteAddressesDelay"),
    *_settings(NB, "defaultGroupRebalance"),
    *_settings(NI, "defaultGroupBuckets"),
    *_settings(NL, "autoDeleteQueuesMessageCount"),
    *_settings(NB, "autoDeleteCreatedQueues"),
    *_settings(NL, "defaultRingSize"),
    *_settings(ND, "redeliveryCollisionAvoidanceFactor"),
    *_settings(NSS, "defaultGroupFirstKey"),
    *_settings(NL, "retroactiveMessageCount"),
    *_settings(NB, "autoCreateDeadLetterResources"),
    *_settings(NSS, "deadLetterQueuePrefix", "deadLetterQueueSuffix"),
    *_settings(NB, "autoCreateExpiryResources"),
    *_settings(NSS, "expiryQueuePrefix", "expiryQueueSuffix"),
    *_settings(NL, "minExpiryDelay", "maxExpiryDelay"),
    *_settings(NB, "enableMetrics", "defaultGroupRebalancePauseDispatch"),
    *_settings(NI, "managementMessageAttributeSizeLimit"),
    # In seconds: 1, 60, 3600 or 86400.
    *_settings(NI, "slowConsumerThresholdMeasurementUnit"),
    *_settings(NB, "enableIngressTimestamp"),
    *_settings(NSS, "configDeleteDiverts"),
    *_settings(NL, "maxSizeMessages"),
    *_settings(NI, "maxReadPageBytes", "maxReadPageMessages"),
    *_settings(NL, "pageLimitBytes", "pageLimitMessages"),
    *_settings(NSS, "pageFullMessagePolicy"),
    *_settings(NB, "autoDeleteQueuesSkipUsageCheck", "autoDeleteAddressesSkipUsageCheck"),
    *_settings(NI, "idCacheSize", "prefetchPageBytes", "prefetchPageMessages"),
)


@dataclass(frozen=True, slots=True)
class AddressSetting(WireRecord):
    """The settings of matching addresses in the old binary form.

    Attributes:
        match: the addresses they hold for, wildcards allowed.
        settings: pairs of name and value in the order of the bytes, as far as they go.
    """

    record_type = RecordType.ADDRESS_SETTING_RECORD

    match: str
    settings: tuple[tuple[str, SettingValue], ...]

    @classmethod
    def read(cls, reader: BodyReader) -> AddressSetting:
        """Read the record; a version that did not know the `configDelete…` fields left them out."""
        match = SS.read(reader)
        start = reader.offset
        try:
            return cls(match, _read_settings(reader, left_out=()))
        except RecordFormatError:
            reader.rewind(start)
            return cls(match, _read_settings(reader, left_out=_NOT_LATER))

    def write(self, writer: BodyWriter) -> None:
        """Append the record as it was read; for tests and copies, new records are JSON."""
        SS.write(writer, self.match)
        codecs = {item.name: item.codec for item in (*_REQUIRED, *_OPTIONAL)}
        for name, value in self.settings:
            codecs[name].write(writer, value)


def _read_settings(
    reader: BodyReader, *, left_out: tuple[str, ...]
) -> tuple[tuple[str, SettingValue], ...]:
    values = [
        (item.name, item.codec.read(reader)) for item in _REQUIRED if item.name not in left_out
    ]
    for item in _OPTIONAL:
        if not reader.remaining:
            break
        if item.name not in left_out:
            values.append((item.name, item.codec.read(reader)))
    return tuple(values)


@dataclass(frozen=True, slots=True)
class AddressSettingJson(WireRecord):
    """The settings of matching addresses; `json` is an object with the ones that are set."""

    record_type = RecordType.ADDRESS_SETTING_RECORD_JSON

    match: str = wire(SS)
    json: str = wire(SS)

    def settings(self) -> dict[str, object]:
        """Give the settings by name, as JSON has them.

        Raises:
            RecordFormatError: `json` is not a JSON object.
        """
        try:
            found = json.loads(self.json)
        except (ValueError, RecursionError) as error:
            raise RecordFormatError(f"address setting {self.match!r} is not JSON") from error
        if not isinstance(found, dict):
            raise RecordFormatError(f"address setting {self.match!r} is not a JSON object")
        return found
