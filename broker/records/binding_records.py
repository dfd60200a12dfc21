"""The records of the bindings journal: queues, addresses, their status, settings, users.

Layouts: docs/format/records.md. The id of the journal record is not repeated in most bodies; for a
queue or an address it is the id of the queue or address itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self, TypedDict

from broker.model.encoding import (
    BOOLEAN,
    BYTE,
    INT,
    LONG,
    NB,
    ND,
    NI,
    NL,
    NSS,
    NSTR,
    SHORT,
    SS,
    STR,
    BodyReader,
    BodyWriter,
    Codec,
    counted,
    enumerated,
)
from broker.model.routing_type import RoutingType
from broker.model.wire import RecordType, WireRecord, read_fields, wire


class QueueStatus(IntEnum):
    """Whether a queue or an address delivers."""

    PAUSED = 0
    RUNNING = 1


ROUTING_TYPE: Final = enumerated(RoutingType, BYTE)
_STATUS: Final = enumerated(QueueStatus, SHORT)


@dataclass(frozen=True, slots=True)
class Transformer:
    """The class that a divert or bridge passes messages through, with its settings."""

    class_name: str
    properties: tuple[tuple[str | None, str | None], ...] = ()


def _read_transformer(reader: BodyReader) -> Transformer | None:
    class_name = NSTR.read(reader)
    if class_name is None:
        return None
    # A null key and a null value take a byte each.
    count = reader.read_count(item_size_min=2)
    pairs = tuple((NSTR.read(reader), NSTR.read(reader)) for _ in range(count))
    return Transformer(class_name, pairs)


def _write_transformer(writer: BodyWriter, value: Transformer | None) -> None:
    if value is None:
        NSTR.write(writer, None)
        return
    NSTR.write(writer, value.class_name)
    writer.write_int(len(value.properties))
    for key, item in value.properties:
        NSTR.write(writer, key)
        NSTR.write(writer, item)


_TRANSFORMER: Final = Codec(_read_transformer, _write_transformer)


@dataclass(frozen=True, slots=True)
class GroupBinding(WireRecord):
    """A message group that belongs to a queue of the cluster."""

    record_type = RecordType.GROUP_RECORD

    group_id: str = wire(SS)
    cluster_name: str = wire(SS)


@dataclass(frozen=True, slots=True)
class QueueBinding(WireRecord):
    """A durable queue; the record id is the queue id. Delays in ms, -1 is none or unlimited."""

    record_type = RecordType.QUEUE_BINDING_RECORD

    name: str = wire(SS)
    address: str = wire(SS)
    filter: str | None = wire(NSS)
    metadata: str | None = wire(NSS)
    auto_created: bool = wire(BOOLEAN)
    max_consumers: int = wire(INT, default=-1)
    purge_on_no_consumers: bool = wire(BOOLEAN, default=False, joined=True)
    routing_type: RoutingType = wire(ROUTING_TYPE, default=RoutingType.MULTICAST, joined=True)
    exclusive: bool = wire(BOOLEAN, default=False)
    last_value: bool = wire(BOOLEAN, default=False)
    configuration_managed: bool = wire(BOOLEAN, default=False)
    consumers_before_dispatch: int = wire(INT, default=0)
    delay_before_dispatch: int = wire(LONG, default=-1)
    last_value_key: str | None = wire(NSS, default=None)
    non_destructive: bool = wire(BOOLEAN, default=False)
    group_rebalance: bool = wire(BOOLEAN, default=False)
    group_buckets: int = wire(INT, default=-1)
    auto_delete: bool = wire(BOOLEAN, default=False)
    auto_delete_delay: int = wire(LONG, default=0)
    auto_delete_message_count: int = wire(LONG, default=0)
    group_first_key: str | None = wire(NSS, default=None)
    ring_size: int = wire(LONG, default=-1)
    enabled: bool = wire(BOOLEAN, default=True)
    group_rebalance_pause_dispatch: bool = wire(BOOLEAN, default=False)
    internal: bool = wire(BOOLEAN, default=False)

    @classmethod
    def read(cls, reader: BodyReader) -> Self:
        """Read a binding; where `auto_delete` is missing it is what `auto_created` is."""
        values = read_fields(cls, reader)
        values.setdefault("auto_delete", values["auto_created"])
        return cls(**values)

    @property
    def routing_name(self) -> str:
        """All anycast queues of an address stand for one place, every multicast one for itself."""
        return self.address if self.routing_type == RoutingType.ANYCAST else self.name

    @property
    def user(self) -> str | None:
        """Who created the queue, from the metadata `user=<name>;`."""
        for item in (self.metadata or "").split(";"):
            key, _, value = item.partition("=")
            if key == "user":
                return value
        return None


class QueueBindingChanges(TypedDict, total=False):
    """Keyword arguments that change a QueueBinding, for type checkers."""

    filter: str | None
    metadata: str | None
    auto_created: bool
    max_consumers: int
    purge_on_no_consumers: bool
    routing_type: RoutingType
    exclusive: bool
    last_value: bool
    configuration_managed: bool
    consumers_before_dispatch: int
    delay_before_dispatch: int
    last_value_key: str | None
    non_destructive: bool
    group_rebalance: bool
    group_buckets: int
    auto_delete: bool
    auto_delete_delay: int
    auto_delete_message_count: int
    group_first_key: str | None
    ring_size: int
    enabled: bool
    group_rebalance_pause_dispatch: bool
    internal: bool


@dataclass(frozen=True, slots=True)
class QueueStatusRecord(WireRecord):
    """A queue was paused, or resumed, for good."""

    record_type = RecordType.QUEUE_STATUS_RECORD

    queue_id: int = wire(LONG)
    status: QueueStatus = wire(_STATUS)


@dataclass(frozen=True, slots=True)
class IdCounter(WireRecord):
    """No id up to this one is given out again."""

    record_type = RecordType.ID_COUNTER_RECORD

    value: int = wire(LONG)


@dataclass(frozen=True, slots=True)
class SecuritySetting(WireRecord):
    """The roles, comma joined, that may do each thing on matching addresses."""

    record_type = RecordType.SECURITY_SETTING_RECORD

    match: str = wire(SS)
    send: str | None = wire(NSS)
    consume: str | None = wire(NSS)
    create_durable_queue: str | None = wire(NSS)
    delete_durable_queue: str | None = wire(NSS)
    create_non_durable_queue: str | None = wire(NSS)
    delete_non_durable_queue: str | None = wire(NSS)
    manage: str | None = wire(NSS)
    browse: str | None = wire(NSS)
    create_address: str | None = wire(NSS)
    delete_address: str | None = wire(NSS)
    view: str | None = wire(NSS, default=None)
    edit: str | None = wire(NSS, default=None)


@dataclass(frozen=True, slots=True)
class Divert(WireRecord):
    """Messages to one address go, or go as well, to another."""

    record_type = RecordType.DIVERT_RECORD

    name: str | None = wire(NSTR)
    address: str | None = wire(NSTR)
    forwarding_address: str | None = wire(NSTR)
    routing_name: str | None = wire(NSTR)
    exclusive: bool = wire(BOOLEAN)
    filter: str | None = wire(NSTR)
    routing_type: RoutingType = wire(ROUTING_TYPE)
    transformer: Transformer | None = wire(_TRANSFORMER)


@dataclass(frozen=True, slots=True)
class Bridge(WireRecord):
    """A bridge to another broker; times in ms, window sizes in bytes."""

    record_type = RecordType.BRIDGE_RECORD

    name: str | None = wire(NSTR)
    parent_name: str | None = wire(NSTR)
    queue_name: str | None = wire(NSTR)
    forwarding_address: str | None = wire(NSTR)
    filter_string: str | None = wire(NSTR)
    discovery_group_name: str | None = wire(NSTR)
    ha: bool | None = wire(NB)
    retry_interval: int | None = wire(NL)
    retry_interval_multiplier: float | None = wire(ND)
    initial_connect_attempts: int | None = wire(NI)
    reconnect_attempts: int | None = wire(NI)
    reconnect_attempts_on_same_node: int | None = wire(NI)
    use_duplicate_detection: bool | None = wire(NB)
    confirmation_window_size: int | None = wire(NI)
    producer_window_size: int | None = wire(NI)
    client_failure_check_period: int | None = wire(NL)
    user: str | None = wire(NSTR)
    password: str | None = wire(NSTR)
    connection_ttl: int | None = wire(NL, label="connectionTTL")
    max_retry_interval: int | None = wire(NL)
    min_large_message_size: int | None = wire(NI)
    call_timeout: int | None = wire(NL)
    concurrency: int | None = wire(NI)
    configuration_managed: bool | None = wire(NB)
    routing_type: RoutingType = wire(ROUTING_TYPE)
    transformer: Transformer | None = wire(_TRANSFORMER)
    static_connectors: tuple[str | None, ...] = wire(counted(NSTR, item_size_min=1))
    pending_ack_timeout: int | None = wire(NL, default=None)
    client_id: str | None = wire(NSTR, default=None)


@dataclass(frozen=True, slots=True)
class AddressBinding(WireRecord):
    """An address; the record id is the address id."""

    record_type = RecordType.ADDRESS_BINDING_RECORD

    name: str = wire(SS)
    routing_types: tuple[RoutingType, ...] = wire(counted(ROUTING_TYPE, item_size_min=1))
    auto_created: bool = wire(BOOLEAN)
    internal: bool = wire(BOOLEAN, default=False)


@dataclass(frozen=True, slots=True)
class AddressStatusRecord(WireRecord):
    """An address was paused, or resumed, for good."""

    record_type = RecordType.ADDRESS_STATUS_RECORD

    address_id: int = wire(LONG)
    status: QueueStatus = wire(_STATUS)


@dataclass(frozen=True, slots=True)
class User(WireRecord):
    """A user of the broker's own user store; the password is stored as the broker was given it."""

    record_type = RecordType.USER_RECORD

    username: str = wire(STR)
    password: str = wire(STR)


@dataclass(frozen=True, slots=True)
class Role(WireRecord):
    """The roles of a user of the broker's own user store."""

    record_type = RecordType.ROLE_RECORD

    username: str = wire(STR)
    roles: tuple[str, ...] = wire(counted(STR, item_size_min=4))


@dataclass(frozen=True, slots=True)
class KeyValuePair(WireRecord):
    """One entry of a named map."""

    record_type = RecordType.KEY_VALUE_PAIR_RECORD

    map_id: str = wire(STR)
    key: str = wire(STR)
    value: str = wire(STR)


@dataclass(frozen=True, slots=True)
class Connector(WireRecord):
    """A connector that was added while the broker ran."""

    record_type = RecordType.CONNECTOR_RECORD

    name: str = wire(STR)
    url: str = wire(STR)
