"""`journal export` and `journal import`: the records as JSON lines, and back."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

import click

from journal.cli.folder import folder_options
from journal.commands.engine_options import engine_options, takes_common_options
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say, write_lines
from journal.commands.progress import Progress
from journal.commands.session import loaded_store
from journal.commands.sources import access_options, open_records
from journal.tools.transfer import Importer, TransferTarget, export_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["export", "import_lines"]


@takes_common_options
@click.command(epilog=example("journal export data/journal > records.jsonl"))
@folder_options
@access_options()
def export(
    folder: str,
    *,
    is_live: bool,
    user_version: int,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Write the records of the journal in SOURCE as JSON lines.

    That is live records and prepared transactions. SOURCE is a folder, or the URL of a database.
    Lossless: `journal import` makes the same journal of them. Writes nothing to SOURCE. Damage is
    named on standard error, and makes the exit status 1.
    """
    with (
        open_records(folder, given, is_live=is_live, user_version=user_version) as records,
        Progress("load") as progress,
    ):
        write_lines(export_lines(records, progress))
    for damage in records.damages:
        say(str(damage))
    say(
        f"{records.delivered_count} records and {len(records.prepared)} prepared transactions;"
        f" {len(records.failed)} failed transactions left out;"
        f" {len(records.damages)} damaged places"
    )
    return DAMAGED if any(not damage.torn for damage in records.damages) else 0


@click.command("import", epilog=example("journal export data/journal | journal import data/copy"))
@click.argument("folder", metavar="TARGET")
@click.argument("source", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@click.option(
    "--batch",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Commit after so many records; 0: all of them or none.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@access_options()
@engine_options
def import_lines(
    folder: str,
    source: str | None,
    *,
    batch: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> None:
    """Add records from JSON lines to the journal in TARGET.

    They are in FILE, or on standard input. The journal may be new.

    TARGET is a folder, or the URL of a database (JDBC or SQLAlchemy).

    All of them or none: the first bad line ends the import, is named, and nothing is imported (with
    --batch, the lines up to the last commit, which are named too).
    """
    fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC) if source not in (None, "-") else os.dup(0)
    with os.fdopen(fd, "rb") as lines, loaded_store(folder, given) as (journal, result):
        target = TransferTarget(journal, [tx.tx_id for tx in result.prepared], batch=batch)
        with Progress("import") as progress:
            report = Importer(target).run(_counted(lines, progress))
    if as_json:
        click.echo(json.dumps(asdict(report)))
    else:
        click.echo(
            f"{report.adds} adds, {report.updates} updates and {report.prepared} prepared"
            f" transactions imported",
            file=sys.stdout,
        )
    if report.lone_updates:
        say(f"{report.lone_updates} updates are of records that are not there")
    if report.doubled_adds:
        say(f"{report.doubled_adds} adds are of records that were added before")
    if report.failed:
        say(f"{report.failed} failed transactions in the input passed over")


def _counted(lines: IO[bytes], progress: Progress) -> Iterator[bytes]:
    """The lines, and how far they are: of a file in bytes of its size, of a pipe in bytes."""
    size = os.fstat(lines.fileno()).st_size  # 0 of a pipe.
    done = 0
    for line in lines:
        yield line
        done += len(line)
        progress(0, 1, done, max(size, done) if size else 0)
