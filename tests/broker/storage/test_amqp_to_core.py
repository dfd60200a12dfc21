"""AMQP messages as Core consumers see them: bodies, headers, annotations, properties."""

import contextlib
import random
import struct
import uuid

import pytest

from broker.model.bodies import decode_map, decode_stream, decode_text
from broker.model.encoding import BodyReader, RecordFormatError
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.records.amqp_message import AmqpMessage
from broker.records.amqp_sections import read_body
from broker.records.amqp_to_core import core_content
from broker.records.amqp_values import AmqpValue, encode_value, read_value
from broker.records.persisters import UnsupportedMessage, message_of_record
from broker.records.records import encode_record
from broker.records.stored_messages import AmqpMessageV1, AmqpMessageV3
from tests.broker.storage.test_amqp import MESSAGE, NULL, compound, section, string, symbol

NO_TYPE = object()
UUID = uuid.UUID(int=0x1234)


def properties(**fields):
    """A section of properties; names with _ for -."""
    order = (
        *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
        *("content_encoding", "absolute_expiry_time", "creation_time", "group_id"),
        *("group_sequence", "reply_to_group_id"),
    )
    return section(0x73, [fields.get(name, NULL) for name in order], code=0xD0)


def body(number, value):
    return b"\x00\x53" + bytes([number]) + value


def binary(data):
    return b"\xa0" + bytes([len(data)]) + data


def converted(content_type, *sections):
    """Type, body and what the body was."""
    before = b"" if content_type is None else properties(content_type=symbol(content_type))
    found = core_content(before + b"".join(sections), ())
    noted = found.properties.get("JMS_AMQP_ORIGINAL_ENCODING")
    return found.type, found.body, None if noted is None else noted.value


JAVA = "application/x-java-serialized-object"
OTHER = body(0x77, b"\x55\x05")


@pytest.mark.parametrize(
    ("content_type", "sections", "kind", "content", "noted"),
    [
        (None, [], MessageType.BYTES, b"", 1),
        ("application/octet-stream", [], MessageType.BYTES, b"", 1),
        (JAVA, [], MessageType.OBJECT, b"", 1),
        ("image/png", [], MessageType.DEFAULT, b"", 1),
        (None, [body(0x75, binary(b"x"))], MessageType.BYTES, b"x", 2),
        (None, [body(0x75, binary(b"x")), body(0x75, binary(b"y"))], MessageType.BYTES, b"xy", 2),
        (JAVA, [body(0x75, binary(b"x"))], MessageType.OBJECT, b"\0\0\0\1x", 2),
        ("text/plain", [body(0x75, binary(b"\xff"))], MessageType.BYTES, b"\xff", 2),
        ("text/plain;charset=latin1", [body(0x75, binary(b"x"))], MessageType.BYTES, b"x", 2),
        (None, [body(0x77, binary(b"x"))], MessageType.BYTES, b"x", 6),
        (JAVA, [body(0x77, binary(b"x"))], MessageType.OBJECT, b"\0\0\0\1x", 6),
        (None, [OTHER], MessageType.BYTES, OTHER, None),
        (None, [body(0x76, compound(0xD0, [b"\x98" + UUID.bytes]))], MessageType.STREAM, None, 3),
        (None, [body(0x76, compound(0xD0, [b"\x45"]))], MessageType.BYTES, None, None),
    ],
)
def test_bodies(content_type, sections, kind, content, noted):
    found = converted(content_type, *sections)

    assert found[0] == kind
    assert found[2] == noted
    if content is not None:
        assert found[1] == content


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json", "a/b", "application/a+xml"]
)
def test_text_in_data(content_type):
    kind, content, noted = converted(content_type, body(0x75, binary("ü".encode())))

    if content_type == "a/b":
        assert (kind, content) == (MessageType.BYTES, "ü".encode())
    else:
        assert (kind, decode_text(content), noted) == (MessageType.TEXT, "ü", 2)


@pytest.mark.parametrize(("value", "text", "noted"), [(NULL, None, 4), (string("hi"), "hi", 5)])
def test_text_in_a_value(value, text, noted):
    kind, content, encoding = converted(None, body(0x77, value))

    assert (kind, decode_text(content), encoding) == (MessageType.TEXT, text, noted)


