import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocols.core.errors import PacketFormatError
from broker.protocols.core.frames import FrameReader, encode_frame

FRAMES = st.lists(
    st.tuples(st.integers(-128, 127), st.integers(-(2**63), 2**63 - 1), st.binary(max_size=40)),
    max_size=6,
)


def content(frames):
    return [(kind, channel, bytes(body)) for kind, channel, body in frames]


@given(FRAMES, st.integers(1, 60))
def test_frames_are_found_however_the_bytes_arrive(frames, step):
    stream = b"".join(encode_frame(*frame) for frame in frames)
    reader = FrameReader()

    found = []
    for at in range(0, len(stream), step):
        found += content(reader.feed(stream[at : at + step]))

    assert found == frames
    assert reader.pending == 0


def test_bodies_given_out_stay_when_more_arrives():
    reader = FrameReader()
    whole = encode_frame(1, 2, b"first") + encode_frame(1, 2, b"second")

    assert reader.feed(whole[:-3]) != []
    [(_, _, body)] = FrameReader().feed(whole[:18])
    [(_, _, second)] = reader.feed(whole[-3:])
    reader.feed(whole)

    assert (bytes(body), bytes(second)) == (b"first", b"second")


@pytest.mark.parametrize("length", [-1, 0, 8, -(2**31)])
def test_a_frame_too_short_for_its_header_is_refused(length):
    with pytest.raises(PacketFormatError, match=f"frame of {length} bytes"):
        FrameReader().feed(struct.pack(">i", length))


def test_a_frame_over_the_limit_is_refused_at_its_length():
    reader = FrameReader(size_max=100)

    assert len(reader.feed(encode_frame(1, 2, bytes(87)))) == 1
    with pytest.raises(PacketFormatError, match="frame of 97 bytes"):
        reader.feed(encode_frame(1, 2, bytes(88))[:4])


def test_a_claimed_length_keeps_nothing_but_what_arrived():
    reader = FrameReader()

    assert reader.feed(struct.pack(">ib", 2**31 - 1, 1)) == []
    assert reader.pending == 5
