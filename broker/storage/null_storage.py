"""What stands in the place of a storage manager where nothing is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.storage.context import Completions
from broker.storage.identifiers import IdGenerator
from broker.storage.manager import StorageManager

if TYPE_CHECKING:
    import asyncio

    from broker.model.message import Message
    from broker.model.wire import WireRecord
    from broker.model.xid import Xid

__all__ = ["NullStorage"]


class NullStorage(StorageManager):
    """What a broker with `persistence-enabled` false appends: nothing; all is "durable" at once."""

    is_persistent = False

    def __init__(self) -> None:
        """No stores, and ids that begin anew with every start."""
        self.page_writer = None
        self._max_redelivery_records = -1
        self._ids = IdGenerator(None)
        self.completions = Completions(_never)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing to attach."""

    def stop(self) -> None:
        """Nothing to make durable."""

    def sync(self) -> None:
        """Nothing to wait for."""

    def prewarm(self) -> None:
        """Nothing to get ready."""

    def store_message(self, message: Message, tx_id: int | None) -> None:
        """Keep nothing."""

    def store_reference(
        self, queue_id: int, message_id: int, tx_id: int | None, is_last: bool
    ) -> None:
        """Keep nothing."""

    def acknowledge(self, queue_id: int, message_id: int, tx_id: int | None, is_last: bool) -> None:
        """Keep nothing."""

    def delete_message(self, message_id: int) -> None:
        """Keep nothing."""

    def _update(self, record_id: int, kind: int, body: bytes, tx_id: int | None = None) -> None:
        pass

    def store_duplicate_id(
        self,
        record_id: int,
        address: str,
        duplicate_id: bytes,
        message_id: int,
        tx_id: int | None = None,
    ) -> None:
        """Keep nothing."""

    def delete_duplicate_id(self, record_id: int, tx_id: int | None = None) -> None:
        """Keep nothing."""

    def prepare(self, tx_id: int, xid: Xid) -> None:
        """Keep nothing."""

    def commit(self, tx_id: int) -> None:
        """Keep nothing."""

    def commit_alone(self, tx_id: int, flush_now: bool) -> None:
        """Keep nothing."""

    def rollback(self, tx_id: int) -> None:
        """Keep nothing."""

    def delete_heuristic_completion(self, record_id: int) -> None:
        """Keep nothing."""

    def _add_message_record(self, record_id: int, record: WireRecord) -> None:
        pass

    def add_binding(self, record_id: int, record: WireRecord) -> None:
        """Keep nothing."""

    def update_queue_binding(self, queue_id: int, record: WireRecord) -> None:
        """Keep nothing."""

    def replace_binding(self, old_id: int, new_id: int, record: WireRecord) -> None:
        """Keep nothing."""

    def delete_binding(self, record_id: int) -> None:
        """Keep nothing."""

    def add_setting(self, record: WireRecord) -> int:
        """Keep nothing; an id all the same."""
        return self.new_id()

    def delete_setting(self, record_id: int) -> None:
        """Keep nothing."""


def _never(error: Exception) -> None:
    raise AssertionError("nothing that is not kept can fail") from error
