"""The vote of this broker when a replicating pair of the cluster asks whether a node is there.

    backup asks with False    the node is unknown: True, it may take over; else False
    primary asks with True    the node is known: True and how it is reached; else False

As Artemis's ServerConnectVoteHandler. There a broker without replication has no vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import BOOLEAN, NSTR, STR, BodyReader, BodyWriter
from broker.protocols.core.packet_cluster import QuorumVoteReply

if TYPE_CHECKING:
    from broker.discovery.topology import Member
    from broker.model.transport_configuration import TransportConfiguration
    from broker.protocols.core.packet_cluster import QuorumVote

__all__ = ["HANDLERS", "vote_on"]

# Of new brokers, and of those before protocol version 136.
HANDLERS: Final = ("PrimaryFailoverQuorumVote", "LiveFailoverQuorumVote")


def vote_on(asked: QuorumVote, members: tuple[Member, ...]) -> QuorumVoteReply | None:
    """Answer a vote; None for one of another kind.

    Args:
        asked: the request.
        members: of the cluster, as this broker knows them.

    Raises:
        RecordFormatError: its bytes are none.
    """
    if asked.handler not in HANDLERS:
        return None
    reader = BodyReader(asked.vote)
    vote, node_id = BOOLEAN.read(reader), STR.read(reader)
    primary = next((one.primary for one in members if one.node_id == node_id), None)
    writer = BodyWriter()
    BOOLEAN.write(writer, vote if primary is not None else not vote)
    STR.write(writer, node_id)
    NSTR.write(writer, None if primary is None else _shown(primary))
    return QuorumVoteReply(asked.handler, writer.getvalue())


def _shown(connector: TransportConfiguration) -> str:
    """Give a connector as Artemis shows one: a primary looks for its own text."""
    parameters = "&".join(
        f"{name}={'****' if 'password' in name.lower() else _dashed(value)}"
        for name, value in connector.parameters.items()
    )
    factory = _dashed(connector.factory_class_name)
    query = f"?{parameters}" if parameters else ""
    return f"TransportConfiguration(name={connector.name}, factory={factory}){query}"


def _dashed(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace(".", "-")
