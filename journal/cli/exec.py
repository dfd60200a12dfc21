"""`journal exec`: run operations, one a line, and answer each once it is durable."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click

from journal.commands.engine_options import engine_options
from journal.commands.output import example
from journal.commands.session import loaded_store
from journal.commands.sources import access_options
from journal.tools.answers import Answers, write_all
from journal.tools.feed import feed_lines
from journal.tools.script import Script

__all__ = ["exec_script"]

LINE_ROOM: Final = 1 << 16  # a body too large by less is told from a line that is none
OPERATIONS: Final = """\b
Operations and their answers:
  add TYPE HEX [id=ID]    ACK add ID       prepare X HEX     ACK prepare X
  update ID TYPE HEX      ACK update ID    commit X          ACK commit X
  delete ID               ACK delete ID    rollback X        ACK rollback X
  begin                   TX X             compact, sync     ACK compact, ACK sync
  ... tx=X                OK ... ID        reclaim           ACK reclaim FILES

"""
EXAMPLE: Final = r"printf 'add 1 cafe\nbegin\nadd 1 beef tx=2\ncommit 2\n' | journal exec data/mine"


@click.command("exec", epilog=OPERATIONS + example(EXAMPLE))
@click.argument("folder", metavar="TARGET")
@click.argument("script", metavar="[SCRIPT]", required=False, type=click.Path(allow_dash=True))
@click.option(
    "--sync/--no-sync",
    default=True,
    show_default=True,
    help="Answer an operation once it is durable, or once it is accepted.",
)
@access_options()
@engine_options
def exec_script(folder: str, script: str | None, *, sync: bool, **given: Any) -> None:  # noqa: ANN401 - click's.
    """Run the operations of a script on the journal in TARGET.

    They are in SCRIPT, or on standard input.

    TARGET is a folder, or the URL of a database (JDBC or SQLAlchemy).

    One operation a line, one answer line an operation, in their order, each printed only once the
    operation is durable. What is wrong is answered `ERR` and why, and the script goes on.
    """
    source = os.open(script, os.O_RDONLY | os.O_CLOEXEC) if script not in (None, "-") else 0
    try:
        with loaded_store(folder, given) as (journal, result):
            answers = Answers(journal, write_all(sys.stdout.fileno()))
            operations = Script(journal, answers, result.max_id, is_synced=sync)
            feed_lines(
                source,
                journal,
                answers,
                operations.run,
                line_size_max=2 * journal.record_size_max + LINE_ROOM,
            )
    finally:
        if source:
            os.close(source)
