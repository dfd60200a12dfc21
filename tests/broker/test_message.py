import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.encoding import BodyReader, BodyWriter, RecordFormatError
from broker.model.message import Message
from broker.model.properties import TYPED_PROPERTIES, Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.model.wire import RecordType
from broker.records.stored_messages import CoreMessage, LargeCoreMessage, read_message
from tests.broker.storage.scenarios import SCENARIOS, Scenario

# Made by Artemis's encoder; docs/format/records.md shows it field by field.
TEXT_HI = bytes.fromhex(
    "00000016 01 00000004 6800 6900 000000000000004d 01 00000004 6100 6200 00 03 01"
    "00000000000007d0 00000000000003e8 04 01 00000001 00000002 6b00 0a 00000002 7600"
)

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
VALUES = st.one_of(
    st.tuples(st.just(PropertyType.NULL), st.none()),
    st.tuples(st.just(PropertyType.BOOLEAN), st.booleans()),
    st.tuples(st.just(PropertyType.BYTE), st.integers(-128, 127)),
    st.tuples(st.just(PropertyType.BYTES), st.binary(max_size=40)),
    st.tuples(st.just(PropertyType.SHORT), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just(PropertyType.INT), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(PropertyType.LONG), LONGS),
    st.tuples(st.just(PropertyType.FLOAT), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just(PropertyType.DOUBLE), st.floats(allow_nan=False)),
    st.tuples(st.just(PropertyType.STRING), TEXTS),
    st.tuples(st.just(PropertyType.CHAR), st.characters(max_codepoint=0xFFFF)),
)
PROPERTIES = st.lists(
    st.builds(lambda name, pair: Property(name, *pair), TEXTS, VALUES),
    max_size=5,
    unique_by=lambda item: item.name,
)
MESSAGES = st.builds(
    Message,
    st.none() | TEXTS,
    st.binary(max_size=60),
    type=st.integers(-128, 127),
    durable=st.booleans(),
    priority=st.integers(-128, 127),
    expiration=LONGS,
    timestamp=LONGS,
    user_id=st.none() | st.binary(min_size=16, max_size=16),
    message_id=LONGS,
    properties=PROPERTIES,
)


def content(message):
    return (
        *(message.message_id, message.address, message.type, message.durable, message.priority),
        *(message.expiration, message.timestamp, message.user_id, bytes(message.body)),
        dict(message.properties),
    )


def stored_by_artemis():
    for name in SCENARIOS:
        for record in Scenario(name).records("messages"):
            if record.user_type == RecordType.ADD_MESSAGE_PROTOCOL and record.body[0] == 1:
                yield record.body


def test_a_message_of_artemis_is_read():
    message = Message.decode(TEXT_HI)

    assert content(message) == (
        *(77, "ab", 3, True, 4, 2000, 1000, None, bytes.fromhex("01 00000004 68006900")),
        {"k": Property("k", PropertyType.STRING, "v")},
    )


def test_messages_of_the_golden_folders_are_given_back_byte_for_byte():
    bodies = list(stored_by_artemis())

    for body in bodies:
        message = Message.from_record(body)
        assert message.record() == body
        for name in message.properties:
            message.set(name, *message.properties[name][1:])
        assert message.record() == body
    assert len(bodies) > 20


def test_a_stored_message_is_read_as_the_storage_reads_it():
    for body in stored_by_artemis():
        message, stored = Message.from_record(body), read_message(BodyReader(body))
        assert isinstance(stored, CoreMessage)
        headers = stored.current_headers
        assert content(message) == (
            *(headers.message_id, headers.address, headers.type, headers.durable),
            *(headers.priority, headers.expiration, headers.timestamp, headers.user_id),
            *(stored.body, {item.name: item for item in headers.properties}),
        )


