"""`broker data exp`: export stored data as Artemis's XML."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.stored_data import data_options, open_stored
from broker.model.encoding import RecordFormatError
from broker.options.layout import layout_of
from broker.printing.live_messages import LiveMessages
from broker.printing.xml.export import UNDEFINED_PREFIX, Exporter
from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say
from journal.commands.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

__all__ = ["export"]

PARTIAL_SUFFIX: Final = ".partial"


@click.command("exp", epilog=example("broker data exp my-broker --output my-broker.xml"))
@data_options
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    default=Path("-"),
    help="File for the XML, replaced when all is written. [default: standard output]",
)
@click.option(
    "--undefined-prefix",
    default=UNDEFINED_PREFIX,
    show_default=True,
    help="Prefix, before the id, for queues with messages and no binding.",
)
@click.option("--live", "is_live", is_flag=True, help="Read even while a broker runs on it.")
def export(
    folder: Path,
    *,
    output: Path,
    undefined_prefix: str,
    is_live: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Export addresses, queues and messages as XML.

    Artemis's `data imp` reads it, and ours. DIR is an instance, on files or a database, or a data
    folder of ours or Artemis's. Nothing in it is touched. Exit status 1: something could not be
    exported; standard error says what.
    """
    layout = layout_of(folder, given)
    with (
        open_stored(layout, is_live=is_live) as stored,
        LiveMessages() as messages,
        _opened(output) as target,
        Progress("load") as loading,
        Progress("export") as exporting,
    ):
        exporter = Exporter(
            target.write,
            stored.find_large,
            say,
            lambda count: exporting(0, 0, count, 0),
            undefined_prefix,
        )
        try:
            messages.take(stored.messages.records(loading))
            report = exporter.run(stored.bindings.records(loading), messages, stored.pages())
        except RecordFormatError as error:
            raise click.ClickException(f"{folder}: {error}") from error
    damages = [*stored.bindings.damages, *stored.messages.damages]
    for damage in damages:
        say(str(damage))
    say(
        f"exported: {report.addresses} addresses, {report.queues} queues,"
        f" {report.messages} messages"
    )
    is_whole = not report.losses and all(damage.torn for damage in damages)
    return 0 if is_whole else DAMAGED


@contextmanager
def _opened(output: Path) -> Iterator[TextIO]:
    """Give where the text goes; a file of that name is there when all of it is."""
    if str(output) == "-":
        yield sys.stdout
        return
    partial = output.with_name(output.name + PARTIAL_SUFFIX)
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)
