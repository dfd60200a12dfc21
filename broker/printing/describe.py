"""A record in the wording of Artemis's `data print`, so that both outputs can be compared.

The wording, down to its missing parentheses, is Artemis's. Where it prints an identity hash,
`java_text.IDENTITY` (0) stands: behind `@` at the end of a message or a bridge, and first inside
`XidImpl (`. Dates are UTC.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from broker.model.java_text import (
    IDENTITY,
    hash_order,
    hex_groups,
    java_string_hash,
    signed_byte,
    text_of,
    uuid_text,
    whole_pairs,
)
from broker.printing.describe_messages import message_text
from broker.printing.describe_settings import binary_settings_text, json_settings_text
from broker.records import binding_records as bindings
from broker.records import message_records as messages
from broker.records import stored_messages as stored
from broker.records.address_settings import AddressSetting, AddressSettingJson

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.wire import WireRecord
    from broker.model.xid import Xid

# What stands for a record that Artemis does not look into.
NULL_TEXT: Final = "** null **"

_BRIDGE_PREFIX: Final = "BRIDGE"
_BRIDGE_ID_SIZE: Final = 24


def describe(record: WireRecord, record_id: int, *, safe: bool = False) -> str:
    """Give the text of a decoded record.

    Args:
        record: what `records.decode_record` gave.
        record_id: id of the journal record, which many texts repeat.
        safe: leave out users' data: only the class and size of messages, of queue and address
            bindings only the class.

    Raises:
        RecordFormatError: a part that is only read for this text is damaged.
    """
    if safe and type(record) in _SAFE_TEXTS:
        return whole_pairs(_SAFE_TEXTS[type(record)](record), "?")
    text = _TEXTS.get(type(record))
    return NULL_TEXT if text is None else whole_pairs(text(record, record_id), "?")


def xid_text(xid: Xid) -> str:
    """Give the text of a transaction's Xid."""
    return (
        f"XidImpl ({IDENTITY} bq:{_signed_bytes(xid.bq)} formatID:{xid.format_id} "
        f"gtxid:{_signed_bytes(xid.gtx)} base64:{xid_base64(xid)}"
    )


def xid_base64(xid: Xid) -> str:
    """Give the name by which operators decide about a prepared transaction."""
    return base64.urlsafe_b64encode(xid.bq + xid.gtx + _format_id_bytes(xid.format_id)).decode(
        "ascii"
    )


def _format_id_bytes(format_id: int) -> bytes:
    """Give four bytes, lowest first, each the number shifted and its remainder by 255 (sic)."""
    shifted = (format_id >> shift for shift in (0, 8, 16, 24))
    return bytes((abs(value) % 255 * (-1 if value < 0 else 1)) & 0xFF for value in shifted)


def _signed_bytes(data: bytes) -> str:
    return ".".join(str(signed_byte(value)) for value in data)


def _fields(*pairs: tuple[str, object]) -> str:
    return ", ".join(f"{name}={text_of(value)}" for name, value in pairs)


# Message journal


def _duplicate_id_text(record: messages.DuplicateId, record_id: int) -> str:
    text = hex_groups(record.duplicate_id)
    if record.address.startswith(_BRIDGE_PREFIX) and len(record.duplicate_id) == _BRIDGE_ID_SIZE:
        # The ids that a bridge makes: its node and the message id there.
        message_id = int.from_bytes(record.duplicate_id[16:], "big", signed=True)
        text += f" / nodeUUID={uuid_text(record.duplicate_id[:16])} messageID={message_id}"
    return f"DuplicateIDEncoding [address={record.address}, duplID={text}]"


def _position_text(record: messages.AcknowledgeCursor | messages.PageComplete) -> str:
    return (
        f"queueID={record.queue_id}, position=PagePositionImpl [pageNr={record.page_nr}, "
        f"messageNr={record.message_nr}, recordID=-1]"
    )


def _heuristic_text(record: messages.HeuristicCompletion, record_id: int) -> str:
    commit = text_of(record.is_commit)
    return f"HeuristicCompletionEncoding [xid={xid_text(record.xid)}, isCommit={commit}]"


def _ack_retry_text(record: messages.AckRetry, record_id: int) -> str:
    key = (
        f"AckRetry{{nodeID='{text_of(record.node_id)}', messageID={record.message_id}, "
        f"reason={record.reason.name}, pageAttempts=0, queueAttempts=0, viewCount=0}}"
    )
    return (
        f"MapRecord{{collectionID={record.collection_id}, id={record.record_id}, "
        f"key={key}, value={key}}}"
    )


# Bindings journal


