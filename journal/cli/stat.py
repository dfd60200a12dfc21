"""`journal stat`: the figures of a journal."""

from __future__ import annotations

import json
from typing import Any

import click

from journal.cli.folder import folder_options
from journal.commands.engine_options import takes_common_options
from journal.commands.output import example, write_figures
from journal.commands.progress import Progress
from journal.commands.sources import access_options, open_records
from journal.tools.stat import COMPACT_MIN_FILES, COMPACT_PERCENTAGE

__all__ = ["stat"]


@takes_common_options
@click.command(epilog=example("journal stat data/journal --json"))
@folder_options
@click.option(
    "--compact-min-files",
    type=click.IntRange(min=0),
    default=COMPACT_MIN_FILES,
    show_default=True,
    help="Data files before compaction is considered; 0 is never.",
)
@click.option(
    "--compact-percentage",
    type=click.IntRange(0, 100),
    default=COMPACT_PERCENTAGE,
    show_default=True,
    help="Percent of live bytes below which it is due.",
)
@click.option(
    "--replaceable",
    type=click.IntRange(0, 255),
    multiple=True,
    help="User type whose updates replace one another (the broker's: 34, 36). May be repeated.",
)
@access_options()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def stat(
    folder: str,
    *,
    is_live: bool,
    user_version: int,
    compact_min_files: int,
    compact_percentage: int,
    replaceable: tuple[int, ...],
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> None:
    """Print how many records and bytes SOURCE has.

    Also how many of them are live. SOURCE is a folder, or the URL of a database (JDBC or
    SQLAlchemy).
    """
    options: dict[str, Any] = {
        "user_version": user_version,
        "replaceable": frozenset(replaceable),
        "compact_min_files": compact_min_files,
        "compact_percentage": compact_percentage,
    }
    with (
        open_records(folder, given, is_live=is_live, **options) as records,
        Progress("stat") as progress,
    ):
        figures = records.stat(progress)
    if as_json:
        click.echo(json.dumps(figures.as_object()))
    else:
        write_figures(figures)
