"""`journal recover`: salvage what can be read into a new journal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from journal.commands.engine_options import engine_options, journal_options
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say
from journal.commands.progress import Progress
from journal.commands.session import loaded_journal
from journal.commands.sources import refuse_locked
from journal.errors import WrongUse
from journal.folder import guess_name
from journal.tools.recover import recover_folder

__all__ = ["recover"]


@click.command(epilog=example("journal recover data/journal --target data/recovered --only-live"))
@click.argument("folder", metavar="DIR")
@click.option(
    "--target",
    required=True,
    metavar="DIR2",
    type=click.Path(path_type=Path),
    help="Of the new journal; empty or missing.",
)
@click.option(
    "--with-ended/--only-live",
    default=True,
    show_default=True,
    help="Salvage also deleted, rolled back and uncommitted records, and those in free files;"
    " or only what a load gives.",
)
@click.option("--live", "is_live", is_flag=True, help="Read DIR even while somebody writes to it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@engine_options
def recover(
    folder: str,
    *,
    target: Path,
    with_ended: bool,
    is_live: bool,
    as_json: bool,
    prefix: str | None,
    extension: str | None,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Salvage the readable records of DIR into a journal in DIR2.

    DIR2 is new. Nothing in DIR is touched. Live records come first, then all others that can be
    read. So by default deleted records are live again, and a line says how many; --only-live leaves
    them out, and is right where the deletes are to be trusted. What could not be read is named on
    standard error. Exit status 1 if something was read but could not be written.
    """
    name = guess_name(folder, prefix, extension)
    refuse_locked(folder, is_live=is_live)
    source = Path(folder).resolve()
    if target.resolve().is_relative_to(source):
        raise WrongUse(f"--target {target} is inside {folder}, which must not change")
    if target.exists() and any(target.iterdir()):
        raise WrongUse(f"--target {target} is not empty")
    options = journal_options(target, given, prefix=name.prefix, extension=name.extension)
    with loaded_journal(options) as (journal, _), Progress("recover") as progress:
        report = recover_folder(
            folder,
            name,
            journal,
            user_version=options.user_version,
            with_ended=with_ended,
            progress=progress,
        )
    for damage in report.damages:
        say(str(damage))
    for line in report.unwritten:
        say(f"not written: {line}")
    if as_json:
        click.echo(json.dumps(asdict(report)))
    else:
        click.echo(
            f"{report.live} live records, {report.others} others and {report.prepared} prepared"
            f" transactions recovered; {len(report.damages)} damaged places,"
            f" {len(report.unwritten)} records not written"
        )
        if report.revived:
            click.echo(
                f"{report.revived} of the others had been deleted, and are live records again;"
                " --only-live leaves them out"
            )
    return DAMAGED if report.unwritten else 0
