"""Record bodies: the format's worked examples, older and shorter bodies, hostile ones."""

import inspect
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.encoding import BodyReader, RecordFormatError
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.model.wire import RecordType, WireRecord
from broker.model.xid import Xid
from broker.printing.journal_decoder import JournalDecoder
from broker.records import address_settings, binding_records, message_records, stored_messages
from broker.records.address_settings import AddressSetting
from broker.records.binding_records import (
    AddressBinding,
    Bridge,
    Divert,
    QueueBinding,
    QueueStatus,
    QueueStatusRecord,
    SecuritySetting,
    Transformer,
    User,
)
from broker.records.message_records import (
    AckReason,
    AckRetry,
    HeuristicCompletion,
    MessageBodyChunk,
    OldMessage,
    PageCounterInc,
    PageCounterValue,
    PageTransaction,
    PageTransactionUpdate,
)
from broker.records.records import decode_prepared, decode_record, encode_prepared, encode_record
from broker.records.stored_messages import CoreMessage, MessageHeaders

DECODER = JournalDecoder()
TEXT_MESSAGE = bytes.fromhex(
    "01 000000000000004d 01 00000004 6100 6200 00000044"
    "00000016 01 00000004 6800 6900"
    "000000000000004d 01 00000004 6100 6200 00 03 01 00000000000007d0 00000000000003e8 04"
    "01 00000001 00000002 6b00 0a 00000002 7600"
)
QUEUE_BINDING = bytes.fromhex(
    "00000002 7100 00000002 6100 00 01 00000000 00 ffffffff 00 01 00 00 00 00000000"
    "ffffffffffffffff 00 00 00 ffffffff 00 0000000000000000 0000000000000000 00"
    "ffffffffffffffff ff 00 00"
)


def decode(user_type, body, *, is_update=False):
    return decode_record(user_type, body, is_update=is_update)


def test_a_text_message():
    properties = (Property("k", PropertyType.STRING, "v"),)
    headers = MessageHeaders(77, "ab", None, 3, True, 2000, 1000, 4, properties)
    message = CoreMessage(77, "ab", bytes.fromhex("01 00000004 6800 6900"), headers)

    assert decode(45, TEXT_MESSAGE) == message
    assert encode_record(message) == TEXT_MESSAGE
    assert DECODER.decode(45, TEXT_MESSAGE, record_id=77, is_update=False) == {
        "recordType": "ADD_MESSAGE_PROTOCOL",
        "persister": "CORE",
        "messageId": 77,
        "address": "ab",
        "userId": None,
        "type": 3,
        "durable": True,
        "expiration": 2000,
        "timestamp": 1000,
        "priority": 4,
        "properties": {"k": "v"},
        "propertyTypes": {"k": "string"},
        "bodySize": 9,
        "body": "010000000468006900",
        "text": "hi",
    }


def test_an_untouched_message_has_a_body_of_four_zeros():
    headers = MessageHeaders(78, "ab", None, 3, True, 2000, 1000, 4, ())
    body = encode_record(CoreMessage(78, "ab", bytes(4), headers))

    assert body[18:30] == bytes.fromhex("0000002e 00000011 00000000")


def test_id_and_address_in_front_of_a_message_override_those_inside():
    body = TEXT_MESSAGE.replace(b"\x4d", b"\x4e", 1).replace(b"a\0b\0", b"x\0y\0", 1)
    message = decode(45, body)

    assert (message.headers.message_id, message.headers.address) == (77, "ab")
    assert message.current_headers.message_id == 78
    assert message.current_headers.address == "xy"
    assert encode_record(message) == body


def test_a_message_without_an_address_in_front_keeps_its_own():
    body = TEXT_MESSAGE[:9] + b"\0" + TEXT_MESSAGE[18:]

    assert decode(45, body).current_headers.address == "ab"