def test_lists_and_maps():
    items = [
        string("a"),
        b"\x54\xff",
        b"\x41",
        NULL,
        binary(b"b"),
        b"\x82" + struct.pack(">d", 0.5),
    ]
    stream = converted(None, body(0x77, compound(0xD0, items)))
    assert (stream[0], stream[2]) == (MessageType.STREAM, 8)
    assert decode_stream(stream[1]) == ["a", -1, True, None, b"b", 0.5]

    several = [body(0x76, compound(0xD0, [one])) for one in items[:2]]
    assert decode_stream(converted(None, *several)[1]) == ["a", -1]

    found = converted(None, body(0x77, compound(0xD1, [string("k"), b"\x54\x07"])))
    assert (found[0], found[2], decode_map(found[1])) == (MessageType.MAP, 7, {"k": 7})


@pytest.mark.parametrize(
    ("encoded", "kind", "value"),
    [
        (b"\x50\x7f", PropertyType.BYTE, 127),
        (b"\x50\xff", PropertyType.SHORT, 255),
        (b"\x60\xff\xff", PropertyType.INT, 65535),
        (b"\x70\xff\xff\xff\xff", PropertyType.LONG, 2**32 - 1),
        (b"\x70\x00\x00\x00\x01", PropertyType.INT, 1),
        (b"\x80" + b"\xff" * 8, PropertyType.LONG, -1),
        (b"\x51\xff", PropertyType.BYTE, -1),
        (b"\x61\x00\x01", PropertyType.SHORT, 1),
        (b"\x73\0\0\0\x41", PropertyType.CHAR, "A"),
        (symbol("s"), PropertyType.STRING, "s"),
        (binary(b"b"), PropertyType.BYTES, b"b"),
        (NULL, PropertyType.NULL, None),
        (b"\x83" + struct.pack(">q", 7), PropertyType.LONG, 7),
        (b"\x98" + UUID.bytes, PropertyType.STRING, str(UUID)),
        (b"\x45", PropertyType.BYTES, b"\xd0\0\0\0\x04\0\0\0\0"),
    ],
)
def test_application_properties(encoded, kind, value):
    found = core_content(section(0x74, [string("k"), encoded], code=0xD1), ())

    assert found.properties["k"] == Property("k", kind, value)


def test_header():
    fields = [b"\x42", b"\x50\x14", b"\x52\x09", b"\x41", b"\x52\x02"]
    found = core_content(section(0x70, fields, code=0xD0), ())

    assert (found.durable, found.priority, found.ttl_ms) == (False, 9, 9)
    assert {name: one.value for name, one in found.properties.items()} == {
        "JMS_AMQP_ORIGINAL_ENCODING": 1,
        "JMS_AMQP_HEADER": True,
        "JMS_AMQP_HEADERDURABLE": True,
        "JMS_AMQP_HEADERPRIORITY": True,
        "JMS_AMQP_FirstAcquirer": True,
        "JMSXDeliveryCount": 3,
    }
    assert (core_content(b"", ()).durable, core_content(b"", ()).priority) == (None, 4)


def test_annotations():
    pairs = {
        "x-opt-delivery-time": b"\x55\x07",
        "x-opt-ingress-time": b"\x55\x08",
        "x-opt-jms-dest": b"\x51\x01",
        "list": b"\x45",
    }
    items = [one for name, value in pairs.items() for one in (symbol(name), value)]
    found = core_content(section(0x72, items, code=0xD1), ()).properties

    assert found["_AMQ_SCHED_DELIVERY"] == Property("_AMQ_SCHED_DELIVERY", PropertyType.LONG, 7)
    assert found["_AMQ_INGRESS_TIMESTAMP"].value == 8
    assert found["_AMQ_ROUTING_TYPE"].value == 0
    assert found["JMS_AMQP_MA_x-opt-jms-dest"].value == 1
    assert found["JMS_AMQP_ENCODED_MA_list"].type is PropertyType.BYTES


