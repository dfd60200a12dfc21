"""What colocated nodes ask each other, byte by byte: layouts of Artemis's classes."""

import struct

import pytest

from broker.model.encoding import RecordFormatError
from broker.protocols.core.backup_vote import BACKUP_HANDLER, HELD, BackupVote
from broker.protocols.core.packet_cluster import (
    BackupRequest,
    BackupRequestResponse,
    QuorumVote,
    QuorumVoteReply,
)
from broker.protocols.core.packets import decode_packet

VERSION = 137


def java_text(text):
    """ActiveMQBuffer.writeNullableString of a short text."""
    if text is None:
        return b"\0"
    # DataConstants.NOT_NULL is 1, though true is 255.
    # Up to 8 characters are two bytes each, more of them modified UTF-8 behind their size.
    body = (
        text.encode("utf-16-be") if len(text) < 9 else struct.pack(">h", len(text)) + text.encode()
    )
    return b"\1" + struct.pack(">i", len(text)) + body


def simple_string(text):
    """ActiveMQBuffer.writeSimpleString."""
    data = text.encode("utf-16-le")
    return struct.pack(">i", len(data)) + data


ASKED = struct.pack(">i", -1) + b"\0\0"
NODE = "cb8d6a7b-eb70-11f1-b29f-873fb327ebc2"


@pytest.mark.parametrize(
    ("vote", "body"),
    [
        (BackupVote(-1, None, False), ASKED),
        (BackupVote(2, "node", True), struct.pack(">i", 2) + java_text("node") + b"\xff"),
        (BackupVote(0, NODE, False), struct.pack(">i", 0) + java_text(NODE) + b"\0"),
        (BackupVote(HELD, NODE, True), struct.pack(">i", -1) + java_text(NODE) + b"\xff"),
    ],
)
def test_a_vote_both_ways(vote, body):
    assert vote.encode() == body
    assert BackupVote.decode(body) == vote


def test_a_vote_that_is_cut_short_is_refused():
    with pytest.raises(RecordFormatError):
        BackupVote.decode(ASKED[:-1])


@pytest.mark.parametrize(
    ("packet", "kind", "body"),
    [
        (QuorumVote(BACKUP_HANDLER, ASKED), -2, simple_string("RequestBackupQuorumVote") + ASKED),
        (
            QuorumVoteReply(BACKUP_HANDLER, ASKED),
            -3,
            simple_string("RequestBackupQuorumVote") + ASKED,
        ),
        (
            BackupRequest(1, "/a/journal", "/a/bindings", "/l", "/p"),
            127,
            struct.pack(">i", 1)
            + b"".join(map(java_text, ("/a/journal", "/a/bindings", "/l", "/p")))
            + b"\0",
        ),
        # Of a node with <replication>: its id in place of folders.
        (
            BackupRequest(0, node_id=NODE),
            127,
            struct.pack(">i", 0) + bytes(4) + b"\1" + simple_string(NODE),
        ),
        (BackupRequestResponse(True), -1, b"\xff"),
        (BackupRequestResponse(False), -1, b"\0"),
    ],
)
def test_a_packet_both_ways(packet, kind, body):
    assert packet.type_for(VERSION) == kind
    assert packet.encode(VERSION) == body
    assert decode_packet(kind, memoryview(body), VERSION) == packet