def test_a_map_message_shows_its_entries():
    entries = bytes.fromhex("01 00000001 00000002 6200 02 01")
    headers = MessageHeaders(1, "a", None, 5, True, 0, 0, 4, ())
    body = encode_record(CoreMessage(1, "a", entries, headers))

    assert DECODER.decode(45, body, record_id=1, is_update=False)["map"] == {"b": True}


def test_a_body_that_is_not_what_its_type_says_is_shown_as_bytes_only():
    headers = MessageHeaders(1, "a", None, 3, True, 0, 0, 4, ())
    body = encode_record(CoreMessage(1, "a", b"\1\2", headers))
    decoded = DECODER.decode(45, body, record_id=1, is_update=False)

    assert decoded["body"] == "0102"
    assert "text" not in decoded


def test_a_queue_binding_of_static_defaults():
    binding = QueueBinding("q", "a", None, "", False, routing_type=RoutingType.ANYCAST)

    assert len(QUEUE_BINDING) == 76
    assert decode(21, QUEUE_BINDING) == binding
    assert encode_record(binding) == QUEUE_BINDING


@pytest.mark.parametrize(
    ("size", "fields"),
    [
        (19, {}),
        (25, {"routing_type": RoutingType.ANYCAST}),
        (40, {"routing_type": RoutingType.ANYCAST}),
        (75, {"routing_type": RoutingType.ANYCAST}),
    ],
)
@pytest.mark.parametrize("auto_created", [False, True])
def test_a_queue_binding_of_an_older_version_gets_the_defaults(size, fields, auto_created):
    body = QUEUE_BINDING[:18] + (b"\xff" if auto_created else b"\0") + QUEUE_BINDING[19:size]
    auto_delete = auto_created and size < 48

    assert decode(21, body) == QueueBinding(
        "q", "a", None, "", auto_created, auto_delete=auto_delete, **fields
    )


@pytest.mark.parametrize("size", [20, 23, 24, 30, 33])
def test_a_queue_binding_cut_inside_a_field_or_a_group_is_refused(size):
    with pytest.raises(RecordFormatError):
        decode(21, QUEUE_BINDING[:size])


def test_the_user_of_a_queue_is_found_in_its_metadata():
    def user(metadata):
        return QueueBinding("q", "a", None, metadata, False).user

    assert user("user=alice;") == "alice"
    assert user("x=1;user=a=b;") == "a=b"
    assert user("") is None
    assert user(None) is None


def test_small_bindings():
    for user_type, body, record in [
        (44, "00000002 6100 00000001 01 ff 00", AddressBinding("a", (RoutingType.ANYCAST,), True)),
        (22, "0000000000000005 0000", QueueStatusRecord(5, QueueStatus.PAUSED)),
        (47, "00000001 0075 00000001 0070", User("u", "p")),
    ]:
        assert decode(user_type, bytes.fromhex(body)) == record
        assert encode_record(record) == bytes.fromhex(body)


def test_an_xid_has_its_branch_qualifier_first():
    data = bytes.fromhex("00000007 00000002 6271 00000003 677478")
    xid = Xid(7, b"bq", b"gtx")

    assert decode_prepared(data) == xid
    assert encode_prepared(xid) == data
    assert encode_record(HeuristicCompletion(xid, True)) == data + b"\xff"


def test_a_page_transaction_is_another_record_when_updated():
    body = struct.pack(">qi", 9, 3)

    assert decode(35, body) == PageTransaction(9, 3)
    assert decode(35, body, is_update=True) == PageTransactionUpdate(9, 3)


def test_older_counters_have_no_size():
    assert decode(40, struct.pack(">qq", 7, 5)) == PageCounterValue(7, 5, 0)
    assert decode(41, struct.pack(">qi", 7, 5)) == PageCounterInc(7, 5, 0)
    assert decode(44, bytes.fromhex("00000002 6100 00000000 ff")) == AddressBinding("a", (), True)


def test_an_older_security_setting_has_no_view_and_edit_roles():
    body = bytes.fromhex("00000002 6100") + bytes(10)

    assert decode(26, body) == SecuritySetting("a", *[None] * 12)


