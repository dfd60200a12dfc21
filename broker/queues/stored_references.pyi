from collections.abc import Callable

from typing_extensions import disjoint_base

from broker.queues.memory import AddressMemory
from broker.queues.queue import Queue
from broker.queues.reference import Reference
from broker.storage.journal_messages import JournalMessages
from broker.storage.pinned_files import PinnedFile

__all__ = ["QueueFiller", "StoredReferences"]

@disjoint_base
class StoredReferences:
    def __init__(self, queue: Queue, file: PinnedFile, memory: AddressMemory) -> None: ...
    def __len__(self) -> int: ...
    def make(self) -> list[Reference]: ...

@disjoint_base
class QueueFiller:
    def __init__(
        self,
        messages: JournalMessages,
        queue: Queue,
        memory_of: Callable[[str, Queue], AddressMemory],
    ) -> None: ...
    def add(self, row: int) -> int: ...
    def flush(self) -> int: ...
