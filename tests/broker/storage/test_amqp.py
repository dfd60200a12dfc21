"""AMQP messages in records: values, sections, their text and JSON, and what is refused."""

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.encoding import BodyReader, RecordFormatError
from broker.model.properties import Property, PropertyType
from broker.printing.describe_amqp import value_text
from broker.printing.journal_decoder import JournalDecoder
from broker.records.amqp_sections import read_sections
from broker.records.amqp_values import DEPTH_MAX, AmqpValue, read_value, value_size
from broker.records.records import decode_record, encode_record
from broker.records.stored_messages import (
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV2,
    AmqpMessageV3,
)

DECODER = JournalDecoder()
NULL = b"\x40"


def string(text):
    return b"\xa1" + bytes([len(text.encode())]) + text.encode()


def symbol(text):
    return b"\xa3" + bytes([len(text)]) + text.encode("ascii")


def compound(code, items, count=None):
    content = b"".join(items)
    count = len(items) if count is None else count
    return struct.pack(">BII", code, len(content) + 4, count) + content


def section(number, items, *, code):
    return b"\x00\x53" + bytes([number]) + compound(code, items)


HEADER = section(0x70, [b"\x41", b"\x50\x07"], code=0xD0)
DELIVERY_ANNOTATIONS = section(0x71, [symbol("d"), b"\x43"], code=0xD1)
ANNOTATIONS = section(0x72, [symbol("x-opt-jms-dest"), b"\x51\x00"], code=0xD1)
PROPERTIES = section(
    0x73,
    [
        string("id-1"),
        b"\xa0\x03a\x00\\",
        string("orders"),
        NULL,
        NULL,
        NULL,
        symbol("text/plain"),
        NULL,
        NULL,
        b"\x83" + struct.pack(">q", 1700000000000),
    ],
    code=0xD0,
)
APPLICATION = section(0x74, [string("colour"), string("red"), string("n"), b"\x54\xff"], code=0xD1)
BODY = b"\x00\x53\x77" + string("hello")
MESSAGE = HEADER + DELIVERY_ANNOTATIONS + ANNOTATIONS + PROPERTIES + APPLICATION + BODY
EXTRA = (Property("_AMQ_AD", PropertyType.STRING, "orders"),)
PROPERTIES_TEXT = (
    "Properties{messageId=id-1, userId=a\\x00\\x5c, to='orders', subject='null', replyTo='null', "
    "correlationId=null, contentType=text/plain, contentEncoding=null, absoluteExpiryTime=null, "
    "creationTime=Tue Nov 14 22:13:20 UTC 2023, groupId='null', groupSequence=null, "
    "replyToGroupId='null'}"
)


def describe(record):
    return DECODER.describe(45, encode_record(record), record_id=5, is_update=False)


def decode(record):
    return DECODER.decode(45, encode_record(record), record_id=5, is_update=False)


@pytest.mark.parametrize(
    "record",
    [
        AmqpMessageV1(5, 0, "orders", MESSAGE),
        AmqpMessageV2(5, 0, None, MESSAGE, None),
        AmqpMessageV2(5, 0, "orders", MESSAGE, EXTRA),
        AmqpMessageV3(5, 0, "orders", MESSAGE, EXTRA, 1700000000000),
        AmqpLargeMessage(
            *(5, True, 0, "orders", EXTRA, 0, len(HEADER), HEADER, -1, 0, 13, ANNOTATIONS),
            *(40, PROPERTIES, 99, 120, APPLICATION, 0, True),
        ),
        AmqpLargeMessage(
            *(5, False, 0, None, None, -1, 0, NULL, -1, 0, -1, NULL, -1, NULL, -1, 0, NULL),
        ),
    ],
)
def test_every_layout_comes_back(record):
    body = encode_record(record)

    assert decode_record(45, body, is_update=False) == record
    for size in range(len(body)):
        try:
            decode_record(45, body[:size], is_update=False)
        except RecordFormatError:
            continue
        # An older large message ends before its last two fields.
        assert isinstance(record, AmqpLargeMessage)
        assert size in (len(body) - 1, len(body) - 9)


