"""What a peer tells of its queues, consumers and clients, read from its notifications.

Values without I/O; names as in ManagementHelper.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from broker.cluster.group_owners import Owner
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.model.properties import PropertyValue

__all__ = [
    "GroupEvent",
    "Told",
    "ToldClient",
    "ToldGroup",
    "ToldType",
    "read_told",
    "subscription_filter",
]


class ToldType(Enum):
    """What is told; names as in notifications, but for the first two."""

    RESET = auto()
    RESET_COMPLETE = auto()
    BINDING_ADDED = auto()
    BINDING_REMOVED = auto()
    BINDING_UPDATED = auto()
    CONSUMER_CREATED = auto()
    CONSUMER_CLOSED = auto()


_NO_OWNER: Final = Owner(0, "")


class GroupEvent(Enum):
    """What is told of message groups; names as in notifications."""

    PROPOSAL = auto()
    PROPOSAL_RESPONSE = auto()
    UNPROPOSAL = auto()
    # Not of Artemis.
    GROUP_OWNER = auto()


# A client of a protocol where an id is connected once in a cluster has come to the peer.
_SESSION_CREATED: Final = "SESSION_CREATED"
_ONCE_CONNECTED: Final = "MQTT"
_GROUP_EVENTS: Final = {one.name: one for one in GroupEvent}
_BY_NAME: Final = {one.name: one for one in ToldType if not one.name.startswith("RESET")}


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that a peer tells.

    Attributes:
        type: what happened.
        address: of the queue.
        cluster_name: of the queue: its name and the node id of its broker.
        routing_name: of those that share it one gets a message.
        binding_id: in the peer.
        distance: of the queue from the peer.
        filter: of the queue, or of the consumer; None for none.
        is_pinning: of a RESET: the peer keeps to the owners of groups.
        routing_type: of the queue; None where the peer does not tell.
    """

    type: ToldType
    address: str = ""
    cluster_name: str = ""
    routing_name: str = ""
    binding_id: int = 0
    distance: int = 0
    filter: str | None = None
    is_pinning: bool = False
    routing_type: RoutingType | None = None


@dataclass(frozen=True, slots=True)
class ToldGroup:
    """What a peer tells of a group.

    Attributes:
        event: what happened.
        group: as the handler knows it; of GROUP_OWNER the routing name.
        value: the owner that is proposed, refused or freed, as the cluster knows it.
        alternative: the owner that holds instead; None for none.
        distance: from the peer of who tells.
        bucket: of GROUP_OWNER.
        owner: of GROUP_OWNER.
    """

    event: GroupEvent
    group: str
    value: str = ""
    alternative: str | None = None
    distance: int = 0
    bucket: int = 0
    owner: Owner = _NO_OWNER


@dataclass(frozen=True, slots=True)
class ToldClient:
    """A client that has come to the peer, or to one behind it.

    Attributes:
        client_id: that it gave.
        protocol: that it speaks, such as MQTT.
        remote: where it is.
        connection: its connection's id there.
        distance: from the peer of the broker that it is connected to.
        at_ms: when it came, by that peer's clock.
    """

    client_id: str
    protocol: str
    remote: str | None = None
    connection: str | None = None
    distance: int = 0
    at_ms: int = 0


def read_told(message: Message) -> Told | ToldGroup | ToldClient | None:
    """Read a notification; None where it is of no concern.

    Raises:
        ValueError: something is missing in it.
    """
    if message.get("_AMQ_RESET_QUEUE_DATA"):
        return Told(ToldType.RESET, is_pinning=bool(message.get("_QUIVER_PinsGroups")))
    if message.get("_AMQ_RESET_QUEUE_DATA_COMPLETE"):
        return Told(ToldType.RESET_COMPLETE)
    name = str(message.get("_AMQ_NotifType"))
    if name in _GROUP_EVENTS:
        return _read_group(_GROUP_EVENTS[name], message)
    if name == _SESSION_CREATED:
        return _read_client(message)
    kind = _BY_NAME.get(name)
    if kind is None:
        return None
    text = _text(message, "_AMQ_FilterString")
    cluster_name = _text(message, "_AMQ_ClusterName")
    if cluster_name is None:
        raise ValueError(f"{kind.name} without _AMQ_ClusterName")
    told = Told(
        kind,
        _text(message, "_AMQ_Address") or "",
        cluster_name,
        _text(message, "_AMQ_RoutingName") or "",
        _number(message.get("_AMQ_Binding_ID")),
        _number(message.get("_AMQ_Distance")),
        text or None,
        routing_type=_routing_type(message.get("_QUIVER_QueueRoutingType")),
    )
    if kind is ToldType.BINDING_ADDED and not (told.address and told.routing_name):
        raise ValueError(f"BINDING_ADDED of {cluster_name} without address or routing name")
    return told