def test_properties():
    found = core_content(
        properties(
            message_id=b"\x98" + UUID.bytes,
            user_id=binary(b"me"),
            to=string("orders"),
            subject=string("kind"),
            reply_to=string("answers"),
            correlation_id=b"\x80" + struct.pack(">Q", 5),
            content_encoding=symbol("gzip"),
            absolute_expiry_time=b"\x83" + struct.pack(">q", 99),
            creation_time=b"\x83" + struct.pack(">q", 42),
            group_id=string("g"),
            group_sequence=b"\x70\xff\xff\xff\xff",
            reply_to_group_id=string("r"),
        ),
        (Property("_AMQ_AD", PropertyType.STRING, "moved"), Property("x", PropertyType.INT, 1)),
    )

    assert (found.address, found.user_id) == ("moved", UUID.bytes)
    assert (found.expiration, found.timestamp) == (99, 42)
    values = {name: one.value for name, one in found.properties.items()}
    del values["JMS_AMQP_ORIGINAL_ENCODING"]
    assert values == {
        "NATIVE_MESSAGE_ID": f"ID:AMQP_UUID:{UUID}",
        "_AMQ_VALIDATED_USER": "me",
        "JMSType": "kind",
        "JMSReplyTo": "queue://answers",
        "JMSCorrelationID": "ID:AMQP_ULONG:5",
        "JMS_AMQP_ContentEncoding": "gzip",
        "_AMQ_GROUP_ID": "g",
        "_AMQ_GROUP_SEQUENCE": -1,
        "JMS_AMQP_ReplyToGroupID": "r",
        "x": 1,
    }


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("a", "ID:AMQP_NO_PREFIX:a"),
        ("ID:a", "ID:a"),
        ("ID:AMQP_UUID:a", "ID:AMQP_STRING:ID:AMQP_UUID:a"),
    ],
)
def test_message_ids_of_text(text, native):
    found = core_content(properties(message_id=string(text)), ())

    assert found.properties["NATIVE_MESSAGE_ID"].value == native
    assert found.user_id == core_content(properties(message_id=string(text)), ()).user_id


def test_the_time_to_live_of_older_records():
    header = section(0x70, [NULL, NULL, b"\x70\0\0\xff\xff"], code=0xD0)
    old = AmqpMessage.from_record(encode_record(AmqpMessageV1(5, 0, "a", header)))
    new = AmqpMessage.from_record(encode_record(AmqpMessageV3(5, 0, "a", header, None, 0)))

    assert old.expiration > 1_700_000_000_000
    assert new.expiration == 0


@pytest.mark.parametrize(
    "value",
    [
        *(AmqpValue(kind, 7) for kind in ("ubyte", "ushort", "uint", "ulong", "char")),
        *(AmqpValue(kind, -7) for kind in ("byte", "short", "int", "long", "timestamp")),
        AmqpValue("boolean", True),
        AmqpValue("null", None),
        AmqpValue("double", 0.5),
        AmqpValue("float", 0.5),
        AmqpValue("uuid", UUID),
        AmqpValue("decimal64", bytes(8)),
        AmqpValue("string", "ü"),
        AmqpValue("symbol", "s"),
        AmqpValue("binary", b"b" * 300),
        AmqpValue("list", (AmqpValue("int", 1), AmqpValue("null", None))),
        AmqpValue("map", ((AmqpValue("string", "k"), AmqpValue("list", ())),)),
        AmqpValue("array", (AmqpValue("int", 1), AmqpValue("int", -1))),
        AmqpValue("array", (AmqpValue("string", "a"), AmqpValue("string", "bc"))),
        AmqpValue("described", (AmqpValue("ulong", 9), AmqpValue("string", "x"))),
    ],
)
def test_values_are_encoded_as_they_are_read(value):
    assert read_value(BodyReader(encode_value(value))) == value


def test_a_body_of_another_kind_and_a_footer_are_no_part_of_it():
    footer = section(0x78, [symbol("k"), b"\x41"], code=0xD1)
    text = body(0x77, string("a"))

    assert read_body(MESSAGE + footer).encoded == body(0x77, string("hello"))
    assert read_body(text + body(0x75, binary(b"x"))).encoded == text
    with pytest.raises(RecordFormatError, match="data is not a binary"):
        read_body(body(0x75, string("a")))


def test_what_has_no_reader_or_is_no_amqp_is_unsupported():
    for record, reason in (
        (b"", "an empty record"),
        (b"\x04large", "of persister AMQP_LARGE"),
        (b"\x63other", "of persister 99"),
        (encode_record(AmqpMessageV1(5, 0, "a", b"\x00\x53\x70\x41")), "AMQP_V1: section header"),
    ):
        with pytest.raises(UnsupportedMessage, match=reason):
            message_of_record(record)


@pytest.mark.parametrize("seed", range(8))
def test_any_bytes_are_a_message_or_unsupported(seed):
    chance = random.Random(seed)
    whole = MESSAGE + body(0x76, compound(0xD0, [string("a"), b"\x98" + UUID.bytes]))
    for _ in range(500):
        data = bytearray(chance.choice((MESSAGE, whole)))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.randrange(len(data), len(data) + 20) :]
        with contextlib.suppress(UnsupportedMessage):
            found = message_of_record(
                encode_record(AmqpMessageV3(5, 0, None, bytes(data), None, 0))
            )
            assert found.encoded == bytes(data)
            assert message_of_record(found.record()).encode() == found.encode()