def test_headers_of_large_messages_are_given_back_byte_for_byte():
    count = 0
    for name in SCENARIOS:
        for record in Scenario(name).records("messages"):
            if record.user_type == RecordType.ADD_LARGE_MESSAGE:
                message = Message.decode_headers(record.body)
                stored = LargeCoreMessage.read(BodyReader(record.body))
                assert message.encode_headers() == record.body
                assert message.is_large
                assert message.properties == {p.name: p for p in stored.headers.properties}
                count += 1
    assert count > 0


@given(MESSAGES)
def test_what_is_encoded_is_decoded(message):
    again = Message.decode(memoryview(message.encode()))

    assert content(again) == content(message)
    assert again.encode() == message.encode()
    assert content(Message.from_record(message.record())) == content(message)
    headers = Message.decode_headers(message.encode_headers())
    assert content(headers)[:-2] == content(message)[:-2]


@given(MESSAGES, MESSAGES)
def test_every_field_can_be_changed_after_decoding(message, other):
    changed = Message.decode(message.encode())

    for name in ("message_id", "address", "type", "durable", "priority"):
        setattr(changed, name, getattr(other, name))
    for name in ("expiration", "timestamp", "user_id"):
        setattr(changed, name, getattr(other, name))
    changed.body = bytes(other.body)
    for name in list(changed.properties):
        changed.remove(name)
    for item in other.properties.values():
        changed.set(*item)

    assert changed.encode() == other.encode()


@given(MESSAGES, LONGS, TEXTS)
def test_a_new_id_and_address_leave_the_rest_as_it_was(message, message_id, address):
    before = Message.decode(message.encode())

    before.message_id = message_id
    before.address = address
    after = Message.decode(before.encode())

    assert content(after)[2:] == content(message)[2:]
    assert (after.message_id, after.address) == (message_id, address)


def test_an_unchanged_message_is_encoded_once():
    message = Message("a", b"body")

    assert message.encode() is message.encode()


def test_a_property_that_is_nowhere_in_the_bytes_is_not_looked_for():
    message = Message.decode(TEXT_HI)

    assert message.get("_AMQ_DUPL_ID") is None
    message.remove("_AMQ_DUPL_ID")
    assert message._parts is None
    assert message.get("k") == "v"


@given(MESSAGES, st.lists(TEXTS, max_size=3), st.integers(0, 4))
def test_a_property_alone_is_what_it_is_among_all(message, others, doubled):
    """Also where a sender has given a name twice, and where a value holds another one's name."""
    items = list(message.properties.values())
    items += [item._replace(type=PropertyType.LONG, value=7) for item in items[:doubled]]
    items += [
        Property(name + "_", PropertyType.BYTES, name.encode("utf-16-le", "surrogatepass"))
        for name in others
    ]
    writer = BodyWriter()
    TYPED_PROPERTIES.write(writer, tuple(items))
    without = Message(message.address, bytes(message.body)).encode()
    data = without[:-1] + writer.getvalue()
    every = Message.decode(data)
    wanted = {name: item.value for name, item in every.properties.items()}

    for name in [*wanted, *others]:
        assert Message.decode(data).get(name) == wanted.get(name)


def of_bytes(items):
    """A message whose bytes have these properties, names twice too."""
    writer = BodyWriter()
    TYPED_PROPERTIES.write(writer, tuple(items))
    return Message.decode(Message("q", b"body").encode()[:-1] + writer.getvalue())


ITEMS = st.lists(
    st.builds(Property, st.sampled_from("abc"), st.just(PropertyType.LONG), st.integers(0, 9)),
    max_size=5,
)


@given(ITEMS, st.sampled_from("abcd"), st.sampled_from("abcd"), st.booleans())
def test_a_property_set_or_removed_among_bytes_is_as_among_decoded_ones(items, one, two, moves):
    changed, decoded = of_bytes(items), of_bytes(items)
    dict(decoded.properties)
    for message in (changed, decoded):
        if moves:
            message.address = "elsewhere"
        message.remove(one)
        message.message_id = 77
        message.set_bytes(two, b"12")
    copy = changed.copy()
    for message in (changed, decoded):
        message.remove(two)
    written = [Message.decode(message.encode()) for message in (changed, decoded, copy)]

    left = [dict(message.properties) for message in written]
    assert left[0] == left[1] == dict(changed.properties)
    assert left[2] == left[0] | {two: Property(two, PropertyType.BYTES, b"12")}
    assert {(one.message_id, one.address, bytes(one.body)) for one in written} == {
        (77, "elsewhere" if moves else "q", b"body")
    }