def _read_client(message: Message) -> ToldClient | None:
    client_id, protocol = _text(message, "_AMQ_Client_ID"), _text(message, "_AMQ_Protocol_Name")
    if not client_id or protocol is None or not protocol.startswith(_ONCE_CONNECTED):
        return None
    return ToldClient(
        client_id,
        protocol,
        _text(message, "_AMQ_RemoteAddress"),
        _text(message, "_AMQ_ConnectionName"),
        _number(message.get("_AMQ_Distance")),
        _number(message.get("_AMQ_NotifTimestamp")),
    )


def _read_group(event: GroupEvent, message: Message) -> ToldGroup:
    distance = _number(message.get("_AMQ_Distance"))
    if event is GroupEvent.GROUP_OWNER:
        routing_name = _text(message, "_AMQ_RoutingName")
        cluster_name = _text(message, "_AMQ_ClusterName")
        if routing_name is None or cluster_name is None:
            raise ValueError("GROUP_OWNER without routing name or _AMQ_ClusterName")
        epoch = _number(message.get("_QUIVER_GroupEpoch"))
        bucket = _number(message.get("_QUIVER_GroupBucket"))
        owner = Owner(epoch, cluster_name)
        return ToldGroup(event, routing_name, distance=distance, bucket=bucket, owner=owner)
    group = _text(message, "_JBM_ProposalGroupId")
    value = _text(message, "_JBM_ProposalValue")
    if group is None or value is None:
        raise ValueError(f"{event.name} without _JBM_ProposalGroupId or _JBM_ProposalValue")
    return ToldGroup(event, group, value, _text(message, "_JBM_ProposalAltValue"), distance)


def _text(message: Message, name: str) -> str | None:
    value = message.get(name)
    return value if isinstance(value, str) else None


def _routing_type(value: PropertyValue) -> RoutingType | None:
    """Raise ValueError for a number that is none."""
    return RoutingType(value) if isinstance(value, int) else None


def _number(value: PropertyValue) -> int:
    return int(value) if isinstance(value, int) else 0


# Addresses that only their own broker uses; OpenWire's advisories are told by each of them.
_OWN_ADDRESSES: Final = ("$.artemis.internal.sf.", "ActiveMQ.Advisory.")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def address_filter(addresses: str, own: tuple[str, ...]) -> str:
    """Give the selector of what is told of some addresses (createSelectorFromAddress).

    Args:
        addresses: of the cluster connection: prefixes between commas, `!` excludes.
        own: more prefixes that are not told.

    >>> address_filter("eu,!eu.test", ())[:47]
    "(_AMQ_Address LIKE 'eu%') AND (_AMQ_Address NOT"
    """
    items = [one.strip() for one in addresses.split(",")]
    wanted = [one for one in items if one and not one.startswith("!")]
    excluded = [one[1:] for one in items if one.startswith("!") and one[1:]]
    excluded += [*_OWN_ADDRESSES, *own]
    parts = []
    if wanted:
        parts.append(" OR ".join(f"_AMQ_Address LIKE {_quoted(one + '%')}" for one in wanted))
    parts += [f"_AMQ_Address NOT LIKE {_quoted(one + '%')}" for one in excluded]
    return " AND ".join(f"({one})" for one in parts)


def subscription_filter(addresses: str, max_hops: int, *, own: tuple[str, ...]) -> str:
    """Give the selector of the queue where a peer tells of its queues, consumers and clients.

    Args:
        addresses: of the cluster connection; clients are told of whatever they are.
        max_hops: how many brokers away a queue may be.
        own: prefixes of addresses that are not told, for each broker has its own.
    """
    types = ", ".join(map(_quoted, (*_BY_NAME, *_GROUP_EVENTS)))
    clients = (
        f"_AMQ_NotifType = {_quoted(_SESSION_CREATED)} AND "
        f"_AMQ_Protocol_Name LIKE {_quoted(_ONCE_CONNECTED + '%')}"
    )
    queues = (
        "(_AMQ_Binding_Type <> 2 OR _AMQ_Binding_Type IS NULL) AND "
        f"_AMQ_NotifType IN ({types}) AND ({address_filter(addresses, own)})"
    )
    return f"_AMQ_Distance < {max_hops} AND (({clients}) OR ({queues}))"
