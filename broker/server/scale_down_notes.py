"""What is noted of a prepared transaction that was handed over, until it is ended here.

A start that finds notes ends the transaction, and removes what it had acknowledged.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Final

from broker.model.encoding import BodyReader, BodyWriter
from broker.model.xid import Xid
from broker.routing.duplicates import KEPT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.queues.reference import Reference
    from broker.routing.duplicates import DuplicateCache
    from broker.routing.postoffice import PostOffice
    from broker.storage.manager import StorageManager
    from broker.transactions.xa import XaTransactions

__all__ = ["NOTES", "finish", "forget", "note_of", "note_of_xid", "remove_all"]

log = logging.getLogger("broker")

NOTES: Final = f"{KEPT_PREFIX}scaled-down-transactions"
"""Where they are kept, as duplicate ids."""
_XID, _MESSAGE = b"x", b"m"
_IDS: Final = struct.Struct(">qq")


def note_of_xid(xid: Xid) -> bytes:
    """Give the note that a transaction is in the target."""
    writer = BodyWriter()
    xid.write(writer)
    return _XID + writer.getvalue()


def note_of(reference: Reference) -> bytes:
    """Give the note that a message, which the transaction acknowledged, is there with it."""
    return _MESSAGE + _IDS.pack(reference.queue.queue_id, reference.message.message_id)


def remove_all(references: Iterable[Reference]) -> None:
    """Remove those that wait, or are not due yet."""
    for reference in references:
        if reference.level >= 0 or reference.scheduled_ms:
            reference.queue.remove(reference)


def forget(notes: DuplicateCache) -> None:
    """Nothing is left to be done."""
    for note in notes.ids():
        notes.remove(note)


def finish(postoffice: PostOffice, transactions: XaTransactions, storage: StorageManager) -> None:
    """At a start: end here what the last scale-down has handed over.

    Raises:
        JournalError: the storage has failed.
    """
    notes = postoffice.duplicates.find(NOTES)
    if notes is None or not len(notes):
        return
    context = storage.new_context()
    gone = set()
    for note in notes.ids():
        if note[:1] == _MESSAGE:
            gone.add(_IDS.unpack(note[1:]))
            continue
        xid = Xid.read(BodyReader(note[1:]))
        if transactions.find(xid) is not None:
            transactions.take(xid).rollback(context)

    def remove(error: Exception | None) -> None:
        """What was acknowledged is back in its queues."""
        if error is not None:
            return
        by_id = postoffice.addresses.queues_by_id
        queues = [by_id[one] for one in {queue_id for queue_id, _ in gone} if one in by_id]
        for queue in queues:
            remove_all(
                [
                    one
                    for one in queue.references()
                    if (queue.queue_id, one.message.message_id) in gone
                ]
            )
        forget(notes)

    log.info("the last scale-down had handed over transactions: they are ended here")
    context.note()
    context.after(remove)
