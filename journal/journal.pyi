import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self, final

from typing_extensions import Buffer

from journal.api import Done
from journal.completion import Completion
from journal.data_files import FileCount
from journal.files.base import Folder
from journal.loader import LoadResult
from journal.options import JournalOptions
from journal.pool import FilePool

@final
class Journal:
    def __new__(cls, options: JournalOptions) -> Self: ...
    @property
    def options(self) -> JournalOptions: ...
    @property
    def folder(self) -> Folder: ...
    @property
    def pool(self) -> FilePool: ...
    @property
    def record_size_max(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def type_used(self) -> str: ...
    @property
    def durable_ticket(self) -> int: ...
    def open(self) -> None: ...
    def load(
        self,
        on_batch: Callable[[Sequence[Any]], object] | None = None,
        *,
        progress: Callable[[int, int, int, int], object] | None = None,
    ) -> LoadResult: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        *exception: object,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, record_id: int) -> bool: ...
    def add(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def add_durable(self, record_id: int, user_type: int, body: Buffer) -> Completion: ...
    def update(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def delete(
        self,
        record_id: int,
        body: Buffer = b"",
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def try_update(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int | None: ...
    def try_delete(
        self,
        record_id: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int | None: ...
    def event(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def add_many(
        self,
        record_ids: Sequence[int],
        user_type: int,
        bodies: Sequence[bytes],
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def begin(self) -> int: ...
    def prepare(
        self,
        tx: int,
        extra: Buffer = b"",
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def commit(
        self,
        tx: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def rollback(
        self,
        tx: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int: ...
    def wait(self, ticket: int) -> None: ...
    def sync(self) -> None: ...
    def durable(self, ticket: int) -> Completion: ...
    def reap(self) -> int: ...
    def stats(self) -> dict[str, int]: ...
    def fileno(self) -> int: ...
    def on_event(self) -> None: ...
    def attach_loop(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def detach_loop(self) -> None: ...
    def reclaim(self) -> int: ...
    def compact(self) -> bool: ...
    def file_counts(self) -> list[FileCount]: ...
