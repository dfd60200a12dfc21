"""Texts that no golden folder holds, and how values are written."""

import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.java_text import date_text, double_text, float_text, hash_order, long_hash
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.printing.describe import describe, xid_text
from broker.printing.describe_properties import properties_text
from broker.printing.journal_decoder import JournalDecoder
from broker.records.address_settings import AddressSetting, AddressSettingJson
from broker.records.binding_records import AddressBinding, Bridge, Divert, Transformer
from broker.records.message_records import DuplicateId, OldMessage
from broker.records.records import encode_record
from broker.records.stored_messages import CoreMessage, LargeCoreMessage, MessageHeaders

HEADERS = MessageHeaders(7, "a", bytes(range(16)), 0, True, 0, 0, 4, ())
MESSAGE = CoreMessage(7, "a", b"", HEADERS)


def test_a_bridge_id_shows_node_and_message():
    record = DuplicateId("BRIDGE.a", bytes(range(16)) + struct.pack(">q", 77))

    assert describe(record, 1) == (
        "DuplicateIDEncoding [address=BRIDGE.a, duplID=0001 0203 0405 0607 0809 0A0B 0C0D 0E0F "
        "0000 0000 0000 004D / nodeUUID=00010203-0405-1607-8809-0a0b0c0d0e0f messageID=77]"
    )
    assert " / " not in describe(DuplicateId("a", record.duplicate_id), 1)
    assert describe(DuplicateId("a", b""), 1) == "DuplicateIDEncoding [address=a, duplID=[]]"


def test_an_old_message_says_what_to_do():
    text = "ADD-MESSAGE is not supported any longer, use export/import"

    assert describe(OldMessage(b""), 1) == text


@pytest.mark.parametrize(
    ("format_id", "encoded"),
    [(0, "AAAAAA=="), (255, "AAAAAA=="), (256, "AQEAAA=="), (-1, "_____w=="), (-256, "_____w==")],
)
def test_format_ids_are_encoded_as_remainders(format_id, encoded):
    assert xid_text(Xid(format_id, b"", b"")) == (
        f"XidImpl (0 bq: formatID:{format_id} gtxid: base64:{encoded}"
    )


def test_a_prepared_transaction_without_an_xid_is_null():
    assert JournalDecoder().describe_prepared(b"abc") == "null"


def test_transformers_print_in_the_order_of_a_hash_map():
    pairs = (("beta", "2"), ("alpha", "1"), (None, "0"), ("beta", "3"))
    transformer = Transformer("org.T", pairs)
    divert = Divert("d", "a", "f", "r", False, None, RoutingType.STRIP, transformer)

    assert describe(divert, 1).endswith(
        "transformerConfiguration=TransformerConfiguration [className=org.T, "
        "properties={null=0, alpha=1, beta=3}]]}"
    )


def test_routing_types_print_once_and_in_order():
    types = (RoutingType.ANYCAST, RoutingType.MULTICAST, RoutingType.ANYCAST)

    assert "routingTypes={MULTICAST,ANYCAST}" in describe(AddressBinding("a", types, True), 1)
    assert "routingTypes={}" in describe(AddressBinding("a", (), True), 1)


def test_safe_text_has_only_classes_and_sizes():
    def safe(record):
        return describe(record, 1, safe=True)

    assert safe(MESSAGE) == f"CoreMessage(safe data, size={MESSAGE.persistent_size})"
    assert safe(LargeCoreMessage(HEADERS)) == "LargeServerMessageImpl(safe data)"
    assert safe(AddressBinding("a", (), True)) == "PersistentAddressBindingEncoding(safe data)"
    assert safe(DuplicateId("a", b"")) == describe(DuplicateId("a", b""), 1)


def test_user_ids_print_in_front_and_inside():
    uuid = "00010203-0405-1607-8809-0a0b0c0d0e0f"

    assert describe(MESSAGE, 7).startswith(f"Message(messageID=7;userMessageID={uuid};msg=Core")
    assert f",userID={uuid}," in describe(LargeCoreMessage(HEADERS), 7)


def test_half_a_surrogate_pair_prints_as_a_question_mark():
    assert describe(DuplicateId("a\ud83d-\ufffd", b"a"), 1) == (
        "DuplicateIDEncoding [address=a?-\ufffd, duplID=61]"
    )


