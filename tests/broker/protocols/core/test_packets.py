import contextlib
import dataclasses
import struct
import types
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import ErrorCode
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.model.transport_configuration import TransportConfiguration
from broker.model.xid import Xid
from broker.protocols.core import versions
from broker.protocols.core.errors import PacketFormatError
from broker.protocols.core.frames import FrameReader, encode_frame
from broker.protocols.core.packet_cluster import ClusterTopology
from broker.protocols.core.packet_connection import (
    CreateSession,
    Disconnect,
    ExceptionResponse,
    NullResponse,
)
from broker.protocols.core.packet_message import Send, SendContinuation
from broker.protocols.core.packet_queue import (
    BindingQueryResponse,
    CreateQueue,
    QueueQueryResponse,
)
from broker.protocols.core.packet_session import AddMetadata2, CreateConsumer
from broker.protocols.core.packets import PACKETS, decode_packet

ALL = sorted(set(PACKETS.values()), key=lambda kind: kind.__name__)
LONGS = st.integers(-(2**63), 2**63 - 1)
BY_TYPE = {
    int: st.integers(-128, 127),
    bool: st.booleans(),
    str: st.text(max_size=12),
    bytes: st.binary(max_size=30),
    type(None): st.none(),
    RoutingType: st.sampled_from([RoutingType.MULTICAST, RoutingType.ANYCAST]),
    Xid: st.builds(Xid, st.integers(-5, 5), st.binary(max_size=8), st.binary(max_size=8)),
    TransportConfiguration: st.builds(
        TransportConfiguration,
        st.text(max_size=5),
        st.text(max_size=5),
        st.dictionaries(st.text(max_size=5), st.booleans() | LONGS | st.text(max_size=12)),
    ),
    Message: st.builds(
        Message, st.none() | st.text(max_size=5), st.binary(max_size=20), durable=st.booleans()
    ),
}


def values_of(kind):
    if isinstance(kind, types.UnionType):
        return st.one_of(*map(values_of, typing.get_args(kind)))
    if typing.get_origin(kind) is tuple:
        return st.lists(values_of(typing.get_args(kind)[0]), max_size=3).map(tuple)
    return BY_TYPE[kind]


@st.composite
def packets(draw, kind=None):
    kind = kind or draw(st.sampled_from(ALL))
    hints = typing.get_type_hints(kind, localns={"RoutingType": RoutingType})
    return kind(
        **{
            item.name: draw(values_of(hints[item.name]))
            for item in dataclasses.fields(kind)
            if item.metadata.get("until", versions.CURRENT + 1) > versions.CURRENT
        }
    )


def same(left, right):
    def content(value):
        return value.encode_headers() if isinstance(value, Message) else value

    return type(left) is type(right) and all(
        content(getattr(left, item.name)) == content(getattr(right, item.name))
        for item in dataclasses.fields(left)
    )


def reread(packet, version):
    frame = packet.frame(7, version)
    [(kind, channel, body)] = FrameReader().feed(frame)
    assert (channel, len(frame)) == (7, len(body) + 13)
    return decode_packet(kind, body, version)


def test_numbers_are_those_of_the_protocol():
    known = {10, 11, 12, 13, 20, 21, 22, -4, -5, 110, 114, 122, 112, 113, 125, 126, 111, -6}
    known |= {115, 116, 127, -1, -2, -3, -16, -17, 124, -19, 30, -18, 31, 32, 33, -11, 34, -12}
    known |= {36, -13, 35, 45, 49, 40, 74, 70, 78, 41, 81, 42, 43, 44, 67, 68, 69, 71, 72, 73, 79}
    known |= {104, 105, 106, -20, -21, 46, -7, -14, 50, -8, -10, -15, -22, 75, 76, 77, 80, 82}
    known |= {*range(51, 67), 39}

    assert set(PACKETS) == known


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_packet_is_read_as_it_was_written(kind):
    @settings(max_examples=25, deadline=None)
    @given(packets(kind))
    def check(packet):
        again = reread(packet, versions.CURRENT)
        if isinstance(packet, SendContinuation) and packet.continues:
            packet.message_body_size = -1
        if isinstance(packet, ClusterTopology) and packet.exit:
            packet = ClusterTopology(
                True,
                packet.node_id,
                packet.unique_event_id,
                backup_group_name=packet.backup_group_name,
            )
        assert same(again, packet)

    check()


@settings(deadline=None)
@given(packets(), st.sampled_from(range(121, 137)))
def test_older_peers_get_what_they_can_read(packet, version):
    again = reread(packet, version)

    assert type(again) is type(packet)
    assert again.frame(7, version) == packet.frame(7, version)


