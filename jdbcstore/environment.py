"""What leases have of the machine: clocks, ids, threads; handed in with the database.

    Database(options, environment=…)   its leases and node managers use what that has

`Environment()` is the real one. With another one leases run on another clock, and their threads in
an order that somebody else decides. tests/house/test_seams.py finds what a lease reads elsewhere.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jdbcstore.clocks import boot_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["Environment", "Event", "Thread"]


class Event(Protocol):
    """What threads wait for; threading.Event is one."""

    def set(self) -> None:
        """Let all that wait go on, and those that come, until clear()."""

    def clear(self) -> None:
        """Let those that come wait."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False if the seconds are over before. None waits for ever."""


class Thread(Protocol):
    """Work that runs beside its starter."""

    def join(self) -> None:
        """Wait for its end."""

    def is_current(self) -> bool:
        """Whether the caller is this thread."""


class _MachineThread(threading.Thread):
    """A thread of the system, which no process waits for at its end."""

    def is_current(self) -> bool:
        return self is threading.current_thread()


def _start_thread(work: Callable[[], object], name: str) -> Thread:
    thread = _MachineThread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def _time_uuid() -> uuid.UUID:
    # The multicast bit: the number does not belong to a network card (RFC 4122, 4.5).
    return uuid.uuid1(node=random.SystemRandom().getrandbits(48) | 1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """See the module's text.

    Attributes:
        clock: seconds that never jump.
        wall_clock: this machine's time of day in seconds, to compare with the database's.
        random_uuid: makes ids that nothing else has, of version 4.
        time_uuid: makes ids of nodes, of version 1, without this machine's address in them.
        new_lock: makes what one thread at a time is in.
        new_event: makes what threads wait for.
        start_thread: runs work in a thread of some name.
    """

    clock: Callable[[], float] = boot_clock
    wall_clock: Callable[[], float] = time.time
    random_uuid: Callable[[], uuid.UUID] = uuid.uuid4
    time_uuid: Callable[[], uuid.UUID] = _time_uuid
    new_lock: Callable[[], AbstractContextManager[object]] = threading.Lock
    new_event: Callable[[], Event] = threading.Event
    start_thread: Callable[[Callable[[], object], str], Thread] = _start_thread
