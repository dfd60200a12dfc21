"""Who can read record bodies: decoders found by the entry point group `quiver.journal.decoders`.

The journal never looks into a body. A product that does, such as the broker, registers a class.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, cast

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.loader import FailedTransaction, LiveRecord, PreparedTransaction
    from journal.reader import FileView

__all__ = ["GROUP", "RecordDecoder", "find_decoder"]

GROUP = "quiver.journal.decoders"


class RecordDecoder(Protocol):
    """What `print-data --decode` asks of a decoder. Nothing here raises on damaged bodies."""

    def decode(
        self, user_type: int, body: bytes, *, record_id: int, is_update: bool
    ) -> dict[str, Any] | None:
        """The record as JSON, or None for a user type it does not know."""

    def print_files(self, path: str, files: Iterable[FileView]) -> Iterator[str]:
        """Lines for every record of every file."""

    def print_surviving(
        self,
        committed: Iterable[LiveRecord],
        prepared: Iterable[PreparedTransaction],
        failed: Iterable[FailedTransaction],
    ) -> Iterator[str]:
        """Lines for what a load gave."""


def find_decoder(name: str | None) -> RecordDecoder:
    """The decoder of that name, or the only one there is.

    Raises:
        click.UsageError: there is none, or more than one to choose from.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name is None and len(found) == 1:
        name = next(iter(found))
    if name not in found:
        known = ", ".join(sorted(found)) or "none is installed"
        wanted = "which decoder?" if name is None else f"no decoder {name!r}"
        raise click.UsageError(f"{wanted} (known: {known}); choose with --decoder NAME")
    return cast("RecordDecoder", found[name].load()())