def test_transformers_and_connectors_come_back():
    transformer = Transformer("org.T", (("k", "v"), (None, None)))
    divert = Divert("d", None, "f", "r", True, None, RoutingType.STRIP, transformer)
    bridge = Bridge(
        *("b", "p", "q", "f", None, None, True, 1, 2.5, 3, 4, 5, None, 6, 7, 8, "u", "pw"),
        *(9, 10, 11, 12, 13, False, RoutingType.PASS, transformer, ("c1", None), None, "id"),
    )

    for record in (divert, bridge):
        body = encode_record(record)
        assert decode(record.record_type, body) == record
    older = encode_record(bridge)[: -len(bytes.fromhex("00 01 00000002 0069 0064"))]
    assert decode(28, older).client_id is None


def test_ack_retries_with_and_without_a_node():
    for node_id in (None, "node-1"):
        record = AckRetry(20, 0, 7, node_id, 500, AckReason.EXPIRED)
        assert decode(53, encode_record(record)) == record
    with pytest.raises(RecordFormatError, match="not ASCII"):
        encode_record(AckRetry(20, 0, 7, "nöde", 500, AckReason.NORMAL))
    with pytest.raises(RecordFormatError, match="node id is not ASCII"):
        decode(53, struct.pack(">qbqib", 20, 0, 7, 1, -1) + bytes(9))
    with pytest.raises(RecordFormatError, match="version 1"):
        decode(53, struct.pack(">qb", 20, 1) + bytes(30))


def test_raw_bodies_are_kept_whole():
    assert decode(49, b"abc") == MessageBodyChunk(b"abc")
    assert decode(31, b"old") == OldMessage(b"old")
    assert DECODER.decode(49, b"abc", record_id=1, is_update=False) == {
        "recordType": "ADD_MESSAGE_BODY",
        "body": "616263",
    }


def all_settings(*, left_out=()):
    """Every setting of the binary form, each with a value of its own."""
    values = []
    for number, item in enumerate((*address_settings._REQUIRED, *address_settings._OPTIONAL)):
        if item.name in left_out:
            continue
        for value in (f"s{number}", number + 0.5, number % 2, number):
            try:
                probe = AddressSetting("m", ((item.name, value),))
                encode_record(probe)
            except (AttributeError, TypeError, RecordFormatError):
                continue
            kind = item.codec
            value = bool(value) if kind is address_settings.NB else value
            values.append((item.name, None if number % 5 == 4 and kind != _BYTE else value))
            break
    return tuple(values)


_BYTE = address_settings.BYTE


def test_binary_address_settings_come_back():
    setting = AddressSetting("my.#", all_settings())
    assert len(setting.settings) == len(address_settings._REQUIRED) + len(
        address_settings._OPTIONAL
    )

    body = encode_record(setting)

    assert decode(25, body) == setting
    assert encode_record(decode(25, body)) == body


def test_binary_address_settings_may_end_early():
    required = len(address_settings._REQUIRED)
    setting = AddressSetting("my.#", all_settings()[: required + 3])

    assert decode(25, encode_record(setting)) == setting


def test_binary_address_settings_of_the_oldest_layout_lack_three_fields():
    # A value behind the first missing field: read as that field, it is a string of 4 GiB.
    names = [item.name for item in (*address_settings._REQUIRED, *address_settings._OPTIONAL)]
    kept = [name for name in names if not name.startswith("configDelete")]
    assert len(names) - len(kept) == 3
    values = {"autoCreateAddresses": True, "defaultQueueRoutingType": 1}
    values["defaultAddressRoutingType"] = 0
    settings = tuple((name, values.get(name)) for name in kept)
    setting = AddressSetting("m", settings)

    assert decode(25, encode_record(setting)) == setting


def test_unknown_types_decode_to_none():
    for user_type in (0, 19, 23, 54, 200, 255):
        assert decode(user_type, b"abc") is None
        assert DECODER.decode(user_type, b"abc", record_id=1, is_update=False) is None
        assert DECODER.describe(user_type, b"", record_id=1, is_update=False) == "** null **"


