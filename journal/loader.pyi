from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, final

from journal.delivery import LiveCursor, LiveRecord
from journal.folder import JournalFile
from journal.index import RecordIndex
from journal.loaded import FileShare, LoadResult, RecordColumns

__all__ = ["Loader"]

@final
class Loader:
    def __init__(
        self,
        files: Iterable[JournalFile],
        index: RecordIndex,
        *,
        user_version: int = 0,
        damage: Literal["fail", "quarantine"] = "fail",
        replaceable: Collection[int] = (),
        readahead: int = 8,
        progress: Callable[[int, int, int, int], object] | None = None,
        prune_count: int = ...,
        step_size: int = ...,
    ) -> None: ...
    @property
    def files(self) -> list[JournalFile]: ...
    @property
    def index(self) -> RecordIndex: ...
    @property
    def user_version(self) -> int: ...
    @property
    def damage(self) -> str: ...
    def shares(self) -> list[FileShare]: ...
    def add_ids(self) -> list[int]: ...
    def load(self) -> LoadResult: ...
    def deliver(
        self, on_batch: Callable[[list[LiveRecord]], object], *, batch_records: int = 1024
    ) -> int: ...
    def deliver_columns(
        self, on_batch: Callable[[RecordColumns], object], *, batch_records: int = 65536
    ) -> int: ...
    def records(self) -> Iterator[LiveRecord]: ...
    def cursor(self, user_types: Iterable[int]) -> LiveCursor: ...
