"""The answers to a replicating pair of Artemis's that asks whether a node is there."""

import pytest

from broker.discovery.topology import Member
from broker.model.encoding import BOOLEAN, NSTR, STR, BodyReader, BodyWriter
from broker.model.transport_configuration import TransportConfiguration
from broker.protocols.core.packet_cluster import QuorumVote
from broker.protocols.core.quorum import HANDLERS, vote_on

CONNECTOR = TransportConfiguration(
    "own",
    parameters={"port": "61616", "host": "a.b", "sslEnabled": True, "keyStorePassword": "x"},
)
MEMBERS = (Member("known", 1, CONNECTOR), Member("backup-only", 1, None, CONNECTOR))
# TransportConfiguration.toString() of Artemis.
SHOWN = (
    "TransportConfiguration(name=own, "
    "factory=org-apache-activemq-artemis-core-remoting-impl-netty-NettyConnectorFactory)"
    "?port=61616&host=a-b&sslEnabled=true&keyStorePassword=****"
)


def request(handler, vote, node_id):
    writer = BodyWriter()
    BOOLEAN.write(writer, vote)
    STR.write(writer, node_id)
    NSTR.write(writer, None)
    return QuorumVote(handler, writer.getvalue())


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize(
    ("vote", "node_id", "answer", "shown"),
    [
        (False, "known", False, SHOWN),
        (True, "known", True, SHOWN),
        (False, "unknown", True, None),
        (True, "unknown", False, None),
        (False, "backup-only", True, None),
    ],
)
def test_a_vote_is_true_to_the_topology(handler, vote, node_id, answer, shown):
    reply = vote_on(request(handler, vote, node_id), MEMBERS)

    reader = BodyReader(reply.vote)
    found = BOOLEAN.read(reader), STR.read(reader), NSTR.read(reader)
    assert reply.handler == handler
    assert found == (answer, node_id, shown)


def test_another_vote_has_no_answer():
    assert vote_on(request("RequestBackupQuorumVote", False, "known"), MEMBERS) is None