def test_text_of_a_stored_message():
    record = AmqpMessageV3(5, 0, "orders", MESSAGE, None, 0)

    assert describe(record) == (
        "Message(messageID=5;userMessageID=id-1;msg=AMQPStandardMessage( [durable=true, "
        f"messageID=5, address=orders, size={len(MESSAGE) - len(DELIVERY_ANNOTATIONS)}, "
        "scanningStatus=SCANNED, applicationProperties={colour=red, n=-1}, "
        f"messageAnnotations={{x-opt-jms-dest=0}}, properties={PROPERTIES_TEXT}, "
        "extraProperties = null]"
    )


def test_text_of_the_first_version_shows_the_address_among_the_extra_properties():
    text = describe(AmqpMessageV1(5, 0, "orders", BODY))

    assert text == (
        "Message(messageID=5;msg=AMQPStandardMessage( [durable=false, messageID=5, "
        f"address=orders, size={len(BODY)}, scanningStatus=SCANNED, applicationProperties={{}}, "
        "messageAnnotations={}, properties=null, "
        "extraProperties = TypedProperties[_AMQ_AD=orders]]"
    )


def test_text_of_a_large_message():
    record = AmqpLargeMessage(
        *(5, True, 0, None, EXTRA, 0, 0, NULL, -1, 0, -1, NULL, 0, PROPERTIES, -1, 0, NULL),
    )

    assert describe(record) == (
        "LargeMessage(messageID=5;userMessageID=id-1;msg=AMQPLargeMessage( [durable=true, "
        "messageID=5, address=orders, size=0, scanningStatus=SCANNED, applicationProperties={}, "
        f"messageAnnotations={{}}, properties={PROPERTIES_TEXT}, "
        "extraProperties = TypedProperties[_AMQ_AD=orders]]"
    )


def test_a_missing_address_is_looked_for_in_extra_properties_and_then_in_to():
    other = (Property("_AMQ_AD", PropertyType.STRING, "kept"),)

    assert "address=kept," in describe(AmqpMessageV2(5, 0, None, MESSAGE, other))
    assert "address=orders," in describe(AmqpMessageV2(5, 0, None, MESSAGE, None))
    assert "address=null," in describe(AmqpMessageV2(5, 0, None, BODY, None))
    nobody = (Property("_AMQ_AD", PropertyType.NULL, None),)
    assert "address=null," in describe(AmqpMessageV2(5, 0, None, MESSAGE, nobody))


def test_the_address_is_added_to_a_map_that_grows_when_full():
    extra = tuple(Property(name, PropertyType.INT, 1) for name in ("a", "c"))
    record = AmqpLargeMessage(
        *(5, True, 0, "x", extra, 0, 0, NULL, -1, 0, -1, NULL, 0, NULL, -1, 0, NULL),
    )

    # Two entries fill a table of two buckets; of four buckets these three have 3, 1 and 2.
    assert "extraProperties = TypedProperties[c=1, _AMQ_AD=x, a=1]" in describe(record)


def test_safe_text_has_only_class_and_size():
    body = encode_record(AmqpMessageV3(5, 0, "orders", MESSAGE, None, 0))
    text = DECODER.describe(45, body, record_id=5, is_update=False, safe=True)

    assert text == f"AMQPStandardMessage(safe data, size={len(MESSAGE)})"


def test_json_of_a_stored_message():
    decoded = decode(AmqpMessageV3(5, 0, "orders", MESSAGE, EXTRA, 9))

    assert decoded == {
        "recordType": "ADD_MESSAGE_PROTOCOL",
        "persister": "AMQP_V3",
        "messageId": 5,
        "messageFormat": 0,
        "address": "orders",
        "expiration": 9,
        "header": {"durable": True, "priority": 7},
        "messageAnnotations": {"x-opt-jms-dest": 0},
        "properties": {
            "messageId": "id-1",
            "userId": "61005c",
            "to": "orders",
            "contentType": "text/plain",
            "creationTime": 1700000000000,
        },
        "applicationProperties": {"colour": "red", "n": -1},
        "extraProperties": {"_AMQ_AD": "orders"},
        "encodedSize": len(MESSAGE),
        "encoded": MESSAGE.hex(),
    }


