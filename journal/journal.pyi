import asyncio
from collections.abc import Callable, Sequence
from typing import final

from typing_extensions import Buffer

from journal.api import Done
from journal.appends import JournalAppends
from journal.completion import Completion
from journal.transaction import Transaction

@final
class Journal(JournalAppends):
    @property
    def durable_ticket(self) -> int: ...
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
        flush_now: bool = True,
        makes_room: bool = False,
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
        flush_now: bool = True,
        makes_room: bool = False,
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
    def transaction(self, tx: int | None = None, *, sync: bool | None = None) -> Transaction: ...
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
        flush_now: bool = True,
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
    def flush_now(self) -> None: ...
    def prewarm(self) -> None: ...
    def reserve_ends(self, count: int) -> bool: ...
    def durable(self, ticket: int) -> Completion: ...
    def reap(self) -> int: ...
    def fileno(self) -> int: ...
    def on_event(self) -> None: ...
    def attach_loop(
        self, loop: asyncio.AbstractEventLoop, after_reap: Callable[[], object] | None = None
    ) -> None: ...
    def detach_loop(self) -> None: ...
