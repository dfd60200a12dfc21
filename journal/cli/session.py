"""An open journal for the length of one command."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from journal.cli.progress import Progress
from journal.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from journal.loader import LoadResult
    from journal.options import JournalOptions

__all__ = ["loaded_journal"]


@contextmanager
def loaded_journal(options: JournalOptions) -> Iterator[tuple[Journal, LoadResult]]:
    """The journal, loaded, and what the load gave; closed at the end.

    Raises:
        JournalLocked: another process has it.
        JournalDamaged: acknowledged data is damaged and the options do not say to go on.
        JournalIOError: the disk fails, now or at the end.
    """
    with Journal(options) as journal:
        with Progress("load") as progress:
            result = journal.load(progress=progress)
        yield journal, result