@settings(deadline=None)
@given(packets(), st.data())
def test_every_beginning_of_a_packet_is_read_or_refused_with_one_error(packet, data):
    body = packet.encode(versions.CURRENT)
    size = data.draw(st.integers(0, len(body)))

    try:
        decode_packet(packet.type_for(versions.CURRENT), memoryview(body)[:size], versions.CURRENT)
    except PacketFormatError as error:
        named = type(packet).__name__ in str(error)
        assert named


@settings(deadline=None)
@given(packets(), st.data())
def test_an_impossible_length_is_refused_before_anything_is_allocated(packet, data):
    body = bytearray(packet.encode(versions.CURRENT))
    if len(body) >= 4:
        at = data.draw(st.integers(0, len(body) - 4))
        struct.pack_into(">i", body, at, data.draw(st.sampled_from([2**31 - 1, -1, -(2**31)])))

    with contextlib.suppress(PacketFormatError):
        decode_packet(packet.type_for(versions.CURRENT), memoryview(body), versions.CURRENT)


@settings(deadline=None)
@given(st.sampled_from(sorted(PACKETS)), st.binary(max_size=80), st.sampled_from([0, 129, 136]))
def test_anything_else_is_a_packet_or_refused_with_one_error(kind, body, version):
    with contextlib.suppress(PacketFormatError):
        decode_packet(kind, memoryview(body), version)


@settings(deadline=None)
@given(packets(), st.binary(min_size=1, max_size=9))
def test_what_a_newer_peer_adds_is_left_alone(packet, more):
    at_their_end = {"Send", "SendLarge", "ReceiveMessage", "ReceiveLargeMessage"}
    takes_all = {"QuorumVote", "QuorumVoteReply", "FederationDownstreamConnect", "SendContinuation"}
    if type(packet).__name__ in at_their_end | takes_all:
        return
    body = packet.encode(versions.CURRENT)
    number = packet.type_for(versions.CURRENT)

    again = decode_packet(number, memoryview(body + more), versions.CURRENT)

    assert type(again) is type(packet)
    if packet.type_for(versions.CURRENT) != 114:
        assert again.encode(versions.CURRENT) == body


def test_an_unknown_type_is_refused():
    with pytest.raises(PacketFormatError, match="unknown type 102"):
        decode_packet(102, memoryview(b""), versions.CURRENT)


@pytest.mark.parametrize(
    ("packet", "numbers"),
    [
        (
            CreateSession("s", 10, 136, *[None] * 2, 1, *[False] * 3, -1, False, None),
            {130: 30, 131: -18},
        ),
        (Disconnect("n"), {124: 11, 125: 124, 130: 124, 131: -19}),
        (CreateQueue("a", "q"), {128: 34, 129: -12}),
        (QueueQueryResponse(True), {125: 46, 126: -7, 128: -7, 129: -14}),
        (BindingQueryResponse(True), {125: 50, 126: -8, 127: -10, 129: -15, 134: -15, 135: -22}),
        (ClusterTopology(False, "n"), {121: 110, 122: 114, 125: 122, 130: 122, 131: -17}),
        (ClusterTopology(True, "n"), {121: 110, 122: 114, 136: 114}),
    ],
)
def test_a_packet_has_the_number_that_its_peer_knows(packet, numbers):
    assert {version: packet.type_for(version) for version in numbers} == numbers


@pytest.mark.parametrize(
    ("packet", "sizes"),
    [
        (NullResponse(5), {129: 0, 130: 8}),
        (ExceptionResponse(100, None, 5), {129: 5, 130: 13}),
        (CreateConsumer(0, "", priority=5), {129: 15, 130: 19}),
        (Send(Message("a", b"", properties=()), True, 5, 6), {129: 41, 130: 49, 133: 49, 134: 53}),
    ],
)
def test_a_later_field_is_left_out_for_an_older_peer(packet, sizes):
    assert {version: len(packet.encode(version)) for version in sizes} == sizes


def test_an_answer_without_correlation_has_none():
    body = ExceptionResponse(105, "no").encode(129)

    packet = decode_packet(20, memoryview(body), 136)

    assert packet == ExceptionResponse(105, "no", -1)
    assert ErrorCode(packet.code) is ErrorCode.SECURITY_EXCEPTION


def test_an_error_of_a_version_to_come_is_generic():
    assert ErrorCode(4711) is ErrorCode.GENERIC_EXCEPTION


def test_metadata_are_confirmed_as_their_flag_says():
    assert AddMetadata2("k", "v", True).is_confirmed
    assert not AddMetadata2("k", "v", False).is_confirmed


def test_a_password_is_not_shown():
    packet = CreateSession("s", 10, 136, "u", "secret", 1, *[False] * 3, -1, False, None)

    assert "secret" not in repr(packet)


def test_a_frame_is_length_type_channel_and_body():
    assert encode_frame(-18, 10, b"ab").hex() == "0000000b" + "ee" + "000000000000000a" + "6162"
