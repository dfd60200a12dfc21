"""`journal compact`: copy the live records into few files and delete the rest."""

from __future__ import annotations

import json
from typing import Any

import click

from journal.commands.engine_options import engine_options
from journal.commands.output import example
from journal.commands.session import compact_store
from journal.commands.sources import access_options

__all__ = ["compact"]


@click.command(epilog=example("journal compact data/journal --json"))
@click.argument("folder", metavar="SOURCE")
@access_options()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@engine_options
def compact(folder: str, *, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click's.
    """Compact the journal in SOURCE in place.

    Live records are written together, dead ones go. May be killed at any point: what the journal
    holds is the same before, after and in between. In a database, where deleted records are gone at
    once, it tidies up what Artemis and crashes leave: rows of transactions that have ended, or that
    were left open.

    Counted are data files, with the one that is appended to next. Free files, which are made ahead
    or wait to be used again, are not; `journal stat` calls that next one free while it is empty.
    """
    what, before, after = compact_store(folder, given)
    if as_json:
        unit = what.removeprefix("data ")
        click.echo(json.dumps({f"{unit}_before": before, f"{unit}_after": after}))
    else:
        # The journal is open: the file after the copied ones is taken, and may be empty.
        more = "" if what == "rows" else ", with the one that is appended to next; no free ones"
        click.echo(f"{before} {what} before, {after} after{more}")
