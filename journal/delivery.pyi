from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import final

from journal.loaded import FailedTransaction, LoadedFile, PreparedTransaction, RecordColumns
from journal.replay import Replay

__all__ = [
    "LiveCursor",
    "LiveRecord",
    "deliver_columns",
    "deliver_records",
    "live_records",
    "open_transactions",
]

@final
class LiveRecord:
    @property
    def record_id(self) -> int: ...
    @property
    def user_type(self) -> int: ...
    @property
    def is_update(self) -> bool: ...
    @property
    def compact_count(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def file(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def checksum(self) -> str: ...
    @property
    def kind(self) -> str: ...

@final
class LiveCursor:
    def __init__(
        self, replay: Replay, loaded: Sequence[LoadedFile], user_types: Iterable[int]
    ) -> None: ...
    def __enter__(self) -> LiveCursor: ...
    def __exit__(self, *exception: object) -> None: ...
    def close(self) -> None: ...

def deliver_records(
    replay: Replay,
    loaded: Sequence[LoadedFile],
    on_batch: Callable[[list[LiveRecord]], object],
    batch_records: int,
) -> int: ...
def deliver_columns(
    replay: Replay,
    loaded: Sequence[LoadedFile],
    on_batch: Callable[[RecordColumns], object],
    batch_records: int,
) -> int: ...
def live_records(replay: Replay, loaded: Sequence[LoadedFile]) -> Iterator[LiveRecord]: ...
def open_transactions(
    replay: Replay, loaded: Sequence[LoadedFile]
) -> tuple[list[PreparedTransaction], list[FailedTransaction]]: ...
