"""Acknowledgements of one packet, recorded in a transaction of their own: all of them or none.

    begin ─▶ a record for each reference ─▶ commit    nothing waits; a crash leaves all, or none

No other code sees this transaction: when it returns, the references may be released, as those that
were acknowledged alone. Artemis has one for each packet (`ServerConsumerImpl.acknowledge`).

Threads: the event loop's alone. Durability: the commit is synced as an acknowledgement alone is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.errors import BrokerError
from journal.errors import JournalError

if TYPE_CHECKING:
    from broker.queues.reference import Reference
    from broker.storage.manager import StorageManager

__all__ = ["record_together"]


class _JointRecords:
    """What references and pages know of it; see `ReferenceTransaction`."""

    __slots__ = ("acknowledged", "paged", "tx_id")

    def __init__(self, tx_id: int, references: list[Reference]) -> None:
        self.tx_id = tx_id
        self.acknowledged = references
        self.paged: Any = None


def record_together(storage: StorageManager, references: list[Reference]) -> None:
    """Record that their queue has these no more.

    Args:
        storage: where records go.
        references: that leave records.

    Raises:
        BrokerError: the disk is full, and the reserve used up: none of it is recorded.
        JournalError: the store has failed.
    """
    records = _JointRecords(storage.new_id(), references)
    paged = None
    try:
        for reference in references:
            reference.record_gone(records, False)
        paged = records.paged
        if paged is not None:
            paged.record(records.tx_id)
    except (BrokerError, JournalError):
        storage.rollback(records.tx_id)
        raise
    storage.commit_alone(records.tx_id, False)
    if paged is not None:
        paged.committed()
