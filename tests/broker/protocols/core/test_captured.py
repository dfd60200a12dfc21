"""What passed between Artemis's own client and broker is read, and written byte for byte."""

from pathlib import Path

import pytest

from broker.protocols.core import (
    packet_connection,
    packet_message,
    packet_queue,
    packet_session,
    versions,
)
from broker.protocols.core.frames import FrameReader
from broker.protocols.core.packet_cluster import ClusterTopology, SubscribeTopology
from broker.protocols.core.packets import decode_packet

VERSION = 136


def frames():
    lines = (Path(__file__).parent / "captured.txt").read_text().splitlines()
    return [
        (line[0], bytes.fromhex(line[2:])) for line in lines if line and not line.startswith("#")
    ]


def packets():
    for _, data in frames():
        [(kind, _, body)] = FrameReader().feed(data)
        yield decode_packet(kind, body, VERSION)


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_every_frame_is_found_in_the_stream(step):
    stream = b"".join(data for _, data in frames())
    reader = FrameReader()

    found = [
        frame for at in range(0, len(stream), step) for frame in reader.feed(stream[at : at + step])
    ]

    assert [len(body) + 13 for _, _, body in found] == [len(data) for _, data in frames()]


def test_every_packet_is_written_as_artemis_wrote_it():
    different = []
    for (_, data), packet in zip(frames(), packets(), strict=True):
        channel = int.from_bytes(data[5:13], "big", signed=True)
        # The client writes this one as for a broker that it does not know yet.
        version = VERSION if data[4] != 30 else versions.CLIENT_ID - 1
        if packet.frame(channel, version) != data:
            different.append((packet, data.hex()))

    assert different == []


def test_the_kinds_of_packets_are_those_of_a_real_session():
    found = {type(packet) for packet in packets()}

    assert found >= {
        *(packet_connection.Ping, packet_connection.CreateSession, SubscribeTopology),
        *(ClusterTopology, packet_connection.NullResponse, packet_connection.PacketsConfirmed),
        *(packet_queue.BindingQuery, packet_queue.BindingQueryResponse, packet_queue.CreateQueue),
        *(packet_queue.QueueQuery, packet_queue.QueueQueryResponse, packet_queue.CreateAddress),
        *(packet_session.CreateConsumer, packet_session.ConsumerCredits, packet_session.Commit),
        *(packet_session.ForceDelivery, packet_session.RequestProducerCredits),
        *(packet_session.ProducerCredits, packet_session.AddMetadata2, packet_session.Close),
        *(packet_message.Send, packet_message.SendLarge, packet_message.SendContinuation),
        *(packet_message.ReceiveMessage, packet_message.ReceiveLargeMessage),
        *(packet_message.ReceiveContinuation, packet_message.Acknowledge),
    }


def test_a_captured_message_says_what_was_sent():
    sent = [packet for packet in packets() if isinstance(packet, packet_message.Send)]

    message = sent[0].message
    assert (message.address, message.type, message.durable) == ("cap", 3, True)
    assert message.get("_AMQ_ROUTING_TYPE") == 1
    assert sent[0].requires_response
