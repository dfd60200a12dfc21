"""`journal copy`: the records of one store into another."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from journal.cli.decoders import left_beside
from journal.commands.engine_options import engine_options, shown_by
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say
from journal.commands.progress import Progress
from journal.commands.session import opened_store
from journal.commands.sources import access_options, open_records
from journal.tools.copy import Copier
from journal.tools.stored import is_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from journal.delivery import LiveRecord
    from journal.tools.stored import StoredRecords

__all__ = ["copy"]


@click.command(epilog=example("journal copy data/journal sqlite:///data/broker.db"))
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with a copy that was cut short: what TARGET holds must be a beginning of SOURCE.",
)
@click.option("--merge", is_flag=True, help="Add to what TARGET holds; no id may be in both.")
@click.option(
    "--live",
    "is_live",
    is_flag=True,
    help="Read a folder even while somebody writes to it; the newest records may be cut short.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@access_options("source")
@access_options("target")
@engine_options
def copy(
    source: str,
    target: str,
    *,
    resume: bool,
    merge: bool,
    is_live: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Copy the records of SOURCE to TARGET.

    Live ones come in order, then prepared transactions. Each is a folder, or the URL of a database
    (JDBC or SQLAlchemy). Lossless, and all of it is durable when the command ends. SOURCE is only
    read. TARGET may be new, and must be empty. A copy that was cut short, by whatever, is ended by
    the same command with --resume. The options of writing are TARGET's; a folder keeps the names
    and the file size of SOURCE's files. Damage of SOURCE is named on standard error, and makes the
    exit status 1.
    """
    if resume and merge:
        raise click.UsageError("--resume or --merge, not both")
    if not is_url(source):
        given |= shown_by(source, {name: value for name, value in given.items() if value})
    version = given["user_version"]
    # The target is closed, and all its appends are durable, before the report says so.
    with ExitStack() as stack:
        records = stack.enter_context(
            open_records(source, given, is_live=is_live, side="source", user_version=version)
        )
        copier = Copier(_shown(records, stack))
        store = stack.enter_context(opened_store(target, given, side="target"))
        loaded = store.load(copier.compare if resume else None)
        copier.begin(loaded, is_resumed=resume, is_merged=merge)
        copier.write_records(store, is_merged=merge)
        copier.write_prepared(store, records.prepared)
        report = copier.finish(store)
    report.failed, report.damaged = len(records.failed), len(records.damages)
    for damage in records.damages:
        say(str(damage))
    if as_json:
        click.echo(json.dumps(asdict(report)))
    else:
        click.echo(
            f"{report.adds} adds, {report.updates} updates and {report.prepared} prepared"
            f" transactions copied"
        )
    if report.present:
        say(f"{report.present} records and prepared transactions were there already")
    left = [] if is_url(source) else left_beside(Path(source))
    if left:
        names = " and ".join(map(str, left))
        say(f"not copied: {names}: records of this journal refer to what is there")
    if report.failed:
        say(f"{report.failed} failed transactions left out")
    return DAMAGED if any(not damage.torn for damage in records.damages) else 0


def _shown(records: StoredRecords, stack: ExitStack) -> Iterator[LiveRecord]:
    """The records, with a bar: of a folder, which is read first, of records; of a table, of rows.

    Args:
        records: of the source.
        stack: takes the bars off the terminal at its end.
    """
    reading = stack.enter_context(Progress("read"))
    copying = stack.enter_context(Progress("copy"))
    for count, record in enumerate(records.records(reading), 1):
        yield record
        if records.delivered_count:
            copying(0, 1, count, records.delivered_count)
