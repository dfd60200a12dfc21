"""`broker data print`: print bindings, messages and pages in Artemis's wording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from broker.cli.stored_data import TITLES, data_options, open_stored
from broker.model.encoding import RecordFormatError
from broker.model.wire import RecordType
from broker.options.layout import layout_of
from broker.printing.journal_decoder import JournalDecoder
from broker.printing.live_messages import LiveMessages
from broker.printing.print_data import section_lines
from broker.printing.print_pages import PagePrinter
from broker.storage.node_view import stored_node_id
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say, write_lines
from journal.commands.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from broker.cli.stored_data import StoredData
    from broker.storage.layout import Layout
    from journal.tools.stored import StoredRecords

__all__ = ["print_command"]

BINDINGS, MESSAGES, PAGING = TITLES
SKIPPED = ".... skipping"


@click.command("print", epilog=example("broker data print my-broker"))
@data_options
@click.option("--raw", is_flag=True, help="Show every record in file order, not only live ones.")
@click.option("--safe", is_flag=True, help="Leave out what users wrote: messages, names.")
@click.option(
    "--max-pages",
    type=click.IntRange(min=-1),
    default=-1,
    show_default=True,
    help="Of an address, one more than this; 0 is none, -1 all.",
)
@click.option("--skip-bindings", is_flag=True, help="Leave the bindings journal out.")
@click.option("--skip-journal", is_flag=True, help="Leave the message journal out.")
@click.option("--live", "is_live", is_flag=True, help="Read even while a broker runs on it.")
def print_command(
    folder: Path,
    *,
    raw: bool,
    safe: bool,
    max_pages: int,
    skip_bindings: bool,
    skip_journal: bool,
    is_live: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Print queues, addresses, messages, transactions and pages.

    The wording is Artemis's. DIR is an instance, on files or a database, or a data folder of ours
    or Artemis's.
    """
    layout = layout_of(folder, given)
    node_id = stored_node_id(layout.messages) if layout.database is None else None
    if node_id is not None:
        write_lines(section_lines(f"Server's ID={node_id}"))
    status = 0
    with open_stored(layout, is_live=is_live) as stored:
        for title, records, is_skipped in (
            (BINDINGS, stored.bindings, skip_bindings),
            (MESSAGES, stored.messages, skip_journal),
        ):
            write_lines(section_lines(title))
            if is_skipped:
                write_lines((SKIPPED, ""))
            else:
                status = max(status, _print(records, is_raw=raw, safe=safe))
    write_lines(section_lines(PAGING))
    if max_pages == 0:
        write_lines((SKIPPED, ""))
    else:
        _print_pages(layout, is_live=is_live, safe=safe, max_pages=max_pages)
    return status


def _print(records: StoredRecords, *, is_raw: bool, safe: bool) -> int:
    decoder = JournalDecoder()
    with Progress("read") as progress:
        if is_raw:
            write_lines(decoder.print_files(records.name, records.views(progress), safe=safe))
        else:
            write_lines(
                decoder.print_surviving(
                    records.records(progress), records.prepared, records.failed, safe=safe
                )
            )
    for damage in records.damages:
        say(str(damage))
    counts = "" if is_raw else f"{records.delivered_count} records, "
    say(
        f"{records.name}: {counts}{len(records.prepared)} prepared and {len(records.failed)}"
        f" failed transactions, {len(records.damages)} damaged places"
    )
    return DAMAGED if any(not damage.torn for damage in records.damages) else 0


def _print_pages(layout: Layout, *, is_live: bool, safe: bool, max_pages: int) -> None:
    # Opened again: what was printed was read once, as it went by.
    with open_stored(layout, is_live=is_live) as stored, LiveMessages() as journal:
        pages = stored.pages()
        if not pages:
            return
        try:
            journal.take(stored.messages.records(_quietly), only_pages=True)
            queue_ids = _queue_ids(stored)
        except RecordFormatError as error:
            raise click.ClickException(str(error)) from error
        write_lines(PagePrinter(journal, queue_ids, safe, max_pages).lines(pages))


def _queue_ids(stored: StoredData) -> set[int]:
    return {
        record.record_id
        for record in stored.bindings.records(_quietly)
        if record.user_type == RecordType.QUEUE_BINDING_RECORD
    }


def _quietly(files_done: int, files: int, bytes_done: int, size: int) -> None:
    """No second bar for what was read before."""
