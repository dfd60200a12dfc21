"""Opens a store for one command: a journal in a folder, or the database of a URL."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from journal.commands.engine_options import journal_options
from journal.commands.progress import Progress
from journal.commands.sources import access_to, find_opener
from journal.errors import WrongUse
from journal.folder import JournalName, list_files
from journal.journal import Journal
from journal.tools.stored import is_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from journal.loaded import LoadResult
    from journal.options import JournalOptions
    from journal.tools.stored import Store

__all__ = ["compact_store", "loaded_journal", "loaded_store", "opened_store"]


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


@contextmanager
def opened_store(
    target: str,
    given: Mapping[str, Any],
    *,
    must_exist: bool = False,
    side: str = "",
    **changes: object,
) -> Iterator[Store]:
    """The store in a folder or behind a URL, open and not loaded; closed at the end.

    Args:
        target: folder or URL.
        given: the command's parameters: of engine_options() and access_options().
        must_exist: refuse a folder without a journal, a database without the table.
        side: as of access_options().
        changes: options of the journal that the command sets itself.

    Raises:
        WrongUse: there is none, and there must be.
        JournalLocked: somebody else has it.
        JournalIOError: the disk or the database fails, now or at the end.
    """
    if is_url(target):
        access = access_to(target, given, side)
        with find_opener(target).store(access, must_exist=must_exist) as store:
            yield store
        return
    if must_exist:
        changes["create_directory"] = False
    options = journal_options(target, given, **changes)
    if must_exist and not list_files(target, JournalName(options.prefix, options.extension)):
        raise WrongUse(f"{target}: no journal files")
    with Journal(options) as journal:
        yield journal


@contextmanager
def loaded_store(
    target: str,
    given: Mapping[str, Any],
    on_batch: Callable[[Sequence[Any]], object] | None = None,
    **how: Any,  # noqa: ANN401 - as of opened_store().
) -> Iterator[tuple[Store, LoadResult]]:
    """The same, loaded, and what the load gave.

    Args:
        target: folder or URL.
        given: the command's parameters.
        on_batch: as of RecordStore.load().
        how: as of opened_store().
    """
    with opened_store(target, given, **how) as store:
        with Progress("load") as progress:
            result = store.load(on_batch, progress=progress)
        yield store, result


def compact_store(target: str, given: Mapping[str, Any]) -> tuple[str, int, int]:
    """Compact what must be there.

    Args:
        target: folder or URL.
        given: the command's parameters, as of opened_store().

    Returns:
        What was counted, `data files` or `rows`; how many before and after.
    """
    if is_url(target):
        with Progress("load") as progress:
            before, after = find_opener(target).compact(access_to(target, given), progress)
        return "rows", before, after
    with opened_store(target, given, must_exist=True) as store:
        journal = cast("Journal", store)
        with Progress("load") as progress:
            journal.load(progress=progress)
        before = journal.stats()["data_files"]
        with Progress("compact") as progress:
            journal.compact(progress)
        return "data files", before, journal.stats()["data_files"]
