from collections.abc import Callable
from typing import NamedTuple

__all__ = ["IoEvent", "set_tap"]

class IoEvent(NamedTuple):
    call: str
    is_done: bool
    fd: int
    dirfd: int
    name: str
    target: str
    data: bytes
    size: int
    offset: int
    is_synced: bool

def set_tap(function: Callable[[IoEvent], int | None] | None) -> None: ...