def test_json_of_nested_values_and_missing_sections():
    items = [b"\x42", b"\x98" + bytes(16), b"\x00\x53\x01\x54\x02"]
    nested = compound(0xD1, [string("k"), compound(0xD0, items)])
    application = section(0x74, [string("m"), nested], code=0xD1)
    decoded = decode(AmqpMessageV1(5, 0, "orders", application))

    assert decoded["applicationProperties"] == {
        "m": {"k": [False, str(uuid.UUID(int=0)), {"descriptor": 1, "described": 2}]}
    }
    assert decoded["header"] is decoded["properties"] is decoded["messageAnnotations"] is None
    assert "extraProperties" not in decoded


def test_json_of_a_large_message_has_no_bytes():
    record = AmqpLargeMessage(
        *(5, True, 0, None, EXTRA, 0, 0, NULL, -1, 0, -1, NULL, 0, PROPERTIES, -1, 0, NULL),
    )
    decoded = decode(record)

    assert decoded["properties"]["messageId"] == "id-1"
    assert decoded["propertiesPosition"] == 0
    assert "encoded" not in decoded


def test_damaged_sections_are_an_error_of_the_text_and_the_json_only():
    record = AmqpMessageV3(5, 0, "orders", HEADER + HEADER, None, 0)

    assert decode_record(45, encode_record(record), is_update=False) == record
    assert describe(record).startswith("** damaged: second section header at byte")
    assert decode(record)["error"].startswith("second section header")


@pytest.mark.parametrize(
    ("data", "value", "text"),
    [
        (b"\x40", AmqpValue("null", None), "null"),
        (b"\x56\x01", AmqpValue("boolean", True), "true"),
        (b"\x42", AmqpValue("boolean", False), "false"),
        (b"\x50\xff", AmqpValue("ubyte", 255), "255"),
        (b"\x51\xff", AmqpValue("byte", -1), "-1"),
        (b"\x60\xff\xff", AmqpValue("ushort", 65535), "65535"),
        (b"\x61\xff\xff", AmqpValue("short", -1), "-1"),
        (b"\x70\0\0\0\x05", AmqpValue("uint", 5), "5"),
        (b"\x52\x05", AmqpValue("uint", 5), "5"),
        (b"\x43", AmqpValue("uint", 0), "0"),
        (b"\x71\xff\xff\xff\xff", AmqpValue("int", -1), "-1"),
        (b"\x80" + b"\xff" * 8, AmqpValue("ulong", 2**64 - 1), str(2**64 - 1)),
        (b"\x44", AmqpValue("ulong", 0), "0"),
        (b"\x81" + b"\xff" * 8, AmqpValue("long", -1), "-1"),
        (b"\x55\x80", AmqpValue("long", -128), "-128"),
        (b"\x72" + struct.pack(">f", 0.5), AmqpValue("float", 0.5), "0.5"),
        (b"\x82" + struct.pack(">d", 1e10), AmqpValue("double", 1e10), "1.0E10"),
        (b"\x73\0\0\0\x41", AmqpValue("char", 65), "A"),
        (b"\x83" + bytes(8), AmqpValue("timestamp", 0), "Thu Jan 01 00:00:00 UTC 1970"),
        (b"\x98" + bytes(16), AmqpValue("uuid", uuid.UUID(int=0)), str(uuid.UUID(int=0))),
        (b"\x74\1\2\3\4", AmqpValue("decimal32", b"\1\2\3\4"), "01020304"),
        (b"\xb0\0\0\0\x01z", AmqpValue("binary", b"z"), "z"),
        (b"\xb1\0\0\0\x02\xc3\xbc", AmqpValue("string", "ü"), "ü"),
        (b"\xb3\0\0\0\x01s", AmqpValue("symbol", "s"), "s"),
        (b"\x45", AmqpValue("list", ()), "[]"),
        (
            b"\xc0\x03\x02\x41\x43",
            AmqpValue("list", (AmqpValue("boolean", True), AmqpValue("uint", 0))),
            "[true, 0]",
        ),
        (
            b"\xc1\x06\x02\xa1\x01k\x54\x07",
            AmqpValue("map", ((AmqpValue("string", "k"), AmqpValue("int", 7)),)),
            "{k=7}",
        ),
        (
            b"\xe0\x04\x02\x54\x01\x02",
            AmqpValue("array", (AmqpValue("int", 1), AmqpValue("int", 2))),
            "[Ljava.lang.Object;@0",
        ),
        (
            b"\xf0\0\0\0\x05\0\0\0\x02\x40",
            AmqpValue("array", (AmqpValue("null", None), AmqpValue("null", None))),
            "[Ljava.lang.Object;@0",
        ),
        (
            b"\x00\x53\x01\x54\x02",
            AmqpValue("described", (AmqpValue("ulong", 1), AmqpValue("int", 2))),
            "UnknownDescribedType{descriptor=1, described=2}",
        ),
    ],
)
def test_values(data, value, text):
    reader = BodyReader(data + b"more")

    assert value_size(reader) == len(data)
    assert read_value(reader) == value
    assert reader.remaining == 4
    assert value_text(value) == text
    for size in range(len(data)):
        with pytest.raises(RecordFormatError):
            read_value(BodyReader(data[:size]))