def _queue_binding_text(record: bindings.QueueBinding, record_id: int) -> str:
    # What is null here is a setting that is not stored.
    described = _fields(
        ("id", record_id),
        ("name", record.name),
        ("address", record.address),
        ("routingType", record.routing_type.name),
        ("filterString", record.filter),
        ("durable", None),
        ("user", record.user),
        ("maxConsumers", record.max_consumers),
        ("exclusive", record.exclusive),
        ("groupRebalance", record.group_rebalance),
        ("groupRebalancePauseDispatch", record.group_rebalance_pause_dispatch),
        ("groupBuckets", record.group_buckets),
        ("groupFirstKey", record.group_first_key),
        ("lastValue", record.last_value),
        ("lastValueKey", record.last_value_key),
        ("nonDestructive", record.non_destructive),
        ("purgeOnNoConsumers", record.purge_on_no_consumers),
        ("enabled", record.enabled),
        ("consumersBeforeDispatch", record.consumers_before_dispatch),
        ("delayBeforeDispatch", record.delay_before_dispatch),
        ("consumerPriority", None),
        ("autoDelete", record.auto_delete),
        ("autoDeleteDelay", record.auto_delete_delay),
        ("autoDeleteMessageCount", record.auto_delete_message_count),
        ("ringSize", record.ring_size),
        ("configurationManaged", record.configuration_managed),
        ("temporary", None),
        ("autoCreateAddress", None),
        ("internal", record.internal),
        ("transient", None),
        ("autoCreated", record.auto_created),
        ("fqqn", None),
    )
    return f"PersistentQueueBindingEncoding [queueConfiguration=QueueConfiguration [{described}]]"


def _address_binding_text(record: bindings.AddressBinding, record_id: int) -> str:
    # The types are a set in the order of their numbers.
    types = ",".join(kind.name for kind in sorted(set(record.routing_types)))
    described = _fields(
        ("id", record_id),
        ("name", record.name),
        ("routingTypes", f"{{{types}}}"),
        ("autoCreated", record.auto_created),
        ("internal", record.internal),
    )
    return f"PersistentAddressBindingEncoding [{described}]"


def _transformer_text(transformer: bindings.Transformer | None) -> str | None:
    if transformer is None:
        return None
    values = dict(transformer.properties)
    hashes = {key: 0 if key is None else java_string_hash(key) for key in values}
    properties = ", ".join(f"{text_of(key)}={text_of(values[key])}" for key in hash_order(hashes))
    return (
        f"TransformerConfiguration [className={transformer.class_name}, "
        f"properties={{{properties}}}]"
    )


def _divert_text(record: bindings.Divert, record_id: int) -> str:
    described = _fields(
        ("name", record.name),
        ("routingName", record.routing_name),
        ("address", record.address),
        ("forwardingAddress", record.forwarding_address),
        ("exclusive", record.exclusive),
        ("filterString", record.filter),
        ("routing-type", record.routing_type.name),
        ("transformerConfiguration", _transformer_text(record.transformer)),
    )
    # The store id is not set by the one who prints; neither is that of a bridge.
    return (
        f"PersistedDivertConfiguration{{storeId=0, divertConfiguration="
        f"DivertConfiguration [{described}]}}"
    )


def _bridge_text(record: bindings.Bridge, record_id: int) -> str:
    return (
        "PersistedBridgeConfiguration{storeId=0, bridgeConfiguration="
        f"org.apache.activemq.artemis.core.config.BridgeConfiguration@{IDENTITY:x}}}"
    )


def _security_text(record: bindings.SecuritySetting, record_id: int) -> str:
    described = _fields(
        ("storeId", record_id),
        ("addressMatch", record.match),
        ("sendRoles", record.send),
        ("consumeRoles", record.consume),
        ("createDurableQueueRoles", record.create_durable_queue),
        ("deleteDurableQueueRoles", record.delete_durable_queue),
        ("createNonDurableQueueRoles", record.create_non_durable_queue),
        ("deleteNonDurableQueueRoles", record.delete_non_durable_queue),
        ("manageRoles", record.manage),
        ("browseRoles", record.browse),
        ("createAddressRoles", record.create_address),
        ("deleteAddressRoles", record.delete_address),
        ("viewRoles", record.view),
        ("editRoles", record.edit),
    )
    return f"PersistedSecuritySetting [{described}]"


def _address_setting_text(record: AddressSetting, record_id: int) -> str:
    return (
        f"PersistedAddressSetting [storeId={record_id}, addressMatch={record.match}, "
        f"setting={binary_settings_text(record)}]"
    )


def _address_setting_json_text(record: AddressSettingJson, record_id: int) -> str:
    return (
        f"PersistedAddressSettingJSON{{jsonSetting={record.json}, storeId={record_id}, "
        f"addressMatch={record.match}, setting={json_settings_text(record)}}}"
    )


def _role_text(record: bindings.Role, record_id: int) -> str:
    roles = ", ".join(record.roles)
    return f"PersistedRole [storeId={record_id}, username={record.username}, roles [{roles}]]"


