"""The vote by which a primary finds a node that runs a backup of it, as bytes.

    QUORUM_VOTE("RequestBackupQuorumVote") ─▶ QUORUM_VOTE_REPLY: how many backups there are there
    BACKUP_REQUEST(that number, folders)   ─▶ BACKUP_REQUEST_RESPONSE: whether one more has begun

Artemis asks without a node id (ColocatedActivation.RequestBackupVote). Ours tells its own, and a
node that has its backup already answers HELD: a primary that comes back asks no second one.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from broker.model.encoding import BOOLEAN, INT, NSTR, BodyReader, BodyWriter

__all__ = ["BACKUP_HANDLER", "HELD", "BackupVote"]

BACKUP_HANDLER: Final = "RequestBackupQuorumVote"
HELD: Final = -1
"""In place of a number: that node's backup is here. Artemis counts from 0."""


class BackupVote(NamedTuple):
    """A question, or its answer.

    Attributes:
        backup_count: backups of others in the process that answers; -1 in a question.
        node_id: who asks, None from Artemis; of an answer who answers.
        is_available: whether that process runs one more.
    """

    backup_count: int
    node_id: str | None
    is_available: bool

    def encode(self) -> bytes:
        """Give the body of a vote.

        >>> BackupVote(1, None, True).encode().hex()
        '0000000100ff'
        """
        writer = BodyWriter()
        INT.write(writer, self.backup_count)
        NSTR.write(writer, self.node_id)
        BOOLEAN.write(writer, self.is_available)
        return writer.getvalue()

    @classmethod
    def decode(cls, vote: bytes) -> Self:
        """Read the body of a vote.

        Raises:
            RecordFormatError: its bytes are none.
        """
        reader = BodyReader(vote)
        return cls(INT.read(reader), NSTR.read(reader), BOOLEAN.read(reader))
