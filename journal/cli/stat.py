"""`journal stat`: the figures of a folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from journal.cli.engine_options import takes_common_options
from journal.cli.folder import Progress, example, folder_options, open_folder
from journal.tools.stat import COMPACT_MIN_FILES, COMPACT_PERCENTAGE, stat_folder

if TYPE_CHECKING:
    from journal.tools.stat import FolderStat

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
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def stat(
    folder: str,
    prefix: str | None,
    extension: str | None,
    user_version: int,
    *,
    is_live: bool,
    compact_min_files: int,
    compact_percentage: int,
    replaceable: tuple[int, ...],
    as_json: bool,
) -> None:
    """Print how many files, records and bytes the journal in DIR has, and how many are live."""
    plan = open_folder(folder, prefix, extension, is_live=is_live)
    with Progress("stat") as progress:
        figures = stat_folder(
            plan,
            user_version=user_version,
            replaceable=frozenset(replaceable),
            compact_min_files=compact_min_files,
            compact_percentage=compact_percentage,
            progress=progress,
        )
    click.echo(json.dumps(asdict(figures)) if as_json else _table(figures))


def _table(figures: FolderStat) -> str:
    f = figures
    rows = {
        "files": f"{f.files} ({f.data_files} data, {f.free_files} free,"
        f" {f.reclaimable_files} to be reclaimed)",
        "records": f"{f.records} ({f.live_records} live, {f.live_updates} updates of them,"
        f" {f.dead_records} dead)",
        "with a checksum": f"{f.checksum_records}",
        "transactions": f"{f.prepared_transactions} prepared, {f.failed_transactions} failed",
        "bytes": f"{f.size_bytes} ({f.data_bytes} in data files)",
        "live bytes": f"{f.live_bytes} ({f.live_percentage} %)",
        "compaction": "due" if f.is_compaction_due else "not due",
        "damaged places": f"{f.damages}",
    }
    return "\n".join(f"{name:<16} {value}" for name, value in rows.items())
