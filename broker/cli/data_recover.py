"""`broker data recover`: salvage all messages that a journal still has bytes of, into a new one."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.stored_data import data_options, open_stored
from broker.options.layout import layout_of
from broker.recovery.recover_messages import MessageRecovery
from broker.storage.open import messages_options
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say
from journal.commands.progress import Progress
from journal.commands.session import loaded_journal
from journal.commands.sources import refuse_locked
from journal.compaction_recovery import plan_recovery
from journal.errors import UnsupportedFormat, WrongUse
from journal.folder import guess_name
from journal.reader import read_file
from journal.tools.recover import recover_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.storage.layout import Layout
    from journal.folder import JournalFile
    from journal.reader import FileView, RawRecord

__all__ = ["recover"]

PARTIAL_PREFIX: Final = "recover."
FILE_SIZE_DEFAULT: Final = 10 * 1024 * 1024  # journal-file-size


@click.command("recover", epilog=example("broker data recover my-broker --target recovered"))
@data_options
@click.option(
    "--target",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the new message journal; empty or missing.",
)
@click.option(
    "--reclaimed",
    is_flag=True,
    help="Also what is left in files that were used again, or wait to be, and in files that a start"
    " refuses.",
)
@click.option(
    "--target-large-messages",
    "bodies",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the bodies of large messages that a history (journal-retention) has.",
)
def recover(
    folder: Path,
    *,
    target: Path,
    reclaimed: bool,
    bodies: Path | None,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Salvage messages out of a journal.

    Acknowledged and rolled back ones are among them. DIR is an instance, or a data folder;
    --journal alone names a bare journal. Nothing in it is touched. `broker data exp DIR --journal
    TARGET` makes XML of what was found. Exit status 1: something was damaged, or could not be
    written; standard error says what.
    """
    layout = layout_of(folder, given, needs_all=False)
    if target.exists() and any(target.iterdir()):
        raise WrongUse(f"--target {target} is not empty")
    if reclaimed and layout.database is not None:
        raise click.UsageError("--reclaimed is for files: deleted rows are gone")
    with ExitStack() as stack:
        source = _open(layout, target, stack, is_reclaimed=reclaimed)
        options = messages_options(target, file_size=source.file_size)
        journal, _ = stack.enter_context(loaded_journal(options))
        write_body = None if bodies is None else _Bodies(bodies).write
        recovery = stack.enter_context(
            closing(MessageRecovery(journal, journal.__contains__, say, write_body))
        )
        for record in source.records():
            recovery.take(record)
    report = recovery.report
    click.echo(
        f"recovered: {report.messages} messages, {report.references} references,"
        f" {report.page_transactions} transactions of pages; {report.repeated} found again"
    )
    return DAMAGED if source.damage_count or report.lost else 0


class _Source:
    """Everything readable of a journal, in file order.

    Attributes:
        views: its files, one after the other.
        file_size: bytes of a file that holds its largest record.
        damage_count: places that could not be read, so far; each was told.
    """

    def __init__(self, views: Iterable[FileView], file_size: int = FILE_SIZE_DEFAULT) -> None:
        self.views = views
        self.file_size = max(file_size, FILE_SIZE_DEFAULT)
        self.damage_count = 0

    def records(self) -> Iterator[RawRecord]:
        """Give what is as it was written."""
        for view in self.views:
            for record in view:
                if record.checksum == "ok" or (
                    record.checksum == "none" and record.verdict == "live"
                ):
                    yield record
            for damage in view.damages:
                say(str(damage))
                self.damage_count += not damage.torn

    def refuse(self, text: str) -> None:
        """A whole file cannot be read."""
        say(text)
        self.damage_count += 1


def _open(layout: Layout, target: Path, stack: ExitStack, *, is_reclaimed: bool) -> _Source:
    progress = stack.enter_context(Progress("recover"))
    if layout.database is not None:
        return _Source(stack.enter_context(open_stored(layout)).messages.views(progress))
    folder = layout.messages
    if target.resolve().is_relative_to(folder.resolve()):
        raise WrongUse(f"--target {target} is inside {folder}, which must not change")
    name = guess_name(folder, None, None)
    refuse_locked(str(folder), is_live=False)
    files = plan_recovery(folder, name).files
    file_size = max((file.size for file in files), default=0)
    if not is_reclaimed:
        source = _Source((), file_size)
        source.views = _views(files, source)
        return source
    # Beside the new journal, for it is as large; from then on it is read like any other.
    target.parent.mkdir(parents=True, exist_ok=True)
    made = tempfile.TemporaryDirectory(prefix=PARTIAL_PREFIX, dir=target.parent)
    salvaged = Path(stack.enter_context(made))
    with loaded_journal(messages_options(salvaged, file_size=file_size)) as (journal, _):
        report = recover_folder(folder, name, journal, progress=progress)
    source = _Source((), file_size)
    for damage in report.damages:
        say(str(damage))
        source.damage_count += not damage.torn
    for line in report.unwritten:
        source.refuse(f"not written: {line}")
    source.views = _views(plan_recovery(salvaged, guess_name(salvaged, None, None)).files, source)
    return source


def _views(files: Iterable[JournalFile], source: _Source) -> Iterator[FileView]:
    for file in files:
        if file.is_short:
            continue
        try:
            view = read_file(file.path)
        except UnsupportedFormat as error:
            source.refuse(f"{file.name}: {error}; --reclaimed reads it all the same")
            continue
        yield view


class _Bodies:
    """Bodies of large messages, appended to as their pieces come.

    Args:
        folder: made when it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun: set[int] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, message_id: int, piece: bytes) -> None:
        """Append a piece; the first one makes the file anew."""
        mode = "ab" if message_id in self._begun else "wb"
        self._begun.add(message_id)
        with (self._folder / f"{message_id}.msg").open(mode) as target:
            target.write(piece)