def test_a_copy_is_independent():
    message = Message.decode(TEXT_HI)

    copy = message.copy()
    copy.set("k", PropertyType.INT, 5)
    copy.address = "elsewhere"
    copy.message_id = 5

    assert message.encode() == TEXT_HI
    assert Message.decode(copy.encode()).get("k") == 5


def test_the_body_seen_stays_when_the_message_changes():
    message = Message.decode(TEXT_HI)

    seen = message.body
    message.body = b"other"
    message.encode()

    assert bytes(seen) == TEXT_HI[4:13]
    assert bytes(message.body) == b"other"


@pytest.mark.parametrize("kind", list(RoutingType)[:2])
def test_the_routing_type_is_a_property(kind):
    message = Message("a")

    message.routing_type = kind

    assert Message.decode(message.encode()).routing_type is kind
    message.routing_type = None
    assert message.routing_type is None


@given(ITEMS, st.sampled_from(list(RoutingType)[:2]), st.booleans())
def test_a_routing_type_set_among_bytes_is_as_among_decoded_properties(items, kind, is_grouped):
    if is_grouped:
        items = [*items, Property("_AMQ_GROUP_ID", PropertyType.STRING, "g")]
    changed, decoded = of_bytes(items), of_bytes(items)
    dict(decoded.properties)

    for message in (changed, decoded):
        message.address = "elsewhere"
        message.routing_type = kind

    assert changed.routing_type is kind
    assert changed.group_id == decoded.group_id == ("g" if is_grouped else None)
    left = [Message.decode(message.encode()) for message in (changed, decoded)]
    assert dict(left[0].properties) == dict(left[1].properties) == dict(decoded.properties)
    assert {one.address for one in left} == {"elsewhere"}
    assert {one.routing_type for one in left} == {kind}


@pytest.mark.parametrize("value", [-1, 2, 100])
def test_a_routing_type_that_there_is_not_is_none(value):
    message = Message("a")

    message.set("_AMQ_ROUTING_TYPE", PropertyType.BYTE, value)

    assert message.routing_type is None


def test_every_beginning_of_a_message_is_refused():
    for size in range(len(TEXT_HI)):
        with pytest.raises(RecordFormatError):
            Message.decode(TEXT_HI[:size])


def test_bytes_behind_the_properties_are_refused():
    with pytest.raises(RecordFormatError, match="behind"):
        Message.decode(TEXT_HI + b"\x00")


@given(st.integers(0, len(TEXT_HI) - 4), st.integers(-(2**31), 2**31 - 1))
def test_a_length_that_cannot_be_is_refused_or_read(at, length):
    damaged = bytearray(TEXT_HI)
    struct.pack_into(">i", damaged, at, length)

    try:
        message = Message.decode(damaged)
    except RecordFormatError:
        return
    assert message.properties is not None


@given(st.binary(max_size=120))
def test_anything_else_is_refused_with_one_error(data):
    try:
        message = Message.decode(data)
    except RecordFormatError:
        return
    assert message.properties is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [("type", 128), ("priority", -129), ("expiration", 2**63), ("timestamp", -(2**63) - 1)],
)
def test_a_header_that_does_not_fit_is_refused(name, value):
    with pytest.raises(RecordFormatError, match="header"):
        Message("a", **{name: value})
    with pytest.raises(RecordFormatError, match="header"):
        setattr(Message("a"), name, value)


def test_a_user_id_of_another_length_is_refused():
    with pytest.raises(RecordFormatError, match="16 bytes"):
        Message("a", user_id=b"short")
