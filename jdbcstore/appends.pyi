from collections.abc import Sequence

from typing_extensions import Buffer, disjoint_base

from jdbcstore.live import LiveIds
from jdbcstore.transactions import OpenTransaction, Operation
from jdbcstore.writer import GroupWriter
from journal.api import Done
from journal.completion import Completion

ID_MIN: int
ID_MAX: int

@disjoint_base
class Appends:
    state: str
    writer: GroupWriter | None
    live: LiveIds
    next_seq: int
    body_size_max: int
    failure: Exception | None
    sync_transactional: bool
    sync_non_transactional: bool
    def __init__(
        self, sync_transactional: bool = ..., sync_non_transactional: bool = ...
    ) -> None: ...
    def add(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        tx: int | None = ...,
        sync: bool | None = ...,
        done: Done | None = ...,
        wait: bool = ...,
        flush_now: bool = ...,
        makes_room: bool = ...,
    ) -> int: ...
    def add_durable(self, record_id: int, user_type: int, body: Buffer) -> Completion: ...
    def add_many(
        self,
        record_ids: Sequence[int],
        user_type: int,
        bodies: Sequence[bytes],
        *,
        tx: int | None = ...,
        sync: bool | None = ...,
        done: Done | None = ...,
        wait: bool = ...,
    ) -> int: ...
    def update(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        tx: int | None = ...,
        sync: bool | None = ...,
        done: Done | None = ...,
        wait: bool = ...,
        flush_now: bool = ...,
        makes_room: bool = ...,
    ) -> int: ...
    def delete(
        self,
        record_id: int,
        body: Buffer = ...,
        *,
        tx: int | None = ...,
        sync: bool | None = ...,
        done: Done | None = ...,
        wait: bool = ...,
    ) -> int: ...
    def try_update(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        sync: bool | None = ...,
        done: Done | None = ...,
        wait: bool = ...,
    ) -> int | None: ...
    def try_delete(
        self,
        record_id: int,
        *,
        sync: bool | None = ...,
        done: Done | None = ...,
        wait: bool = ...,
    ) -> int | None: ...
    def event(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        sync: bool | None = ...,
        done: Done | None = ...,
        wait: bool = ...,
    ) -> int: ...
    def stage(
        self,
        tx_id: int,
        record_id: int,
        record_type: int,
        user_type: int,
        body: bytes,
        extra: bytes,
        *,
        is_wanted: bool = ...,
        is_blocking: bool = ...,
    ) -> tuple[int, int]: ...
    def put_operations(
        self, operations: list[Operation], is_wanted: bool, is_blocking: bool, flush_now: bool
    ) -> int: ...
    def end_staged(
        self, one: OpenTransaction, is_commit: bool, is_wanted: bool, is_blocking: bool
    ) -> int: ...
    def finish_append(self, ticket: int, sync: bool, done: Done | None, wait: bool) -> int: ...
    def finish_unwritten(self, sync: bool, done: Done | None, wait: bool) -> int: ...
    def last_ticket(self) -> int: ...
    def ensure_usable(self) -> None: ...
    def checked(self, body: Buffer) -> bytes: ...

def check_id(number: object) -> None: ...
