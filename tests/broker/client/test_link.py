import pytest

from broker.client.channel import Channel
from broker.client.errors import NotConnected
from broker.client.link import Link
from broker.client.topology import Topology
from broker.model.transport_configuration import TransportConfiguration
from broker.protocols.core.errors import PacketFormatError
from broker.protocols.core.frames import MAGIC, FrameReader, encode_frame
from broker.protocols.core.packet_cluster import (
    ClusterConnect,
    ClusterConnectReply,
    ClusterTopology,
    SubscribeTopology,
)
from broker.protocols.core.packet_connection import (
    CLUSTER_CHANNEL,
    FIRST_CLIENT_CHANNEL,
    Disconnect,
    NullResponse,
    Ping,
)
from broker.protocols.core.packets import decode_packet


class Driver:
    def __init__(self):
        self.woken = 0
        self.topology = []
        self.disconnects = []
        self.link = Link(
            connection_ttl=60_000,
            wake=self.wake,
            on_topology=self.topology.append,
            on_disconnect=self.disconnects.append,
        )

    def wake(self):
        self.woken += 1

    def sent(self):
        data = b"".join(self.link.take_outgoing()).removeprefix(MAGIC)
        return [decode_packet(kind, body, 136) for kind, _, body in FrameReader().feed(data)]


@pytest.fixture
def driver():
    return Driver()


def member(**changes):
    values = {"exit": False, "node_id": "n", "unique_event_id": 5, "server_version": 136}
    return ClusterTopology(**(values | changes))


def test_a_connection_begins_with_who_we_are(driver):
    driver.link.start()

    assert driver.woken == 1
    assert driver.link.take_outgoing()[0] == MAGIC
    driver.link.start()
    assert driver.sent() == [Ping(60_000), SubscribeTopology(False, 136)]


def test_sessions_wait_for_the_last_member(driver):
    driver.link.start()

    driver.link.receive_data(member(node_id="a").frame(0, 136))
    assert not driver.link.ready.is_done
    driver.link.receive_data(member(last=True, server_version=200).frame(0, 136))

    assert driver.link.ready.is_done
    assert driver.link.version == 136
    assert [packet.node_id for packet in driver.topology] == ["a", "n"]


def test_the_end_is_announced(driver):
    driver.link.receive_data(Disconnect("n").frame(0, 136))

    assert driver.disconnects == [Disconnect("n")]


def test_packets_go_to_their_channel_and_to_no_other(driver):
    got = []
    channel = driver.link.open_channel(Channel(10, lambda packet, size: got.append((packet, size))))

    frame = ClusterTopology(False, "x").frame(10, 136)
    driver.link.receive_data(frame + NullResponse(3).frame(11, 136))
    driver.link.close_channel(channel)
    driver.link.receive_data(frame)

    assert [size for _, size in got] == [len(frame)]


def test_what_is_no_packet_is_one_error(driver):
    with pytest.raises(PacketFormatError):
        driver.link.receive_data(encode_frame(102, 0, b""))


def test_a_lost_connection_sends_nothing_and_answers_everybody(driver):
    channel = driver.link.open_channel(Channel(10, lambda packet, size: None))
    reply = driver.link.check_for_failover("n")

    driver.link.lose(NotConnected("gone"))
    driver.link.ping()

    assert isinstance(reply.error, NotConnected)
    assert isinstance(driver.link.ready.error, NotConnected)
    assert (channel.link, driver.link.take_outgoing()) == (None, [])
    with pytest.raises(NotConnected):
        driver.link.open_channel(channel)


def test_what_is_asked_of_a_connection_ends_with_it_and_what_a_session_asks_does_not(driver):
    def call(number):
        channel = driver.link.open_channel(Channel(number, lambda packet, size: None))
        return channel.call(ClusterConnect("u", "p"), ClusterConnectReply)

    of_connection, of_session = call(CLUSTER_CHANNEL), call(FIRST_CLIENT_CHANNEL)

    driver.link.lose(NotConnected("gone"))

    assert isinstance(of_connection.error, NotConnected)
    assert not of_session.is_done


def test_the_newest_word_on_a_member_counts():
    topology = Topology()
    first, second = (TransportConfiguration(name) for name in ("first", "second"))

    assert topology.update(member(primary=first, backup=second))
    assert not topology.update(member(unique_event_id=4, primary=second))
    assert topology.update(member(unique_event_id=6))
    assert (topology.member("n").primary, topology.member("n").backup) == (first, second)
    assert not topology.update(member(exit=True, unique_event_id=3))
    assert topology.update(member(exit=True, unique_event_id=9))
    assert not topology.update(member(unique_event_id=8))

    assert topology.members == ()
