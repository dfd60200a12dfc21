"""`journal append`: add records, and print the id of each once it is durable."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from journal.commands.engine_options import engine_options
from journal.commands.output import example
from journal.commands.parameters import SIZE
from journal.commands.progress import Progress
from journal.commands.session import loaded_store
from journal.commands.sources import access_options
from journal.errors import WrongUse
from journal.tools.answers import Answers, write_all
from journal.tools.feed import feed_lines

if TYPE_CHECKING:
    from journal.tools.stored import Store

__all__ = ["append"]

ID_MAX: Final = 2**63 - 1
SIZE_DEFAULT: Final = 1024
FLUSH_EVERY: Final = 32  # records between two looks at what is durable


@click.command(epilog=example("journal append data/mine --count 1000 --size 1024"))
@click.argument("folder", metavar="TARGET")
@click.option(
    "--count",
    type=click.IntRange(min=0),
    help="Records to add. [default: one for every line of standard input]",
)
@click.option("--size", type=SIZE, help=f"Bytes of each, with --count. [default: {SIZE_DEFAULT}]")
@click.option(
    "--user-type", type=click.IntRange(0, 255), default=1, show_default=True, help="Of each."
)
@click.option(
    "--sync/--no-sync",
    default=True,
    show_default=True,
    help="Print an id once the record is durable, or once it is accepted.",
)
@access_options()
@engine_options
def append(
    folder: str,
    *,
    count: int | None,
    size: int | None,
    user_type: int,
    sync: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> None:
    """Add COUNT records of SIZE bytes, or one for every line.

    For each it prints `ACK ID`.

    TARGET is a folder, or the URL of a database (JDBC or SQLAlchemy).

    An id is printed as soon as its record is durable, and not before; ids go on above all that the
    journal has seen.
    """
    if size is not None and count is None:
        raise click.UsageError("--size is the size of --count records; lines have their own")
    if size is not None and size < 0:
        raise click.UsageError(f"--size is {size}; at least 0")
    with loaded_store(folder, given) as (journal, result):
        appender = _Appender(journal, max(result.max_id, 0), user_type, is_synced=sync)
        if count is None:
            appender.append_lines()
        else:
            appender.append_count(count, SIZE_DEFAULT if size is None else size)


class _Appender:
    """Adds records with rising ids."""

    def __init__(self, journal: Store, last_id: int, user_type: int, *, is_synced: bool) -> None:
        self.journal = journal
        self.last_id = last_id
        self.user_type = user_type
        self.is_synced = is_synced
        self.answers = Answers(journal, write_all(sys.stdout.fileno()))

    def append_count(self, count: int, size: int) -> None:
        # Not among the answers, where these go to a terminal, too.
        with Progress("append", is_wanted=not sys.stdout.isatty()) as progress:
            for number in range(count):
                self.add(_body(self.last_id + 1, size))
                if number % FLUSH_EVERY == 0:
                    self.answers.flush()
                    progress(0, 1, number, count)
                while self.answers.is_full:
                    self.answers.wait()
            self.answers.drain()
            progress(1, 1, count, count)

    def append_lines(self) -> None:
        feed_lines(
            0,
            self.journal,
            self.answers,
            self.add,
            line_size_max=self.journal.record_size_max,
        )

    def add(self, body: bytes) -> None:
        if self.last_id == ID_MAX:
            self.answers.drain()  # Those that came before are in.
            raise WrongUse(f"no id is left above {ID_MAX}; `journal exec` takes ids of your own")
        self.last_id += 1
        if self.is_synced:
            self.journal.add(
                self.last_id,
                self.user_type,
                body,
                sync=True,
                done=self.answers.done,
                wait=False,
            )
            self.answers.promise(f"ACK {self.last_id}")
        else:
            self.journal.add(self.last_id, self.user_type, body, sync=False, wait=False)
            self.answers.give(f"ACK {self.last_id}")


def _body(record_id: int, size: int) -> bytes:
    """The id again and again, so that readers of the record can tell whether it is whole."""
    pattern = b"%d " % record_id
    return (pattern * (size // len(pattern) + 1))[:size]
