"""What can go wrong in a journal, by what the caller does about it.

    JournalError
    ├── WrongUse                  the caller's fault: mend the call (command lines exit 2)
    │   ├── OptionError           a value outside its range, or two that contradict
    │   ├── RecordTooLarge        the body does not fit one file or the buffer
    │   ├── UnknownRecord         update or delete of an id that is not live
    │   ├── DuplicateRecord       add of an id that is live
    │   ├── UnknownTransaction    commit, prepare or rollback of an id that is not open
    │   └── WrongState            not open, not loaded, or already so
    ├── TransactionFailed         an earlier operation of it failed: roll it back
    ├── JournalClosed             closed, or stopped by the failure that is its cause
    ├── JournalLocked             another process, or journal of this one, has it (exit 2)
    ├── UnsupportedFormat         a foreign format or user version (exit 2)
    ├── JournalDamaged            what was acknowledged cannot be read back (exit 1)
    └── JournalIOError            the device failed; also an OSError, with errno and file name
        └── JournalFull           no room for another file: the journal goes on without the record

A failed write or sync is final: the tail of the file is unknown, so the journal closes and every
waiter gets the same JournalIOError. Open it again to find out what survived.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = [
    "Damage",
    "DuplicateRecord",
    "JournalClosed",
    "JournalDamaged",
    "JournalError",
    "JournalFull",
    "JournalIOError",
    "JournalLocked",
    "OptionError",
    "RecordTooLarge",
    "TransactionFailed",
    "UnknownRecord",
    "UnknownTransaction",
    "UnsupportedFormat",
    "WrongState",
    "WrongUse",
    "not_loaded",
    "not_to_load",
    "not_to_open",
]


class JournalError(Exception):
    """Base of every error that the journal raises on purpose."""


class WrongUse(JournalError):
    """The call cannot be right, whatever the state of the disk."""


class OptionError(WrongUse, ValueError):
    """An option has a value that the journal cannot work with."""


class RecordTooLarge(WrongUse, ValueError):
    """A record with this body fits neither one file nor the buffer."""


class UnknownRecord(WrongUse, LookupError):
    """An update or delete names a record id that is not live."""


class DuplicateRecord(WrongUse, ValueError):
    """An add names a record id that is live already; ids are never used twice."""


class UnknownTransaction(WrongUse, LookupError):
    """A commit, prepare or rollback names a transaction that is not open."""


class WrongState(WrongUse, RuntimeError):
    """The operation needs the journal in another state; the text says which call comes first."""


class TransactionFailed(JournalError):
    """An earlier operation of the transaction failed; only a rollback is left."""


class JournalClosed(JournalError):
    """The journal is closed, or closed itself because of the error that is the cause."""


class JournalLocked(JournalError):
    """Another process, or another journal of this one, has the journal's folder."""


class UnsupportedFormat(JournalError):
    """A file has a format or user version that this journal does not read."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One place where a file does not hold what was written.

    Attributes:
        file: the file's name within the folder.
        offset: bytes from the start of the file to where the damage begins.
        size: bytes concerned; 0 when unknown.
        reason: one phrase for people.
        torn: it lies beyond what was ever acknowledged, as a crash leaves it.
    """

    file: str
    offset: int
    size: int
    reason: str
    torn: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}: {self.reason}"


class JournalDamaged(JournalError):
    """Acknowledged data cannot be read back; `damages` says where.

    `journal verify` lists all damage, `journal recover` salvages the rest into a new folder.
    """

    def __init__(self, damages: list[Damage]) -> None:
        self.damages = damages
        more = f" and {len(damages) - 1} more places" if len(damages) > 1 else ""
        super().__init__(
            f"damaged journal: {damages[0]}{more}; see `journal verify` and `journal recover`"
        )


class JournalIOError(JournalError, OSError):
    """The device or file system failed; errno, strerror and filename are set."""

    def __init__(self, error_number: int, what: str, name: str | None = None) -> None:
        OSError.__init__(self, error_number, f"{what}: {os.strerror(error_number)}", name)


class JournalFull(JournalIOError):
    """The disk has no room for the file that the record needs; nothing was appended.

    The journal goes on: it accepts deletes, the ends of transactions and what makes room besides,
    and everything else once there is room again.
    """


def not_to_open(what: str, state: str) -> WrongState:
    """Give the error of open() on what is not new.

    Args:
        what: "journal" or "store".
        state: its state.
    """
    if state in ("open", "loaded"):
        return WrongState(f"the {what} is open already")
    return WrongState(f"the {what} is {state}, and opens once: make another one")


def not_to_load(what: str, state: str) -> WrongState:
    """Give the error of load() on what is not open; arguments as of not_to_open()."""
    if state == "new":
        return WrongState(f"the {what} is new: call open() first, or use it in a `with` statement")
    if state == "loaded":
        return WrongState(f"the {what} is loaded already")
    return WrongState(f"the {what} is {state}: make another one")


def not_loaded(what: str, state: str) -> WrongState:
    """Give the error of a call that needs load() before; arguments as of not_to_open()."""
    if state == "new":
        return WrongState(f"the {what} is new: call open() or use `with`, then call load()")
    if state == "open":
        return WrongState(f"the {what} is open and not loaded: call load() first")
    return WrongState(f"the {what} is {state}: make another one")
