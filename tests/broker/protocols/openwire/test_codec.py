"""Frames: byte for byte those of Classic's client; cut and mutated ones do no harm."""

import random
import struct
from pathlib import Path

import pytest

from broker.model.encoding import RecordFormatError
from broker.protocols.openwire.commands import Response
from broker.protocols.openwire.data_types import LAST_VERSION
from broker.protocols.openwire.decoding import LooseReader, TightReader
from broker.protocols.openwire.encoding import LooseWriter, TightWriter
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.framing import FrameReader
from broker.protocols.openwire.primitives import read_map
from broker.protocols.openwire.wire_format import (
    Agreement,
    WireFormatInfo,
    own_wire_format,
)

# By activemq-client 5.18 (tests/interop/openwire/java/Golden.java).
GOLDEN = [line.split() for line in (Path(__file__).parent / "golden.txt").read_text().splitlines()]
CODECS = {"loose": (LooseReader, LooseWriter), "tight": (TightReader, TightWriter)}
SIZE = 4
MUTATIONS = 20


def decoded(data, version, encoding):
    return CODECS[encoding][0](data, version, has_stack_traces=False).command()


@pytest.mark.parametrize("encoding", CODECS)
def test_golden_bytes_are_read_and_written(encoding):
    lines = [line for line in GOLDEN if line[1] == encoding]
    assert len(lines) > 300

    for version, _, name, text in lines:
        data = bytes.fromhex(text)
        command = decoded(data[SIZE:], int(version), encoding)
        writer = CODECS[encoding][1](int(version), has_stack_traces=False)
        assert writer.frame(command) == data, (version, name)


@pytest.mark.parametrize("has_size", [False, True])
@pytest.mark.parametrize("is_tight", [False, True])
@pytest.mark.parametrize("version", range(1, LAST_VERSION + 1))
def test_a_response_has_the_bytes_of_any_command(version, is_tight, has_size):
    ours = own_wire_format(max_inactivity_ms=0, initial_delay_ms=0, max_frame_size=2**30)
    properties = {"TightEncodingEnabled": is_tight, "SizePrefixDisabled": not has_size}
    ours = ours._replace(properties=ours.properties | properties)
    agreed = Agreement(ours, ours._replace(version=version))

    for number in (0, 1, 65536, 2**31 - 1, -1):
        whole = agreed.write(Response(correlation_id=number), has_size=has_size)
        assert agreed.response(number) == whole


def test_frames_are_found_however_they_are_cut():
    frames = [bytes.fromhex(text) for version, _, _, text in GOLDEN if version == "12"]
    whole, bytewise = FrameReader(2**20), FrameReader(2**20)
    whole.feed(b"".join(frames))
    found = []
    for byte in b"".join(frames):
        bytewise.feed(bytes([byte]))
        frame = bytewise.next()
        if frame is not None:
            found.append(frame)

    assert found == [frame[SIZE:] for frame in frames]
    assert [whole.next() for _ in frames] == found
    assert whole.next() is None
    assert not whole.has_partial


@pytest.mark.parametrize("size", [0, -1, -(2**31), 2**31 - 1, 101])
def test_a_frame_of_no_valid_size_is_refused(size):
    reader = FrameReader(100)
    reader.feed(struct.pack(">i", size))

    with pytest.raises(OpenWireError, match="Frame size"):
        reader.next()


@pytest.mark.parametrize("encoding", CODECS)
def test_cut_frames_are_refused(encoding):
    for version, one, _, text in GOLDEN:
        if one == encoding and version in ("1", "12"):
            data = bytes.fromhex(text)[SIZE:]
            for end in range(1, len(data)):
                with pytest.raises(OpenWireError):
                    decoded(data[:end], int(version), encoding)


@pytest.mark.parametrize("encoding", CODECS)
def test_mutated_frames_are_read_or_refused(encoding):
    chance = random.Random(1)
    for version, one, _, text in GOLDEN:
        if one != encoding or version not in ("1", "12"):
            continue
        for _ in range(MUTATIONS):
            data = bytearray.fromhex(text)[SIZE:]
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                decoded(bytes(data), int(version), encoding)
            except OpenWireError:
                continue


def test_nothing_is_made_by_a_name_from_the_wire():
    # CVE-2023-46604: an ExceptionResponse whose class a peer of that kind makes, with this text.
    name = b"org.springframework.context.support.ClassPathXmlApplicationContext"
    url = b"http://127.0.0.1/poc.xml"
    body = b"\x1f" + bytes(9) + b"\1\1" + struct.pack(">H", len(name)) + name
    body += b"\1" + struct.pack(">H", len(url)) + url

    found = decoded(body, 12, "loose")

    assert found.exception.class_name == name.decode()
    assert found.exception.message == url.decode()
    assert type(found.exception).__name__ == "Throwable"


@pytest.mark.parametrize("number", [0x28, 0x32, 0x41, 0x5A, 0x7F, 0xFF])
def test_unknown_data_types_are_refused(number):
    with pytest.raises(OpenWireError, match=f"Unknown data type: {number}"):
        decoded(bytes([number]) + bytes(20), 12, "loose")


def test_an_object_where_none_of_its_kind_may_be_is_refused():
    # A SessionInfo whose id is a queue.
    with pytest.raises(OpenWireError, match="ActiveMQQueue where none may be"):
        decoded(b"\x04" + bytes(5) + b"\1\x64\0", 12, "loose")


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 2**31 - 1),
        struct.pack(">iH", 1, 1) + b"n\x0d" + struct.pack(">i", 2**31 - 1),
        struct.pack(">iH", 1, 1) + b"n\x0c" + struct.pack(">i", 2**31 - 1),
        struct.pack(">iH", 1, 1) + b"n" + b"\x0c\0\0\0\1" * 100,
        struct.pack(">iH", 1, 1) + b"n\x63",
    ],
)
def test_maps_that_say_more_than_they_have_are_refused(data):
    with pytest.raises(RecordFormatError):
        read_map(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\1ActiveMQ",
        b"\1ActiveMQ" + struct.pack(">i?i", 12, True, 2**31 - 1),
        b"\1ActiveMQ" + struct.pack(">i?", -1, False),
        b"\1ActiveMX" + struct.pack(">i?", 12, False),
        b"\1ActiveMQ" + struct.pack(">i?", 12, False) + b"\0",
    ],
)
def test_a_wire_format_that_is_none_is_refused(data):
    with pytest.raises(OpenWireError):
        WireFormatInfo.decode(data)
