"""AMQP's types and JMS's messages, as qpid-interop-test has them: ours beside Artemis.

Each value goes through a queue by Proton's client. What comes back has the same type and value.
"""

import itertools
import math
import struct
import uuid

import pytest
from proton import (
    UNDESCRIBED,
    Array,
    Data,
    Described,
    Message,
    byte,
    char,
    decimal32,
    decimal64,
    decimal128,
    float32,
    int32,
    short,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
    ushort,
)
from proton.utils import BlockingConnection

from tests.broker.protocols.amqp.client import Capability

pytestmark = pytest.mark.slow

WAIT_S = 60
MIB = 1024 * 1024


def signed(kind, bits):
    """Of a signed type: what its shorter encodings end at, and its own ends."""
    ends = {0, 1, -1, 127, -127, 128, -128, 129, -129, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))}
    return [kind(one) for one in sorted(ends) if -(2 ** (bits - 1)) <= one < 2 ** (bits - 1)]


def unsigned(kind, bits):
    ends = {0, 1, 127, 128, 254, 255, 256, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1}
    return [kind(one) for one in sorted(ends) if one < 2**bits]


def floats(kind, least, greatest):
    whole = [0.0, -0.0, 1.0, -1.0, 0.5, 3.140625, math.inf, -math.inf, math.nan]
    return [kind(one) for one in (*whole, least, -least, greatest, -greatest)]


