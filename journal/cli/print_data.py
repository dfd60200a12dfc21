"""`journal print-data`: what a load would see, or every record of every file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from journal.cli.decoders import find_decoder
from journal.cli.folder import folder_options
from journal.cli.json_lines import live_objects, raw_objects
from journal.cli.plain_text import file_lines, live_lines
from journal.commands.engine_options import takes_common_options
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say, write_lines
from journal.commands.progress import Progress
from journal.commands.sources import access_options, open_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from journal.api import RecordDecoder
    from journal.errors import Damage
    from journal.reader import FileView
    from journal.tools.stored import StoredRecords

__all__ = ["print_data"]


@takes_common_options
@click.command(
    "print-data", epilog=example("journal print-data data/journal --format jsonl --decode")
)
@folder_options
@click.option("--raw", is_flag=True, help="Show every record in file order, not only live ones.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "jsonl", "ids"]),
    default="text",
    show_default=True,
    help="ids: one live record id a line, ascending.",
)
@click.option("--decode", is_flag=True, help="Read the bodies as the broker does.")
@click.option("--decoder", metavar="NAME", help="Decoder to use, where several are installed.")
@access_options()
def print_data(
    folder: str,
    *,
    is_live: bool,
    user_version: int,
    raw: bool,
    form: str,
    decode: bool,
    decoder: str | None,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Print the live records of the journal in SOURCE.

    Then come its prepared and failed transactions. SOURCE is a folder, or the URL of a database:
    `file` and `offset` are then its table and the row's seq. Writes nothing. Damage is named on
    standard error, and makes the exit status 1. The text is in the wording of Artemis's `data
    print`. With --raw a folder that a compaction was cut off in is shown as it is; without, as
    recovery will leave it.
    """
    if raw and form == "ids":
        raise click.UsageError("--format ids lists live records only; leave --raw out")
    reader = find_decoder(decoder) if decode or decoder else None
    with open_records(
        folder, given, is_live=is_live, user_version=user_version, is_on_disk=raw
    ) as records:
        if raw:
            return _print_raw(records, form, reader)
        return _print_live(records, form, reader)


def _print_live(records: StoredRecords, form: str, decoder: RecordDecoder | None) -> int:
    with Progress("load") as progress:
        if form == "ids":
            write_lines(str(record_id) for record_id in records.add_ids(progress))
        elif form == "jsonl":
            write_lines(live_objects(records, progress, decoder))
        elif decoder is not None:
            write_lines(
                decoder.print_surviving(records.records(progress), records.prepared, records.failed)
            )
        else:
            write_lines(live_lines(records, progress))
    return _report(
        records.damages,
        f"{records.delivered_count} records, {len(records.prepared)} prepared and"
        f" {len(records.failed)} failed transactions",
    )


def _print_raw(records: StoredRecords, form: str, decoder: RecordDecoder | None) -> int:
    count = file_count = 0

    def views() -> Iterator[FileView]:
        nonlocal count, file_count
        with Progress("read") as progress:
            for view in records.views(progress):
                yield view
                count += len(view)
                file_count += 1

    if form == "jsonl":
        write_lines(line for view in views() for line in raw_objects(view, decoder))
    elif decoder is not None:
        write_lines(decoder.print_files(records.name, views()))
    else:
        write_lines(file_lines(records.name, views()))
    return _report(records.damages, f"{count} records in {file_count} files")


def _report(damages: list[Damage], counts: str) -> int:
    """Name the damage, then the counts, on standard error; the exit status."""
    for damage in damages:
        say(str(damage))
    say(f"{counts}, {len(damages)} damaged places")
    return DAMAGED if any(not damage.torn for damage in damages) else 0
