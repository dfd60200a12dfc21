"""`replay` as an operation: its times, and what of its work is told."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from broker.management.errors import ManagementError

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.recovery.replay import Replay

__all__ = ["replay_all", "replay_between"]

# As in the names of a history's files.
TIME_FORMAT: Final = "%Y%m%d%H%M%S"


def replay_all(
    replay: Replay, address: str, target: str | None, filter: str | None
) -> Generator[float | None, None, None]:
    """Send again all that the history has of an address.

    Raises:
        BrokerError: see `broker.recovery.replay`.
        JournalError: likewise.
    """
    yield from replay.send(address, target, filter or None)


def replay_between(
    replay: Replay, start: str, end: str, address: str, target: str | None, filter: str | None
) -> Generator[float | None, None, None]:
    """Send again what files have that were copied from `start` to `end`, local yyyyMMddHHmmss.

    Raises:
        ManagementError: a time is none, or they are in the wrong order.
        BrokerError: see `broker.recovery.replay`.
        JournalError: likewise.
    """
    first, last = _time("startScanDate", start), _time("endScanDate", end)
    if first > last:
        raise ManagementError(f"startScanDate {start} is behind endScanDate {end}")
    yield from replay.send(address, target, filter or None, first=first, last=last)


def _time(name: str, text: str) -> datetime:
    try:
        if len(text) != len("yyyyMMddHHmmss"):
            raise ValueError
        return datetime.strptime(text, TIME_FORMAT)  # noqa: DTZ007 - local time is the format
    except ValueError:
        raise ManagementError(f"{name} {text!r} is not in the form yyyyMMddHHmmss") from None