PRIMITIVES = {
    "null": [None],
    "boolean": [True, False],
    "ubyte": unsigned(ubyte, 8),
    "ushort": unsigned(ushort, 16),
    "uint": unsigned(uint, 32),
    "ulong": unsigned(ulong, 64),
    "byte": signed(byte, 8),
    "short": signed(short, 16),
    "int": signed(int32, 32),
    "long": signed(int, 64),
    "float": floats(float32, 2.0**-149, (2 - 2.0**-23) * 2.0**127),
    "double": floats(float, 2.0**-1074, (2 - 2.0**-52) * 2.0**1023),
    "decimal32": [decimal32(one) for one in (0, 1, 0x22500000, 2**31, 2**32 - 1)],
    "decimal64": [decimal64(one) for one in (0, 1, 0x2230000000000000, 2**63, 2**64 - 1)],
    "decimal128": [
        decimal128(one) for one in (bytes(16), bytes(range(16)), b"\x22\x08" + bytes(14))
    ],
    "char": [char(one) for one in ("\0", "a", "\x7f", "\x80", "ÿ", "€", "\ud7ff", "\U0010ffff")],
    "timestamp": [timestamp(one) for one in (0, 1, -1, 1700000000123, 2**62, -(2**63))],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID(bytes=bytes(range(16)))],
    "binary": [b"", b"\0", bytes(range(256)), b"x" * 255, b"x" * 256, b"\xff" * 65_536],
    "string": ["", "a", "grüße €", "\N{GRINNING FACE}", "\0", "x" * 255, "x" * 256, "é" * 40_000],
    "symbol": [symbol(one) for one in ("", "a", "x" * 255, "x" * 256, "myDomain.123")],
}
# Proton's names of the types that an array may have.
NAMES = {
    "boolean": Data.BOOL,
    **{
        name: getattr(Data, name.upper())
        for name in (
            *("ubyte", "ushort", "uint", "ulong", "byte", "short", "int", "long", "float"),
            *("double", "decimal32", "decimal64", "decimal128", "char", "timestamp", "uuid"),
            *("binary", "string", "symbol"),
        )
    },
}
TYPED = [name for name in PRIMITIVES if name in NAMES]
COMPLEX = {
    "arrays": [Array(UNDESCRIBED, NAMES[name], *PRIMITIVES[name]) for name in TYPED],
    "empty arrays": [Array(UNDESCRIBED, NAMES[name]) for name in TYPED],
    "described arrays": [Array(symbol("of"), Data.INT, int32(1), int32(2))],
    "lists": [[], [None], *PRIMITIVES.values(), [1] * 300],
    "nested lists": [[[]], [[], [[], [[]]]], [1, ["two", [3.0, [b"four", [None]]]]]],
    "maps": [{}, *({name: values[-1]} for name, values in PRIMITIVES.items())],
    "maps by keys": [
        {values[-1]: "value"}
        for name, values in PRIMITIVES.items()
        if name not in ("null", "float", "double", "binary")
    ],
    "nested maps": [{"a": {}}, {"a": {"b": {"c": [1, {"d": None}]}}}, {"l": [{}, [{}]]}],
    "described": [Described(symbol("of"), "text"), Described(ulong(77), [1, {"a": 2}])],
    "lists of arrays": [[Array(UNDESCRIBED, Data.INT, int32(1)), {"a": [1]}]],
}
LARGE = {
    "binary": lambda size: b"x" * size,
    "string": lambda size: "y" * size,
    "symbol": lambda size: symbol("z" * size),
    "list": lambda size: ["e" * (size // 16)] * 16,
    "map": lambda size: {f"k{one}": "e" * (size // 16) for one in range(16)},
}
KIND = symbol("x-opt-jms-msg-type")
JMS = {
    "boolean": [True, False],
    "byte": signed(byte, 8),
    "bytes": [b"", b"12345", bytes(range(256))],
    "char": [char("a"), char("\0"), char("€")],
    "double": PRIMITIVES["double"],
    "float": PRIMITIVES["float"],
    "int": signed(int32, 32),
    "long": signed(int, 64),
    "short": signed(short, 16),
    "string": ["", "Hello, world", '"Hello, world"', 'Charlie\'s "peach"', "grüße €"],
}
# What a writer of JMS's BytesMessage makes of each.
WRITTEN = {"boolean": "?", "byte": "b", "double": "d", "float": "f", "int": "i", "long": "q"}
WRITTEN |= {"short": "h"}
# As Java writes a text.
OBJECT = bytes.fromhex("aced0005740001") + b"x"


def jms(kind, **fields):
    """A message of JMS's kind, as Qpid JMS makes it."""
    return Message(annotations={KIND: byte(kind)}, **fields)


def jms_messages():
    """By their kind."""
    in_bytes = [
        struct.pack(f">{WRITTEN[name]}", one)
        for name, values in JMS.items()
        if name in WRITTEN
        for one in values
    ]
    return {
        "message": [jms(0)],
        "object": [
            jms(1, body=OBJECT, content_type=symbol("application/x-java-serialized-object"))
        ],
        "map": [
            jms(2, body={f"{name}{number}": one for number, one in enumerate(values)})
            for name, values in JMS.items()
        ],
        "bytes": [jms(3, body=one, inferred=True) for one in (*in_bytes, *JMS["bytes"])],
        "stream": [jms(4, body=values, inferred=True) for values in JMS.values()],
        "text": [jms(5, body=one) for one in JMS["string"]],
    }


def with_headers():
    """Texts with one header, or one property, each."""
    reply, destination = symbol("x-opt-jms-reply-to"), symbol("x-opt-jms-dest")
    fields = {
        "correlation id": [
            {"correlation_id": one}
            for one in ("Hello", "ID:1", ulong(7), uuid.UUID(int=7), b"\0\1\xff")
        ],
        "message id": [{"id": one} for one in ("ID:1", "x", ulong(7), uuid.UUID(int=7), b"\1\2")],
        "type": [{"subject": one} for one in ("Hello", "", "grüße €")],
        "priority": [{"priority": one} for one in range(9, -1, -1)],
        "durable": [{"durable": one} for one in (True, False)],
        "time to live": [{"ttl": 3600.0}, {"ttl": 3600.0, "expiry_time": 4_000_000_000.0}],
        "creation time": [{"creation_time": one} for one in (0.0, 1_700_000_000.0)],
        "user id": [{"user_id": one} for one in (b"", b"admin", b"other")],
        "content": [
            {"content_type": symbol("text/plain"), "content_encoding": symbol("gzip")},
        ],
        "group": [
            {"group_id": "g", "group_sequence": 3, "reply_to_group_id": "other"},
            {"group_id": "g"},
        ],
        "first acquirer": [{"first_acquirer": True}],
        "property": [
            {"properties": {f"{name}{number}": one for number, one in enumerate(values)}}
            for name, values in PRIMITIVES.items()
        ],
        "annotation": [
            {"annotations": {symbol(f"x-opt-{name}"): values[-1]}}
            for name, values in PRIMITIVES.items()
        ],
        "instruction": [{"instructions": {symbol("x-opt-of"): "this hop"}}],
    }
    made = {name: [Message(body="text", **one) for one in each] for name, each in fields.items()}
    made["reply to"] = [
        jms(5, body="text", reply_to="answers"),
        *(
            Message(body="text", reply_to="answers", annotations={KIND: byte(5), reply: byte(one)})
            for one in range(4)
        ),
    ]
    made["destination"] = [
        Message(body="text", address="q", annotations={KIND: byte(5), destination: byte(one)})
        for one in range(4)
    ]
    return made


def described(value):
    """A value with the types of all that is in it."""
    kind = type(value).__name__
    match value:
        case Array():
            inner = [described(one) for one in value.elements]
            return kind, value.descriptor, value.type, inner
        case Described():
            return kind, described(value.descriptor), described(value.value)
        case dict():
            # Proton keeps the properties of a message in a dictionary of its own.
            return "dict", [(described(key), described(one)) for key, one in value.items()]
        case list():
            return kind, [described(one) for one in value]
        case memoryview() | bytes():
            return "bytes", bytes(value)
    return kind, repr(value)


SECTIONS = (
    *("durable", "priority", "ttl", "first_acquirer", "delivery_count", "id", "user_id"),
    *("address", "subject", "reply_to", "correlation_id", "content_type", "content_encoding"),
    *("expiry_time", "creation_time", "group_id", "group_sequence", "reply_to_group_id"),
    *("properties", "annotations", "inferred", "body"),
)


def sections(message):
    """All that a receiver may read of a message, but for what is meant for one hop."""
    return {name: described(getattr(message, name)) for name in SECTIONS}


QUEUES = itertools.count()


def changed(broker, messages):
    """Numbers of the messages that come in another way than they were sent, and how."""
    queue = f"types.{next(QUEUES)}"
    connection = BlockingConnection(
        f"amqp://127.0.0.1:{broker.port}",
        timeout=WAIT_S,
        user=broker.USER,
        password=broker.PASSWORD,
        allowed_mechs="PLAIN",
    )
    found = {}
    try:
        node = Capability("queue")
        sender = connection.create_sender(queue, options=node)
        for message in messages:
            sender.send(message)
        receiver = connection.create_receiver(queue, len(messages), options=node)
        for number in range(len(messages)):
            got = receiver.receive(WAIT_S)
            receiver.accept()
            sent = sections(messages[number])
            differing = {
                name: (sent[name], one) for name, one in sections(got).items() if one != sent[name]
            }
            if differing:
                found[number] = differing
    finally:
        connection.close()
    return found


def assert_all_come_as_sent(brokers, messages):
    assert [changed(one, messages) for one in brokers] == [{}, {}]


@pytest.fixture
def brokers(distributed_broker, our_broker):
    return distributed_broker, our_broker


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_type(brokers, name):
    assert_all_come_as_sent(brokers, [Message(body=one) for one in PRIMITIVES[name]])


@pytest.mark.parametrize("name", COMPLEX)
def test_what_has_values_in_it(brokers, name):
    assert_all_come_as_sent(brokers, [Message(body=one) for one in COMPLEX[name]])


@pytest.mark.parametrize("name", LARGE)
def test_a_large_value(brokers, name):
    values = [LARGE[name](size) for size in (MIB, 8 * MIB)]
    assert_all_come_as_sent(brokers, [Message(body=one, durable=True) for one in values])


@pytest.mark.parametrize("kind", jms_messages())
def test_a_message_of_jms(brokers, kind):
    assert_all_come_as_sent(brokers, jms_messages()[kind])


@pytest.mark.parametrize("header", with_headers())
def test_a_header(brokers, header):
    assert_all_come_as_sent(brokers, with_headers()[header])
