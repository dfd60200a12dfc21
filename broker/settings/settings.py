"""Address settings: how the addresses that match behave.

Every element of `address-setting` is a field of `AddressSettings`, with Artemis's default,
its name in XML and its name in JSON (management, record 52). Several matches may fit an address:
what the closest one leaves out is taken from the next, defaults last.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Unpack

from broker.model.routing_type import RoutingType
from broker.settings.fields import Setting, optional, setting
from broker.settings.policies import (
    AddressFullPolicy,
    DeletionPolicy,
    DiskFullPolicy,
    PageFullPolicy,
    SlowConsumerPolicy,
    SlowConsumerUnit,
)
from broker.settings.value_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LONG,
    SIZE,
    SIZE_INT,
    TEXT,
    at_least,
    between,
    choice,
    minus_one_or_more_than,
    power_of_two,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.settings.settings_changes import AddressSettingsChanges

__all__ = ["SETTINGS", "AddressSettings"]

_GE_0: Final = at_least(LONG, 0)
_COUNT: Final = minus_one_or_more_than(INT, 0)
_LIMIT: Final = minus_one_or_more_than(LONG, 0)
_DELETION: Final = choice(DeletionPolicy)
_ROUTING: Final = choice(RoutingType, RoutingType.ANYCAST, RoutingType.MULTICAST)


@dataclasses.dataclass(frozen=True, slots=True, init=False, eq=False)
class AddressSettings:
    """The settings of an address or of a match; frozen.

    An attribute is always what holds, the default where nothing was given; `given` has what was.
    To give None is to give nothing.
    Names and defaults are Artemis's (AddressSettings), with the unit where there is one.
    -1 is "no limit" or "never" where a number may be -1.

    Raises:
        TypeError: a name that is not a setting.
        ValueError: a value out of range.

    >>> AddressSettings(max_delivery_attempts=3).max_delivery_attempts
    3
    >>> AddressSettings(redelivery_delay_ms=100).max_redelivery_delay_ms
    1000
    """

    # Memory and pages; page_max_cache_size is without effect in Artemis too.
    address_full_policy: AddressFullPolicy = setting(
        "address-full-policy",
        "addressFullMessagePolicy",
        choice(AddressFullPolicy),
        AddressFullPolicy.PAGE,
    )
    """What happens at an address that has reached its limit: PAGE writes messages to disk, BLOCK
    stops producers, FAIL refuses messages, DROP drops them."""
    max_size_bytes: int = setting("max-size-bytes", "maxSizeBytes", SIZE, -1)
    """Bytes of messages in memory from which the address is full; -1 without limit.
    """
    max_read_page_bytes: int = setting(
        "max-read-page-bytes",
        "maxReadPageBytes",
        minus_one_or_more_than(SIZE, 0, most=INT_MAX),
        2 * 10 * 1024 * 1024,  # 2 × page_size_bytes
    )
    """Bytes of messages read from pages and not acknowledged, per queue. Twice `page-size-bytes`
    where not given."""
    max_read_page_messages: int = setting(
        "max-read-page-messages", "maxReadPageMessages", _COUNT, -1
    )
    """Likewise messages; -1 without limit."""
    prefetch_page_bytes: int = setting(
        "prefetch-page-bytes",
        "prefetchPageBytes",
        minus_one_or_more_than(SIZE, 0, most=INT_MAX),
        2 * 10 * 1024 * 1024,  # max_read_page_bytes
    )
    """Bytes read from pages ahead of consumers. `max-read-page-bytes` where not given."""
    prefetch_page_messages: int = setting(
        "prefetch-page-messages",
        "prefetchPageMessages",
        _COUNT,
        -1,  # max_read_page_messages
    )
    """Likewise messages. `max-read-page-messages` where not given."""
    page_limit_bytes: int | None = optional(
        "page-limit-bytes", "pageLimitBytes", minus_one_or_more_than(SIZE, 0)
    )
    """Bytes in pages from which `page-full-policy` holds."""
    page_limit_messages: int | None = optional("page-limit-messages", "pageLimitMessages", _LIMIT)
    """Messages in pages from which `page-full-policy` holds."""
    page_full_policy: PageFullPolicy | None = optional(
        "page-full-policy", "pageFullMessagePolicy", choice(PageFullPolicy)
    )
    """What happens at the page limit: FAIL refuses messages, DROP drops them."""
    disk_full_policy: DiskFullPolicy | None = optional(
        "disk-full-policy", "diskFullMessagePolicy", choice(DiskFullPolicy)
    )
    """What happens when the disk is full: BLOCK stops producers, FAIL refuses messages, DROP drops
    them."""
    max_size_messages: int = setting("max-size-messages", "maxSizeMessages", LONG, -1)
    """Messages in memory from which the address is full; -1 without limit."""
    page_size_bytes: int = setting(
        "page-size-bytes", "pageSizeBytes", between(SIZE, 1, INT_MAX), 10 * 1024 * 1024
    )
    """Size of a page's file; a page is read as a whole."""
    page_max_cache_size: int = setting("page-max-cache-size", "pageCacheMaxSize", INT, 5)
    """Older form; Artemis does not use it either."""
    # Redelivery, dead letters, expiry.
    max_delivery_attempts: int = setting("max-delivery-attempts", "maxDeliveryAttempts", INT, 10)
    """Deliveries after which a message goes to the dead letter address; 0 or less: unlimited."""
    message_counter_history_day_limit: int = setting(
        "message-counter-history-day-limit", "messageCounterHistoryDayLimit", INT, 0
    )
    """Days that message counters remember; Artemis reads it and does not use it."""
    redelivery_delay_ms: int = setting("redelivery-delay", "redeliveryDelay", LONG, 0)
    """Wait before a message that was rolled back is delivered again."""
    redelivery_delay_multiplier: float = setting(
        "redelivery-delay-multiplier", "redeliveryMultiplier", DOUBLE, 1.0
    )
    """How much longer each further redelivery waits."""
    redelivery_collision_avoidance_factor: float = setting(
        "redelivery-collision-avoidance-factor",
        "redeliveryCollisionAvoidanceFactor",
        between(DOUBLE, 0, 1),
        0.0,
    )
    """Share of the delay by which it is varied at random."""
    max_redelivery_delay_ms: int = setting(
        "max-redelivery-delay",
        "maxRedeliveryDelay",
        LONG,
        0,  # 10 × redelivery_delay_ms
    )
    """Longest wait. Ten times `redelivery-delay` where not given."""
    dead_letter_address: str | None = optional("dead-letter-address", "deadLetterAddress", TEXT)
    """Address that messages go to which were delivered too often. Without, they are dropped."""
    expiry_address: str | None = optional("expiry-address", "expiryAddress", TEXT)
    """Address that expired messages go to. Without, they are dropped."""
    expiry_delay_ms: int = setting("expiry-delay", "expiryDelay", LONG, -1)
    """Time to live of messages that have none; -1 leaves them."""
    min_expiry_delay_ms: int = setting("min-expiry-delay", "minExpiryDelay", LONG, -1)
    """Shortest time to live; messages with less get this. -1 off."""
    max_expiry_delay_ms: int = setting("max-expiry-delay", "maxExpiryDelay", LONG, -1)
    """Longest time to live; messages with more, or with none, get this. -1 off."""
    no_expiry: bool = setting("no-expiry", "noExpiry", BOOLEAN, False)
    """Whether messages lose their time to live. Then the three before it do not count."""
    # What a queue of the address gets when it is created without saying.
    default_last_value_queue: bool = setting(
        "default-last-value-queue", "defaultLastValueQueue", BOOLEAN, False, "last-value-queue"
    )
    """Whether queues keep only the newest message of each `last-value-key`."""
    default_last_value_key: str | None = optional(
        "default-last-value-key", "defaultLastValueKey", TEXT
    )
    """Property of messages that is such a key; `_AMQ_LVQ_NAME` without."""
    default_non_destructive: bool = setting(
        "default-non-destructive", "defaultNonDestructive", BOOLEAN, False
    )
    """Whether consuming leaves messages in the queue."""
    default_exclusive_queue: bool = setting(
        "default-exclusive-queue", "defaultExclusiveQueue", BOOLEAN, False
    )
    """Whether one consumer at a time gets all messages."""
    default_group_rebalance: bool = setting(
        "default-group-rebalance", "defaultGroupRebalance", BOOLEAN, False
    )
    """Whether groups are assigned anew when a consumer is added."""
    default_group_rebalance_pause_dispatch: bool = setting(
        "default-group-rebalance-pause-dispatch",
        "defaultGroupRebalancePauseDispatch",
        BOOLEAN,
        False,
    )
    """Whether delivery pauses until the old consumers have acknowledged."""
    default_group_buckets: int = setting("default-group-buckets", "defaultGroupBuckets", INT, -1)
    """Buckets that groups are hashed into; -1 remembers each group, 0 has no groups."""
    default_group_first_key: str | None = optional(
        "default-group-first-key", "defaultGroupFirstKey", TEXT
    )
    """Property that is set in the first message of a group for its consumer."""
    redistribution_delay_ms: int = setting("redistribution-delay", "redistributionDelay", LONG, -1)
    """How long a queue without consumers waits before its messages go to another node; -1 never."""
    send_to_dla_on_no_route: bool = setting(
        "send-to-dla-on-no-route", "sendToDLAOnNoRoute", BOOLEAN, False
    )
    """Whether messages that no queue takes go to the dead letter address."""
    slow_consumer_threshold: int = setting(
        "slow-consumer-threshold", "slowConsumerThreshold", _LIMIT, -1
    )
    """Rate below which a consumer is slow; -1 never."""
    slow_consumer_threshold_measurement_unit: SlowConsumerUnit = setting(
        "slow-consumer-threshold-measurement-unit",
        "slowConsumerThresholdMeasurementUnit",
        choice(SlowConsumerUnit),
        SlowConsumerUnit.MESSAGES_PER_SECOND,
    )
    """Unit of that rate."""
    slow_consumer_check_period_s: int = setting(
        "slow-consumer-check-period", "slowConsumerCheckPeriod", at_least(LONG, 1), 5
    )
    """How often consumers are measured."""
    slow_consumer_policy: SlowConsumerPolicy = setting(
        "slow-consumer-policy",
        "slowConsumerPolicy",
        choice(SlowConsumerPolicy),
        SlowConsumerPolicy.NOTIFY,
    )
    """What happens to a slow one: KILL closes its connection, NOTIFY sends a notification."""
    # Creating and deleting. The first four are older names that Artemis still reads.
    auto_create_jms_queues: bool = setting(
        "auto-create-jms-queues", "autoCreateJmsQueues", BOOLEAN, True
    )
    """Older form of `auto-create-queues`."""
    auto_delete_jms_queues: bool = setting(
        "auto-delete-jms-queues", "autoDeleteJmsQueues", BOOLEAN, True
    )
    """Older form of `auto-delete-queues`."""
    auto_create_jms_topics: bool = setting(
        "auto-create-jms-topics", "autoCreateJmsTopics", BOOLEAN, True
    )
    """Older form of `auto-create-addresses`."""
    auto_delete_jms_topics: bool = setting(
        "auto-delete-jms-topics", "autoDeleteJmsTopics", BOOLEAN, True
    )
    """Older form of `auto-delete-addresses`."""
    auto_create_queues: bool = setting("auto-create-queues", "autoCreateQueues", BOOLEAN, True)
    """Whether queues are created when clients use them."""
    auto_delete_queues: bool = setting("auto-delete-queues", "autoDeleteQueues", BOOLEAN, True)
    """Whether queues that were created so are deleted when they are unused."""
    auto_delete_created_queues: bool = setting(
        "auto-delete-created-queues", "autoDeleteCreatedQueues", BOOLEAN, False
    )
    """Whether queues that were created otherwise are deleted likewise."""
    auto_delete_queues_delay_ms: int = setting(
        "auto-delete-queues-delay", "autoDeleteQueuesDelay", _GE_0, 0
    )
    """How long a queue has to be unused."""
    auto_delete_queues_skip_usage_check: bool = setting(
        "auto-delete-queues-skip-usage-check", "autoDeleteQueuesSkipUsageCheck", BOOLEAN, False
    )
    """Whether queues that were never used are deleted, too."""
    auto_delete_queues_message_count: int = setting(
        "auto-delete-queues-message-count",
        "autoDeleteQueuesMessageCount",
        minus_one_or_more_than(LONG, -1),
        0,
    )
    """Most messages that a queue may have to be deleted; -1 any number."""
    default_ring_size: int = setting("default-ring-size", "defaultRingSize", LONG, -1)
    """Most messages of a queue: a new one drops the oldest. -1 without limit."""
    retroactive_message_count: int = setting(
        "retroactive-message-count", "retroactiveMessageCount", _GE_0, 0
    )
    """Latest messages that the address keeps for queues that are made later."""
    config_delete_queues: DeletionPolicy = setting(
        "config-delete-queues", "configDeleteQueues", _DELETION, DeletionPolicy.OFF
    )
    """What happens to queues that are gone from this file: FORCE deletes them, OFF keeps them."""
    auto_create_addresses: bool = setting(
        "auto-create-addresses", "autoCreateAddresses", BOOLEAN, True
    )
    """Whether addresses are created when clients use them."""
    auto_delete_addresses: bool = setting(
        "auto-delete-addresses", "autoDeleteAddresses", BOOLEAN, True
    )
    """Whether addresses that were created so are deleted when they have no queue."""
    auto_delete_addresses_delay_ms: int = setting(
        "auto-delete-addresses-delay", "autoDeleteAddressesDelay", _GE_0, 0
    )
    """How long an address has to be without queues."""
    auto_delete_addresses_skip_usage_check: bool = setting(
        "auto-delete-addresses-skip-usage-check",
        "autoDeleteAddressesSkipUsageCheck",
        BOOLEAN,
        False,
    )
    """Whether addresses that were never used are deleted, too."""
    config_delete_addresses: DeletionPolicy = setting(
        "config-delete-addresses", "configDeleteAddresses", _DELETION, DeletionPolicy.OFF
    )
    """What happens to addresses that are gone from this file: FORCE or OFF."""
    config_delete_diverts: DeletionPolicy = setting(
        "config-delete-diverts", "configDeleteDiverts", _DELETION, DeletionPolicy.OFF
    )
    """What happens to diverts that are gone from this file: FORCE or OFF."""
    management_browse_page_size: int = setting(
        "management-browse-page-size", "managementBrowsePageSize", INT, 200
    )
    """Messages that management browses at most."""
    max_size_bytes_reject_threshold: int = setting(
        "max-size-bytes-reject-threshold", "maxSizeBytesRejectThreshold", SIZE, -1
    )
    """Bytes from which AMQP messages to an address with BLOCK are refused; -1 never."""
    default_max_consumers: int = setting("default-max-consumers", "defaultMaxConsumers", INT, -1)
    """Most consumers of a queue; -1 without limit."""
    default_purge_on_no_consumers: bool = setting(
        "default-purge-on-no-consumers", "defaultPurgeOnNoConsumers", BOOLEAN, False
    )
    """Whether a queue drops its messages when its last consumer leaves."""
    default_consumers_before_dispatch: int = setting(
        "default-consumers-before-dispatch", "defaultConsumersBeforeDispatch", INT, 0
    )
    """Consumers that a queue waits for before it delivers."""
    default_delay_before_dispatch_ms: int = setting(
        "default-delay-before-dispatch", "defaultDelayBeforeDispatch", LONG, -1
    )
    """How long it waits for them at most; -1 without limit."""
    default_queue_routing_type: RoutingType = setting(
        "default-queue-routing-type", "defaultQueueRoutingType", _ROUTING, RoutingType.MULTICAST
    )
    """Routing type of queues that are created without one."""
    default_address_routing_type: RoutingType = setting(
        "default-address-routing-type", "defaultAddressRoutingType", _ROUTING, RoutingType.MULTICAST
    )
    """Routing type of addresses that are created without one."""
    default_consumer_window_size: int = setting(
        "default-consumer-window-size", "defaultConsumerWindowSize", SIZE_INT, 1024 * 1024
    )
    """Bytes sent ahead to a Core consumer whose client does not say."""
    auto_create_dead_letter_resources: bool = setting(
        "auto-create-dead-letter-resources", "autoCreateDeadLetterResources", BOOLEAN, False
    )
    """Whether the dead letter address gets a queue for each address that messages came from."""
    dead_letter_queue_prefix: str = setting(
        "dead-letter-queue-prefix", "deadLetterQueuePrefix", TEXT, "DLQ."
    )
    """Prefix of these queues' names."""
    dead_letter_queue_suffix: str = setting(
        "dead-letter-queue-suffix", "deadLetterQueueSuffix", TEXT, ""
    )
    """Suffix of these queues' names."""
    auto_create_expiry_resources: bool = setting(
        "auto-create-expiry-resources", "autoCreateExpiryResources", BOOLEAN, False
    )
    """Whether the expiry address gets a queue for each address that messages came from."""
    expiry_queue_prefix: str = setting("expiry-queue-prefix", "expiryQueuePrefix", TEXT, "EXP.")
    """Prefix of these queues' names."""
    expiry_queue_suffix: str = setting("expiry-queue-suffix", "expiryQueueSuffix", TEXT, "")
    """Suffix of these queues' names."""
    enable_metrics: bool = setting("enable-metrics", "enableMetrics", BOOLEAN, True)
    """Whether the address and its queues have metrics of their own."""
    management_message_attribute_size_limit: int = setting(
        "management-message-attribute-size-limit", "managementMessageAttributeSizeLimit", INT, 256
    )
    """Characters of a property that management shows; -1 all."""
    enable_ingress_timestamp: bool = setting(
        "enable-ingress-timestamp", "enableIngressTimestamp", BOOLEAN, False
    )
    """Whether messages get the time of their arrival, as `_AMQ_INGRESS_TIMESTAMP`."""
    # None: the broker's own id-cache-size.
    id_cache_size: int | None = optional("id-cache-size", "idCacheSize", at_least(INT, 0))
    """Duplicate ids that the address remembers. The broker's `id-cache-size` where not given.

    An address that remembers ids already keeps its number until the next start.
    """
    initial_queue_buffer_size: int = setting(
        "initial-queue-buffer-size", "initialQueueBufferSize", power_of_two(INT), 8192
    )
    """Size of a buffer of Artemis's queues, a power of two."""
    given: Mapping[str, object] = dataclasses.field(default_factory=dict, repr=False)

    def __init__(self, **values: Unpack[AddressSettingsChanges]) -> None:
        if unknown := values.keys() - _BY_ATTRIBUTE.keys():
            raise TypeError(f"no setting is called {min(unknown)!r}")
        put = object.__setattr__
        given = {name: value for name, value in values.items() if value is not None}
        put(self, "given", given)
        for name, item in _BY_ATTRIBUTE.items():
            put(self, name, item.kind.check(given[name]) if name in given else _DEFAULTS[name])
        for name, of_others in _DERIVED.items():
            if name not in given:
                put(self, name, of_others(self))

    def __eq__(self, other: object) -> bool:
        """Whether the same was given."""
        return isinstance(other, AddressSettings) and self.given == other.given

    def __hash__(self) -> int:
        return hash(frozenset(self.given.items()))

    def merged(self, *others: AddressSettings) -> AddressSettings:
        """These settings, with what was not given taken from the others, the first before the next.

        >>> close = AddressSettings(max_delivery_attempts=3)
        >>> far = AddressSettings(max_delivery_attempts=9, no_expiry=True)
        >>> close.merged(far).max_delivery_attempts, close.merged(far).no_expiry
        (3, True)
        """
        given: Mapping[str, Any] = ChainMap(*(dict(one.given) for one in (self, *others)))
        return AddressSettings(**given)

    def to_json(self) -> dict[str, object]:
        """What was given, as management and record 52 have it, in Artemis's order."""
        return {
            item.json_name: value.name if isinstance(value, Enum) else value
            for item in SETTINGS
            if (value := self.given.get(item.attribute)) is not None
        }

    def all_to_json(self) -> dict[str, object]:
        """What holds, defaults too, by the names of `to_json`."""
        values = ((item.json_name, getattr(self, item.attribute)) for item in SETTINGS)
        return {name: one.name if isinstance(one, Enum) else one for name, one in values}

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> AddressSettings:
        """Settings from JSON of management or of a record; null is the same as missing.

        Names that are not settings are skipped: a newer broker may have written the record.

        Raises:
            ValueError: a value of another type, or out of range; the text names it.

        >>> AddressSettings.from_json({"slowConsumerPolicy": "KILL"}).slow_consumer_policy
        <SlowConsumerPolicy.KILL: 'KILL'>
        """
        given: dict[str, Any] = {}
        for item in SETTINGS:
            value = found.get(item.json_name)
            if value is None:
                continue
            text = str(value).lower() if isinstance(value, bool) else str(value)
            try:
                given[item.attribute] = item.kind.parse(text) if item.kind is not TEXT else text
            except ValueError as error:
                raise ValueError(f"{item.json_name}: {error}") from None
        return cls(**given)


SETTINGS: Final = tuple(
    Setting(field.name, *field.metadata["setting"])
    for field in dataclasses.fields(AddressSettings)
    if "setting" in field.metadata
)
_BY_ATTRIBUTE: Final = {item.attribute: item for item in SETTINGS}
_DEFAULTS: Final = {field.name: field.default for field in dataclasses.fields(AddressSettings)}
# Defaults that depend on others; in this order, since one depends on another.
_DERIVED: Final[Mapping[str, Callable[[AddressSettings], int]]] = {
    "max_read_page_bytes": lambda of: 2 * of.page_size_bytes,
    "prefetch_page_bytes": lambda of: of.max_read_page_bytes,
    "prefetch_page_messages": lambda of: of.max_read_page_messages,
    "max_redelivery_delay_ms": lambda of: 10 * of.redelivery_delay_ms,
}