def test_binary_settings_print_like_json_ones():
    settings = (
        ("redeliveryMultiplier", 2.0),
        ("dropMessagesWhenFull", True),
        ("pageCacheMaxSize", 5),
        ("defaultQueueRoutingType", 1),
        ("defaultAddressRoutingType", 7),
        ("slowConsumerThresholdMeasurementUnit", 60),
    )
    json = (
        '{"redeliveryMultiplier":2,"pageCacheMaxSize":5,"defaultQueueRoutingType":"ANYCAST",'
        '"slowConsumerThresholdMeasurementUnit":"MESSAGES_PER_MINUTE","unknown":1}'
    )
    binary = describe(AddressSetting("m", settings), 3)
    text = describe(AddressSettingJson("m", json), 3)

    start = "PersistedAddressSetting [storeId=3, addressMatch=m, setting="
    assert binary.startswith(start + "AddressSettings{addressFullMessagePolicy=null, ")
    assert ", pageMaxCache=5, " in binary
    assert ", redeliveryMultiplier=2.0, " in binary
    assert "slowConsumerThresholdMeasurementUnit=MESSAGES_PER_MINUTE" in binary
    assert text.endswith(f", addressMatch=m, setting={binary.removeprefix(start)[:-1]}}}")


@pytest.mark.parametrize("json", ["", "[]", "{", "[" * 100_000, "1" * 5000])
def test_settings_that_are_not_a_json_object_are_damage(json):
    body = encode_record(AddressSettingJson("m", json))
    text = JournalDecoder().describe(52, body, record_id=1, is_update=False)

    assert text.startswith("** damaged: address setting 'm' is not ")


def test_byte_properties_are_shortened_and_routes_read_as_ids():
    def text(name, data):
        return properties_text((Property(name, PropertyType.BYTES, data),))

    # 60 bytes make 149 characters, 61 make 152.
    assert " ... " not in text("p", bytes(60))
    assert text("p", bytes(61)) == (f"TypedProperties[p=[{('0000 ' * 15)} ... {('00 00' * 15)}]]")
    assert text("_AMQ_ROUTE_TO", struct.pack(">qq", 7, -1)) == (
        "TypedProperties[_AMQ_ROUTE_TO=[0000 0000 0000 0007 FFFF FFFF FFFF FFFF], "
        "bytesAsLongs[7, -1]]"
    )
    assert "bytesAsLongs[error-converting-longs=null]" in text("_AMQ_ROUTE_TOx", b"abc")


def test_a_bridge_prints_its_class_only():
    bridge = Bridge(*[None] * 24, RoutingType.PASS, None, ())

    assert describe(bridge, 1) == (
        "PersistedBridgeConfiguration{storeId=0, bridgeConfiguration="
        "org.apache.activemq.artemis.core.config.BridgeConfiguration@0}"
    )


@given(st.integers(1, 253402300799))
def test_dates_are_those_of_the_calendar(seconds):
    now = time.gmtime(seconds)

    assert date_text(seconds * 1000 + 999) == time.strftime("%a %b %d %H:%M:%S UTC %Y", now)


def test_dates_beyond_the_calendar_of_python():
    assert date_text(2**63 - 1) == "Sun Aug 17 07:12:55 UTC 292278994"
    assert date_text(-1) == "Wed Dec 31 23:59:59 UTC 1969"


@given(st.floats(allow_nan=False))
def test_doubles_are_written_so_that_they_read_back(value):
    text = double_text(value)

    assert float(text.replace("Infinity", "inf")) == value
    assert "." in text or "Infinity" in text


@given(st.floats(width=32, allow_nan=False))
def test_floats_are_written_so_that_they_read_back(value):
    read = float(float_text(value).replace("Infinity", "inf"))

    assert struct.pack(">f", value) == struct.pack(">f", read)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456.75, "123456.75"),
        (1.5e300, "1.5E300"),
        (5e-324, "4.9E-324"),
        (2e23, "2.0E23"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (-2.0, "-2.0"),
        (100.0, "100.0"),
    ],
)
def test_doubles(value, text):
    assert double_text(value) == text


def test_floats():
    assert float_text(struct.unpack(">f", bytes.fromhex("00000001"))[0]) == "1.4E-45"
    assert float_text(struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]) == "3.4028235E38"


def test_a_grown_hash_map_walks_its_buckets():
    hashes = {number: long_hash(number) for number in (17, 1, 33, 2, -1)}
    twelve = {number: long_hash(number) for number in (16, *range(11))}

    assert list(hash_order(hashes)) == [-1, 17, 1, 33, 2]
    assert list(hash_order(twelve)) == [16, *range(11)]
    assert list(hash_order({**twelve, 11: long_hash(11)})) == [*range(12), 16]
