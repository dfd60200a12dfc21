"""`journal print-data`: what a load would see, or every record of every file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from journal.cli.decoders import find_decoder
from journal.cli.engine_options import takes_common_options
from journal.cli.folder import Progress, example, folder_options, open_folder, write_lines
from journal.cli.guard import DAMAGED, say
from journal.cli.json_lines import live_objects, raw_objects
from journal.cli.plain_text import file_lines, live_lines
from journal.index import RecordIndex
from journal.loader import Loader
from journal.reader import read_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from journal.api import RecordDecoder
    from journal.errors import Damage
    from journal.reader import FileView
    from journal.recovery import RecoveryPlan

__all__ = ["print_data"]


@takes_common_options
@click.command(
    "print-data", epilog=example("journal print-data data/journal --format jsonl --decode")
)
@folder_options
@click.option("--raw", is_flag=True, help="Every record in file order, not only what counts.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "jsonl", "ids"]),
    default="text",
    show_default=True,
    help="ids: one live record id a line, ascending.",
)
@click.option("--decode", is_flag=True, help="Read the bodies as the broker does.")
@click.option("--decoder", metavar="NAME", help="Who reads them, where several are installed.")
def print_data(
    folder: str,
    prefix: str | None,
    extension: str | None,
    user_version: int,
    *,
    is_live: bool,
    raw: bool,
    form: str,
    decode: bool,
    decoder: str | None,
) -> int:
    """Print the live records of the journal in DIR, then its prepared and failed transactions.

    Writes nothing. Damage is named on standard error, and makes the exit status 1. The text is in
    the wording of the reference's `data print`.
    """
    if raw and form == "ids":
        raise click.UsageError("--format ids is of the live view; leave --raw out")
    reader = find_decoder(decoder) if decode or decoder else None
    plan = open_folder(folder, prefix, extension, is_live=is_live)
    if raw:
        return _print_raw(plan, user_version, form, reader)
    return _print_live(plan, user_version, form, reader)


def _print_live(
    plan: RecoveryPlan, user_version: int, form: str, decoder: RecordDecoder | None
) -> int:
    with Progress("load") as progress:
        loader = Loader(
            plan.files,
            RecordIndex(),
            user_version=user_version,
            damage="quarantine",
            progress=progress,
        )
        result = loader.load()
    if form == "ids":
        write_lines(str(record_id) for record_id in loader.add_ids())
    elif form == "jsonl":
        write_lines(live_objects(result, loader, decoder))
    elif decoder is not None:
        write_lines(decoder.print_surviving(loader.records(), result.prepared, result.failed))
    else:
        write_lines(live_lines(result, loader))
    return _report(
        result.damages,
        f"{result.delivered_count} records, {len(result.prepared)} prepared and"
        f" {len(result.failed)} failed transactions",
    )


def _print_raw(
    plan: RecoveryPlan, user_version: int, form: str, decoder: RecordDecoder | None
) -> int:
    damages: list[Damage] = []
    count = 0

    def views() -> Iterator[FileView]:
        nonlocal count
        files = [file for file in plan.files if not file.is_short]
        with Progress("read") as progress:
            size = sum(file.size for file in files)
            done = 0
            for number, view in enumerate(read_folder(files, user_version=user_version), 1):
                yield view
                count += len(view)
                damages.extend(view.damages)
                done += view.size
                progress(number, len(files), done, size)

    if form == "jsonl":
        write_lines(line for view in views() for line in raw_objects(view, decoder))
    elif decoder is not None:
        write_lines(decoder.print_files(str(plan.folder), views()))
    else:
        write_lines(file_lines(str(plan.folder), views()))
    return _report(damages, f"{count} records in {len(plan.files)} files")


def _report(damages: list[Damage], counts: str) -> int:
    """Name the damage, then the counts, on standard error; the exit status."""
    for damage in damages:
        say(str(damage))
    say(f"{counts}, {len(damages)} damaged places")
    return DAMAGED if any(not damage.torn for damage in damages) else 0
