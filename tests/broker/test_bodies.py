import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import bodies
from broker.model.encoding import RecordFormatError
from broker.model.properties import Property, PropertyType

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
)


@given(st.none() | st.text())
def test_text_comes_back(text):
    assert bodies.decode_text(bodies.encode_text(text)) == text


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5))
def test_maps_come_back(values):
    assert bodies.decode_map(bodies.encode_map(values)) == values


@given(st.lists(VALUES, max_size=8))
def test_streams_come_back(values):
    assert bodies.decode_stream(bodies.encode_stream(values)) == values


def test_no_body_is_nothing():
    assert (bodies.decode_text(b""), bodies.decode_map(b""), bodies.decode_stream(b"")) == (
        None,
        {},
        [],
    )


def test_a_text_is_as_artemis_writes_it():
    assert bodies.encode_text("hi").hex() == "0100000004" + "68006900"


def test_a_property_brings_its_own_type():
    item = Property("", PropertyType.SHORT, 5)

    assert bodies.property_of("name", item) == Property("name", PropertyType.SHORT, 5)


def test_other_classes_are_refused():
    with pytest.raises(TypeError, match="list"):
        bodies.type_of([])


@given(st.binary(max_size=40))
def test_any_bytes_are_a_body_or_one_error(data):
    for decode in (bodies.decode_text, bodies.decode_map, bodies.decode_stream):
        try:
            decode(data)
        except RecordFormatError:
            continue
