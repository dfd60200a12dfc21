"""This broker tells another one who it is, on channel 3 of a connection, and hears of its members.

    CLUSTER_CONNECT ─▶ CLUSTER_CONNECT_REPLY ─▶ NODE_ANNOUNCE

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.client.aio.waiting import settled
from broker.client.channel import Channel
from broker.client.errors import BrokerRefused
from broker.client.topology import Topology
from broker.discovery.topology import Departure, Member
from broker.errors import ErrorCode
from broker.protocols.core.packet_cluster import ClusterConnect, ClusterConnectReply, NodeAnnounce
from broker.protocols.core.packet_connection import CLUSTER_CHANNEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client.aio.connection import AsyncConnection
    from broker.model.transport_configuration import TransportConfiguration
    from broker.protocols.core.packet import Packet
    from broker.protocols.core.packet_cluster import ClusterTopology

__all__ = ["HeardTopology", "Identity", "authorize", "introduce", "is_same_place"]

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


class Identity(NamedTuple):
    """Who this broker is, for others of its cluster.

    Attributes:
        node_id: of it.
        connector: how it is reached; None is not told.
        user: of the cluster.
        password: of that.
        event_id_after: gives the event id of what this broker says of itself: of those of an
            earlier run the later ones count. A later one than the given one, if that is not None.
        scale_down_group: of brokers that scale down to each other.
    """

    node_id: str
    connector: TransportConfiguration | None
    user: str
    password: str
    event_id_after: Callable[[int | None], int]
    scale_down_group: str | None = None


class HeardTopology(Topology):
    """What one connection tells of the members, told on.

    Args:
        hear: called with each statement.
    """

    def __init__(self, hear: Callable[[Member | Departure], object]) -> None:
        super().__init__()
        self._hear = hear

    def update(self, packet: ClusterTopology) -> bool:
        """Take what the broker says; whether it changed anything."""
        is_changed = super().update(packet)
        if packet.exit:
            self._hear(Departure(packet.node_id, packet.unique_event_id))
        else:
            self._hear(
                Member(
                    packet.node_id,
                    packet.unique_event_id,
                    packet.primary,
                    packet.backup,
                    packet.backup_group_name,
                    packet.scale_down_group_name,
                )
            )
        return is_changed


async def authorize(connection: AsyncConnection, identity: Identity, timeout_s: float) -> Channel:
    """Show the credentials of the cluster, and no more; the channel of what may follow.

    Raises:
        BrokerRefused: the other broker has other credentials of its cluster.
        ClientError: the connection is lost, or the answer did not come in time.
    """
    channel = connection.link.open_channel(Channel(CLUSTER_CHANNEL, _ignore))
    asked = ClusterConnect(identity.user, identity.password)
    answer = await settled(
        channel.call(asked, ClusterConnectReply), timeout_s, "the cluster's word on its credentials"
    )
    if not isinstance(answer, ClusterConnectReply) or not answer.authorized:
        raise BrokerRefused(
            ErrorCode.CLUSTER_SECURITY_EXCEPTION,
            "AMQ229098: it does not take <cluster-user> and <cluster-password> of this broker: "
            "they have to be the same on all nodes, and not the defaults",
        )
    return channel


async def introduce(
    connection: AsyncConnection, identity: Identity, timeout_s: float, said: int | None = None
) -> int:
    """Say who we are; give the event id of that.

    Args:
        connection: to the other broker.
        identity: ours.
        timeout_s: for its answer.
        said: the event id that it was told on an earlier connection, which is lost: it may have
            taken us for gone, and a later one is needed. None before the first.

    Raises:
        BrokerRefused: the other broker has other credentials of its cluster.
        ClientError: the connection is lost, or the answer did not come in time.
    """
    channel = await authorize(connection, identity, timeout_s)
    event_id = identity.event_id_after(said)
    channel.post(
        NodeAnnounce(
            node_id=identity.node_id,
            backup_group_name=None,
            backup=False,
            current_event_id=event_id,
            connector=identity.connector,
            backup_connector=None,
            scale_down_group_name=identity.scale_down_group,
        )
    )
    return event_id


def _ignore(packet: Packet, size: int) -> None:
    """Nothing is expected on this channel but the answer."""


def is_same_place(one: TransportConfiguration, other: TransportConfiguration) -> bool:
    """Whether two connectors lead to the same place, as far as their texts say.

    >>> from broker.model.transport_configuration import TransportConfiguration
    >>> host = TransportConfiguration("a", parameters={"host": "localhost", "port": 1})
    >>> is_same_place(host, TransportConfiguration("b", parameters={"host": "::1", "port": "1"}))
    True
    """
    if one.port != other.port:
        return False
    hosts = {one.host.lower(), other.host.lower()}
    return len(hosts) == 1 or hosts <= _LOOPBACK
