"""`broker data imp`: import an export into a running broker."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click
from click.core import ParameterSource

from broker.cli.connect import connected, connecting
from broker.cli.importing import Importer
from broker.cli.instance import INSTANCE
from broker.cli.offline import broker_on
from broker.client import AckMode
from broker.model.counted_text import counted
from broker.printing.xml.reader import DocumentError, read_document, read_sorted
from journal.commands.output import example, say
from journal.commands.progress import Progress

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["imp"]

# Who asks a broker that runs.
LOGIN: Final = ("url", "user", "password")


@click.command("imp", epilog=example("broker data imp --input my-broker.xml --user me"))
@click.argument("folder", metavar="[DIR]", required=False, type=INSTANCE)
@connecting
@click.option(
    "--input",
    "source",
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="XML file; - is standard input.",
)
@click.option(
    "--commit-interval",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Messages per transaction.",
)
@click.option("--transaction", "is_one", is_flag=True, help="All messages in one transaction.")
@click.option("--sort", is_flag=True, help="Send messages by their ids; for exports of 1.x.")
@click.option(
    "--legacy-prefixes",
    is_flag=True,
    help="Keep jms.queue. and jms.topic. before names of 1.x.",
)
@click.pass_context
def imp(
    context: click.Context,
    folder: Path | None,
    url: str,
    user: str | None,
    password: str | None,
    source: Path,
    commit_interval: int,
    *,
    is_one: bool,
    sort: bool,
    legacy_prefixes: bool,
) -> None:
    """Import addresses, queues and messages from XML.

    It is of our `data exp`, or of Artemis's. They go to the running broker at --url, or into DIR:
    an instance or a data folder that no broker runs on. A private broker is started on DIR for the
    duration of the import. Messages get new ids. An address or queue of the same name stays as it
    is. Exit status 1: the broker refused.
    """
    if sort and str(source) == "-":
        raise click.UsageError("--sort reads twice: give a file")
    if folder is not None and any(
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in LOGIN
    ):
        raise click.UsageError(
            "--dir imports into the data of a stopped broker: leave --url and --user out"
        )
    with ExitStack() as stack:
        document = cast("BinaryIO", stack.enter_context(click.open_file(str(source), "rb")))
        if folder is not None:
            url, user, password = stack.enter_context(broker_on(folder))
        management = stack.enter_context(connected(url, user, password))
        session = stack.enter_context(connected(url, user, password, AckMode.TRANSACTED))
        progress = stack.enter_context(Progress("import"))
        importer = Importer(
            session,
            management,
            commit_interval=0 if is_one else commit_interval,
            keep_prefixes=legacy_prefixes,
            on_message=lambda count: progress(0, 0, count, 0),
        )
        _run(importer, document, source, sort=sort)


def _run(importer: Importer, document: BinaryIO, source: Path, *, sort: bool) -> None:
    read = read_sorted if sort else read_document
    try:
        count = importer.run(read(document))
    except DocumentError as error:
        raise click.ClickException(f"{source}: {error}; {importer.committed} imported") from error
    except BaseException:
        say(f"imported before: {counted(importer.committed, 'message')}")
        raise
    say(f"imported: {counted(count, 'message')}")
