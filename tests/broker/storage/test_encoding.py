"""Primitive encodings: the bytes of the format, round trips, and what is refused."""

import math
import struct
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import encoding
from broker.model.encoding import BodyReader, BodyWriter, RecordFormatError

# Half surrogates included: Java strings hold them.
TEXT = st.text(st.characters(categories=("L", "N", "P", "S", "Z", "C")))
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)


def encode(codec, value):
    writer = BodyWriter()
    codec.write(writer, value)
    return writer.getvalue()


def decode(codec, data):
    reader = BodyReader(data)
    value = codec.read(reader)
    assert reader.remaining == 0
    return value


def unpaired(text):
    """The text with its surrogates paired, as every reader gives it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@pytest.mark.parametrize(
    ("codec", "value", "data"),
    [
        (encoding.BOOLEAN, True, "ff"),
        (encoding.BOOLEAN, False, "00"),
        (encoding.BIT, True, "01"),
        (encoding.BIT, False, "00"),
        (encoding.SS, "ab", "00000004 6100 6200"),
        (encoding.NSS, None, "00"),
        (encoding.NSS, "hi", "01 00000004 6800 6900"),
        (encoding.STR, "abc", "00000003 0061 0062 0063"),
        (encoding.STR, "abcdefghijé", "0000000b 000c 6162636465666768696a c3a9"),
        (encoding.STR, "123456789\0", "0000000a 000a 31323334353637383900"),
        (encoding.STR, "12345678😀", "0000000a 000e 3132333435363738 eda0bd edb880"),
        (encoding.NSTR, "x", "01 00000001 0078"),
        (encoding.NI, 5, "01 00000005"),
        (encoding.NB, True, "01 ff"),
        (encoding.NL, None, "00"),
        (encoding.ND, 1.5, "ff 3ff8000000000000"),
        (encoding.ND, None, "00"),
        (encoding.CHAR, "ü", "00fc"),
        (encoding.FLOAT, math.nan, "7fc00000"),
        (encoding.DOUBLE, math.nan, "7ff8000000000000"),
    ],
)
def test_bytes_are_those_of_the_format(codec, value, data):
    data = bytes.fromhex(data)

    assert encode(codec, value) == data
    assert repr(decode(codec, data)) == repr(value)


def test_longest_form_of_a_string_begins_with_two_lengths():
    data = encode(encoding.STR, "x" * 4095)

    assert len(data) == 8198
    assert data.startswith(bytes.fromhex("00000fff 00001ffe"))
    assert decode(encoding.STR, data) == "x" * 4095


@pytest.mark.parametrize("length", [0, 1, 8, 9, 4094, 4095, 4096])
@pytest.mark.parametrize("char", ["a", "é", "中", "\ud83d"])
def test_strings_around_the_limits_of_their_forms_come_back(length, char):
    text = char * length

    assert decode(encoding.STR, encode(encoding.STR, text)) == text


@given(st.one_of(TEXT, st.text(st.characters(codec="utf-8"), min_size=9)))
def test_any_string_comes_back(text):
    for codec in (encoding.STR, encoding.SS, encoding.NSTR, encoding.NSS):
        assert decode(codec, encode(codec, text)) == unpaired(text)


@given(INTS, LONGS, st.booleans(), st.floats(allow_nan=False), st.floats(width=32))
def test_any_number_comes_back(number, long, flag, double, single):
    assert decode(encoding.NI, encode(encoding.NI, number)) == number
    assert decode(encoding.NL, encode(encoding.NL, long)) == long
    assert decode(encoding.NB, encode(encoding.NB, flag)) == flag
    assert decode(encoding.ND, encode(encoding.ND, double)) == double
    again = decode(encoding.FLOAT, encode(encoding.FLOAT, single))
    assert again == single or math.isnan(again) is math.isnan(single) is True


@given(st.lists(TEXT), st.binary())
def test_any_list_and_any_bytes_come_back(texts, data):
    codec = encoding.counted(encoding.SS, item_size_min=4)

    assert decode(codec, encode(codec, tuple(texts))) == tuple(map(unpaired, texts))
    assert decode(encoding.BYTES, encode(encoding.BYTES, data)) == data


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(data):
    codecs = [item for item in vars(encoding).values() if isinstance(item, encoding.Codec)]
    assert len(codecs) >= 20
    for codec in codecs:
        reader = BodyReader(data)
        try:
            value = codec.read(reader)
        except RecordFormatError:
            continue
        encode(codec, value)


@pytest.mark.parametrize(
    ("codec", "data", "reason"),
    [
        (encoding.INT, "000000", "4 bytes wanted, 3 left at byte 0 of 3"),
        (encoding.SS, "7fffffff 00", "2147483647 bytes wanted, 1 left at byte 4 of 5"),
        (encoding.SS, "ffffffff", "-1 bytes wanted"),
        (encoding.SS, "00000001 61", "ends inside a character"),
        (encoding.STR, "ffffffff", "string of -1 characters"),
        (encoding.STR, "00000009 0002 6162", "string of 9 characters holds 2"),
        (encoding.STR, "00000009 0002 c3", "2 bytes wanted, 1 left"),
        (encoding.STR, "00000009 0002 c341", "not UTF-8"),
        (encoding.STR, "00000009 0004 f09f9880", "four-byte character"),
        (encoding.STR, "00001000 00000002 6100", "string of 4096 characters holds 1"),
    ],
)
def test_damaged_values_are_refused(codec, data, reason):
    with pytest.raises(RecordFormatError, match=reason):
        decode(codec, bytes.fromhex(data))


def test_a_count_beyond_the_bytes_is_refused_before_the_loop():
    codec = encoding.counted(encoding.STR, item_size_min=4)

    for count in (2**31 - 1, -1, 2):
        with pytest.raises(RecordFormatError, match=f"count {count} does not fit"):
            decode(codec, struct.pack(">i", count) + bytes(7))


def test_values_that_do_not_fit_are_refused():
    for codec, value in [
        (encoding.BYTE, 128),
        (encoding.INT, 2**31),
        (encoding.LONG, -(2**63) - 1),
        (encoding.FLOAT, 1e300),
        (encoding.CHAR, "😀"),
    ]:
        with pytest.raises(RecordFormatError):
            encode(codec, value)


def test_an_unknown_number_of_an_enumeration_is_refused():
    class Colour(IntEnum):
        RED = 1

    codec = encoding.enumerated(Colour, encoding.SHORT)

    assert decode(codec, b"\0\1") is Colour.RED
    with pytest.raises(RecordFormatError, match="2 is not a valid Colour"):
        decode(codec, b"\0\2")


def test_any_byte_but_zero_reads_as_true():
    for byte in range(256):
        assert decode(encoding.BOOLEAN, bytes([byte])) is (byte != 0)
