import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.encoding import BodyReader, BodyWriter, RecordFormatError
from broker.model.properties import (
    TYPED_PROPERTIES,
    Property,
    PropertyType,
    last_values,
    read_value,
)

VALUES = st.one_of(
    st.just((PropertyType.NULL, None)),
    st.tuples(st.just(PropertyType.BOOLEAN), st.booleans()),
    st.tuples(st.just(PropertyType.BYTE), st.integers(-128, 127)),
    st.tuples(st.just(PropertyType.BYTES), st.binary()),
    st.tuples(st.just(PropertyType.SHORT), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just(PropertyType.INT), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(PropertyType.LONG), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(PropertyType.FLOAT), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just(PropertyType.DOUBLE), st.floats(allow_nan=False)),
    st.tuples(st.just(PropertyType.STRING), st.text()),
    st.tuples(st.just(PropertyType.CHAR), st.characters(max_codepoint=0xFFFF)),
)


def encode(properties):
    writer = BodyWriter()
    TYPED_PROPERTIES.write(writer, properties)
    return writer.getvalue()


@given(st.lists(st.builds(lambda name, value: Property(name, *value), st.text(), VALUES)))
def test_any_properties_come_back_in_their_order(items):
    properties = tuple(items)

    assert TYPED_PROPERTIES.read(BodyReader(encode(properties))) == properties


def test_a_boolean_property_is_one_and_not_255():
    data = bytes.fromhex("01 00000001 00000002 6200 02 01")
    properties = (Property("b", PropertyType.BOOLEAN, True),)

    assert TYPED_PROPERTIES.read(BodyReader(data)) == properties
    assert encode(properties) == data


def test_no_properties_are_one_byte():
    assert encode(()) == b"\0"
    assert TYPED_PROPERTIES.read(BodyReader(b"\0")) == ()


def test_an_unknown_tag_is_refused():
    data = bytes.fromhex("01 00000001 00000002 6200 01 01")

    with pytest.raises(RecordFormatError, match="'b' has the unknown tag 1"):
        TYPED_PROPERTIES.read(BodyReader(data))


def test_a_huge_count_is_refused_at_once():
    with pytest.raises(RecordFormatError, match="count 2147483647 does not fit"):
        TYPED_PROPERTIES.read(BodyReader(bytes.fromhex("01 7fffffff") + bytes(1000)))


def test_of_two_with_the_same_name_the_later_counts():
    first, other, last = (Property(name, PropertyType.INT, n) for n, name in enumerate("aba"))

    assert list(last_values((first, other, last)).values()) == [last, other]


@given(VALUES, st.binary(max_size=10))
def test_one_value_is_read_between_others(pair, behind):
    data = encode((Property("", *pair),))
    # Behind the flag, the count and an empty name.
    assert read_value(b"ahead" + data[9:] + behind, 5) == pair[1]


@pytest.mark.parametrize("size", ["00000004", "7fffffff", "ffffffff"])
def test_bytes_that_are_not_all_there_are_no_value(size):
    with pytest.raises(RecordFormatError):
        read_value(bytes.fromhex("04" + size) + b"abc", 0)
