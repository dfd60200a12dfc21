"""`journal compact`: write the live records together and let the rest go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import click

from journal.cli.engine_options import engine_options
from journal.cli.folder import example
from journal.cli.progress import Progress
from journal.cli.session import opened_store
from journal.cli.sources import access_options, access_to, find_opener, is_url

if TYPE_CHECKING:
    from journal.journal import Journal

__all__ = ["compact"]


@click.command(epilog=example("journal compact data/journal --json"))
@click.argument("folder", metavar="SOURCE")
@access_options()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@engine_options
def compact(folder: str, *, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click's.
    """Compact the journal in SOURCE in place: live records are written together, dead ones go.

    May be killed at any point: what the journal holds is the same before, after and in between. In
    a database, where deleted records are gone at once, it tidies up what Artemis and crashes
    leave: rows of transactions that have ended, or that were left open.
    """
    if is_url(folder):
        what = "rows"
        with Progress("load") as progress:
            before, after = find_opener(folder).compact(access_to(folder, given), progress)
    else:
        what = "data files"
        before, after = _compact_folder(folder, given)
    if as_json:
        unit = what.removeprefix("data ")
        click.echo(json.dumps({f"{unit}_before": before, f"{unit}_after": after}))
    else:
        click.echo(f"{before} {what} before, {after} after")


def _compact_folder(folder: str, given: dict[str, Any]) -> tuple[int, int]:
    with opened_store(folder, given, must_exist=True) as store:
        journal = cast("Journal", store)
        with Progress("load") as progress:
            journal.load(progress=progress)
        before = journal.stats()["data_files"]
        with Progress("compact") as progress:
            journal.compact(progress)
        return before, journal.stats()["data_files"]
