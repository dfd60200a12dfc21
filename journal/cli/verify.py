"""`journal verify`: every damage as FILE:OFFSET: what."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from journal.cli.engine_options import takes_common_options
from journal.cli.folder import Progress, example, folder_options, open_folder
from journal.cli.guard import DAMAGED, say
from journal.tools.verify import verify_folder

__all__ = ["verify"]


@takes_common_options
@click.command(epilog=example("journal verify data/journal"))
@folder_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def verify(
    folder: str,
    prefix: str | None,
    extension: str | None,
    user_version: int,
    *,
    is_live: bool,
    as_json: bool,
) -> int:
    """Read all of the journal in DIR and print each damage as FILE:OFFSET: what.

    Writes nothing. Exit status 1 if there is any damage. A torn tail of files with checksums was
    never acknowledged: it is named on standard error, and is no damage.
    """
    plan = open_folder(folder, prefix, extension, is_live=is_live)
    with Progress("verify") as progress:
        report = verify_folder(plan, user_version=user_version, progress=progress)
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