def _table() -> dict[type[WireRecord], Callable[..., str]]:
    m, b = messages, bindings
    return {
        stored.CoreMessage: message_text,
        stored.LargeCoreMessage: message_text,
        stored.AmqpMessageV1: message_text,
        stored.AmqpMessageV2: message_text,
        stored.AmqpMessageV3: message_text,
        stored.AmqpLargeMessage: message_text,
        m.OldMessage: lambda r, i: "ADD-MESSAGE is not supported any longer, use export/import",
        m.LargeMessagePending: lambda r, i: (
            f"PendingLargeMessageEncoding::MessageID={r.message_id}"
        ),
        m.AddRef: lambda r, i: f"AddRef;QueueEncoding [queueID={r.queue_id}]",
        m.AcknowledgeRef: lambda r, i: f"ACK;QueueEncoding [queueID={r.queue_id}]",
        m.DeliveryCount: lambda r, i: (
            f"DeliveryCountUpdateEncoding [queueID={r.queue_id}, count={r.count}]"
        ),
        m.PageTransaction: lambda r, i: (
            f"PageTransactionInfoImpl(transactionID={r.tx_id},id={i},"
            f"numberOfMessages={r.number_of_messages})"
        ),
        m.PageTransactionUpdate: lambda r, i: (
            f"PageUpdateTXEncoding [pageTX={r.tx_id}, records={r.records}]"
        ),
        m.ScheduledDelivery: lambda r, i: (
            f"ScheduledDeliveryEncoding [scheduledDeliveryTime={r.time}, queueID={r.queue_id}]"
        ),
        m.DuplicateId: _duplicate_id_text,
        m.HeuristicCompletion: _heuristic_text,
        m.AcknowledgeCursor: lambda r, i: f"CursorAckRecordEncoding [{_position_text(r)}]",
        m.PageComplete: lambda r, i: f"PGComplete [{_position_text(r)}]",
        m.PageCounterValue: lambda r, i: (
            f"PageCountRecord [queueID={r.queue_id}, value={r.value}, "
            f"persistentSize={r.persistent_size}]"
        ),
        m.PageCounterInc: lambda r, i: (
            f"PageCountRecordInc [queueID={r.queue_id}, value={r.inc}, "
            f"persistentSize={r.persistent_size}]"
        ),
        m.PageCounterPending: lambda r, i: (
            f"PageCountPendingImpl [queueID={r.queue_id}, pageID={r.page_id}]"
        ),
        m.AckRetry: _ack_retry_text,
        b.GroupBinding: lambda r, i: (
            f"GroupingEncoding [id={i}, groupId={r.group_id}, clusterName={r.cluster_name}]"
        ),
        b.QueueBinding: _queue_binding_text,
        b.QueueStatusRecord: lambda r, i: (
            f"QueueStatusEncoding [id={i}, queueID={r.queue_id}, status={r.status.name}]"
        ),
        b.IdCounter: lambda r, i: f"IDCounterEncoding [id={r.value}]",
        AddressSetting: _address_setting_text,
        AddressSettingJson: _address_setting_json_text,
        b.SecuritySetting: _security_text,
        b.Divert: _divert_text,
        b.Bridge: _bridge_text,
        b.AddressBinding: _address_binding_text,
        b.AddressStatusRecord: lambda r, i: (
            f"AddressStatusEncoding{{status={r.status.name}, id={r.address_id}}}"
        ),
        b.User: lambda r, i: f"PersistedUser [storeId={i}, username={r.username}, password=****]",
        b.Role: _role_text,
    }


# Types 49, 50 and 51 are missing on purpose: Artemis prints `NULL_TEXT` for them.
_TEXTS: Final = _table()
_SAFE_TEXTS: Final[dict[type[WireRecord], Callable[..., str]]] = {
    stored.CoreMessage: lambda r: f"CoreMessage(safe data, size={r.persistent_size})",
    stored.AmqpMessageV1: lambda r: f"AMQPStandardMessage(safe data, size={len(r.encoded)})",
    stored.AmqpMessageV2: lambda r: f"AMQPStandardMessage(safe data, size={len(r.encoded)})",
    stored.AmqpMessageV3: lambda r: f"AMQPStandardMessage(safe data, size={len(r.encoded)})",
    # The size of a large message is that of its file, which is not at hand here.
    stored.LargeCoreMessage: lambda r: "LargeServerMessageImpl(safe data)",
    stored.AmqpLargeMessage: lambda r: "AMQPLargeMessage(safe data)",
    bindings.QueueBinding: lambda r: "PersistentQueueBindingEncoding(safe data)",
    bindings.AddressBinding: lambda r: "PersistentAddressBindingEncoding(safe data)",
}
