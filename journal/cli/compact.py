"""`journal compact`: write the live records together and let the rest go."""

from __future__ import annotations

import json
from typing import Any

import click

from journal.cli.engine_options import engine_options, journal_options
from journal.cli.folder import example
from journal.cli.session import loaded_journal
from journal.errors import WrongUse
from journal.folder import JournalName, list_files

__all__ = ["compact"]


@click.command(epilog=example("journal compact data/journal --json"))
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@engine_options
def compact(folder: str, *, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click's.
    """Compact the journal in DIR in place: live records are written together, dead ones go.

    May be killed at any point: what the journal holds is the same before, after and in between.
    """
    options = journal_options(folder, given, create_directory=False)
    name = JournalName(options.prefix, options.extension)
    if not list_files(folder, name):
        raise WrongUse(f"{folder}: no journal files")
    with loaded_journal(options) as (journal, _):
        before = journal.stats()["data_files"]
        journal.compact()
        after = journal.stats()["data_files"]
    if as_json:
        click.echo(json.dumps({"files_before": before, "files_after": after}))
    else:
        click.echo(f"{before} data files before, {after} after")