def test_a_described_array_describes_each_item():
    data = b"\xe0\x07\x02\x00\x53\x01\x54\x01\x02"
    descriptor = AmqpValue("ulong", 1)

    assert read_value(BodyReader(data)).value == tuple(
        AmqpValue("described", (descriptor, AmqpValue("int", number))) for number in (1, 2)
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x46", "0x46 is not an AMQP format code"),
        (b"\xa2\x00", "0xa2 is not an AMQP format code"),
        (b"\xc2\x00", "0xc2 is not an AMQP format code"),
        (b"\xe1\x00", "0xe1 is not an AMQP format code"),
        (b"\xa1\x01\xff", "string is not text"),
        (b"\xa3\x01\xff", "symbol is not text"),
        (b"\xc1\x02\x01\x41", "map ends with a key"),
        (compound(0xD0, [b"\x41"], count=2**32 - 1), "4294967295 items do not fit"),
        (b"\xf0\0\0\0\x05\xff\xff\xff\xff\x40", "4294967295 items do not fit"),
        (b"\xf0\0\0\0\x05\xff\xff\xff\xff\x54", "4294967295 items do not fit"),
        (b"\xd0\xff\xff\xff\xff", "4294967295 bytes wanted"),
        (b"\x00" * 100, "nested deeper"),
        (b"\x00\x53\x01" * 100, "nested deeper"),
    ],
)
def test_damaged_values_are_refused(data, reason):
    with pytest.raises(RecordFormatError, match=reason):
        read_value(BodyReader(data))


def test_lists_nest_to_a_limit():
    data = NULL
    for _ in range(DEPTH_MAX):
        data = compound(0xD0, [data])

    value_text(read_value(BodyReader(data)))
    with pytest.raises(RecordFormatError, match="nested deeper than 32"):
        read_value(BodyReader(compound(0xD0, [data])))


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(data):
    for read in (lambda: value_text(read_value(BodyReader(data))), lambda: read_sections(data)):
        try:
            read()
        except RecordFormatError:
            continue


def test_sections_named_by_symbols_are_found():
    header = b"\x00" + symbol("amqp:header:list") + compound(0xD0, [b"\x41"])

    assert read_sections(header + BODY).header == {"durable": AmqpValue("boolean", True)}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x00\x53\x70\x41", "section header is a boolean"),
        (section(0x70, [NULL] * 6, code=0xD0), "section of 6 fields, 5 are known"),
        (section(0x74, [], code=0xD0), "section application_properties is a list"),
    ],
)
def test_damaged_sections_are_refused(data, reason):
    with pytest.raises(RecordFormatError, match=reason):
        read_sections(data)


def test_a_null_section_counts_as_missing():
    assert read_sections(b"\x00\x53\x70\x40\x00\x53\x74\x40").header is None


def test_a_saved_section_is_a_section_or_null():
    record = AmqpLargeMessage(
        *(5, True, 0, None, None, 0, 0, b"\x41", -1, 0, -1, NULL, 0, NULL, -1, 0, NULL),
    )

    assert "neither a section nor null" in describe(record)