def test_an_unknown_persister_is_refused():
    with pytest.raises(RecordFormatError, match="unknown message persister 9"):
        decode(45, b"\x09")
    assert DECODER.decode(45, b"\x09", record_id=1, is_update=False) == {
        "recordType": "ADD_MESSAGE_PROTOCOL",
        "error": "unknown message persister 9 at byte 1 of 1",
    }
    assert DECODER.describe(45, b"\x09", record_id=1, is_update=False) == (
        "** damaged: unknown message persister 9 at byte 1 of 1 **"
    )


def test_every_record_type_has_a_class():
    for user_type in RecordType:
        with_body = {RecordType.ADD_MESSAGE_PROTOCOL: TEXT_MESSAGE}
        try:
            record = decode(user_type, with_body.get(user_type, b""))
        except RecordFormatError:
            continue
        assert isinstance(record, WireRecord)
        assert record.record_type is user_type


def test_every_record_class_is_frozen_and_slotted():
    modules = (binding_records, message_records, stored_messages, address_settings)
    classes = [
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, WireRecord)
    ]
    assert len(classes) > 35
    for kind in classes:
        assert kind.__dataclass_params__.frozen
        assert "__slots__" in vars(kind)


def test_only_format_errors_come_from_bodies_cut_at_any_place(bodies):
    for (user_type, is_update), body in bodies.items():
        for size in range(len(body)):
            cut = body[:size]
            try:
                record = decode(user_type, cut, is_update=is_update)
            except RecordFormatError:
                assert "error" in DECODER.decode(user_type, cut, record_id=1, is_update=is_update)
            else:
                assert isinstance(record, WireRecord)


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0x80, 0xFF])
def test_no_byte_of_a_body_can_make_the_decoder_raise(bodies, byte):
    for (user_type, is_update), body in bodies.items():
        for offset in range(len(body)):
            damaged = body[:offset] + bytes([byte]) + body[offset + 1 :]
            survey(user_type, damaged, is_update=is_update)


@given(st.sampled_from(RecordType), st.booleans(), st.binary(max_size=200))
def test_any_bytes_are_surveyed_without_raising(user_type, is_update, body):
    survey(user_type, body, is_update=is_update)


@given(st.sampled_from(list(stored_messages.Persister)), st.binary(max_size=200))
def test_any_bytes_are_surveyed_as_a_message(persister, body):
    survey(45, bytes([persister]) + body, is_update=False)


def survey(user_type, body, *, is_update):
    decoded = DECODER.decode(user_type, body, record_id=1, is_update=is_update)
    assert decoded["recordType"] == RecordType(user_type).name
    json.dumps(decoded, ensure_ascii=False, allow_nan=False).encode("utf-8")
    for safe in (False, True):
        text = DECODER.describe(user_type, body, record_id=1, is_update=is_update, safe=safe)
        text.encode("utf-8")
    DECODER.describe_prepared(body)


def test_huge_lengths_are_refused_at_once():
    huge = struct.pack(">i", 2**31 - 1)
    for body in (
        b"\x01" + bytes(8) + b"\x01" + huge,
        b"\x01" + bytes(8) + b"\x00" + huge,
        b"\x01" + bytes(8) + b"\x00" + struct.pack(">ii", 4, 2**31 - 1),
        b"\x01" + bytes(8) + b"\x00" + struct.pack(">ii", 4, -(2**31)),
    ):
        with pytest.raises(RecordFormatError):
            decode(45, body)
    with pytest.raises(RecordFormatError):
        AddressBinding.read(BodyReader(bytes.fromhex("00000002 6100") + huge + b"\x01"))


@given(st.text(max_size=20), st.binary(max_size=40), st.integers(0, 2**63 - 1))
def test_a_duplicate_id_is_encoded_as_its_record_says(address, duplicate_id, message_id):
    expected = encode_record(message_records.DuplicateId(address, duplicate_id, message_id))

    assert message_records.encode_duplicate_id(address, duplicate_id, message_id) == expected
