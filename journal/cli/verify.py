"""`journal verify`: list all damage as FILE:OFFSET: reason."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from journal.cli.folder import folder_options
from journal.commands.engine_options import takes_common_options
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say
from journal.commands.progress import Progress
from journal.commands.sources import access_options, open_records

__all__ = ["verify"]


@takes_common_options
@click.command(epilog=example("journal verify data/journal"))
@folder_options
@access_options()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def verify(
    folder: str,
    *,
    is_live: bool,
    user_version: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Read all of the journal in SOURCE and print each damage.

    A line is FILE:OFFSET: what. SOURCE is a folder, or the URL of a database: then rows that
    contradict each other are named, as TABLE:SEQ: what. Writes nothing. Exit status 1 if there is
    any damage. Unacknowledged bytes that a crash leaves, such as a torn tail of files with
    checksums, are named on standard error and are not damage.
    """
    with (
        open_records(folder, given, is_live=is_live, user_version=user_version) as records,
        Progress("verify") as progress,
    ):
        report = records.verify(progress)
    if as_json:
        click.echo(json.dumps({"sound": report.is_sound, **asdict(report)}))
    else:
        for damage in report.damages:
            click.echo(damage)
    for damage in report.torn:
        say(str(damage))
    say(
        f"{report.file_count} files, {report.record_count} records,"
        f" {report.checksum_count} with a checksum, {len(report.damages)} damaged"
    )
    return 0 if report.is_sound else DAMAGED
