"""`broker bridge`: run a JMS bridge alone, look at those of a running broker, end orphans."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.bridges.jms.definition import read_definition
from broker.bridges.jms.errors import BridgeError
from broker.bridges.jms.orphan_recovery import recovered
from broker.bridges.jms.provider_types import make_bridge
from broker.bridges.jms.state import BridgeState
from broker.cli.connect import connected, connecting
from broker.cli.logs import FORMATS, set_up
from journal.commands.output import example, say

if TYPE_CHECKING:
    from broker.bridges.jms.blocking.bridge import JMSBridge
    from broker.client import Session

__all__ = ["bridge"]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FAILED: Final = 1
LOOK_S: Final = 0.1
# Column: attribute of management.
COLUMNS: Final = {
    "state": "state",
    "moved": "messageCount",
    "retried": "retriedMessageCount",
    "aborted": "abortedMessageCount",
    "in doubt": "inDoubtCount",
    "lag ms": "lag",
}


@click.group(no_args_is_help=False, epilog=example("broker bridge status"))
def bridge() -> None:
    """Run and manage JMS bridges."""


@bridge.command(epilog=example("broker bridge run orders.toml"))
@click.argument("file", type=FILE)
@click.option("--verbose", is_flag=True, help="Log more.")
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Lines for people, or a JSON object a line.",
)
@click.pass_context
def run(context: click.Context, file: Path, log_format: str, *, verbose: bool) -> None:
    """Run a bridge in this process until a signal.

    It prints a line when it is connected. SIGTERM and SIGINT stop it in good order. Exit status 1:
    it gave up, and says why.
    """
    set_up(log_format, verbose=verbose)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        made = make_bridge(read_definition(file))
        with made:
            context.exit(_wait(made, stopping))
    except BridgeError as error:
        raise click.ClickException(str(error)) from None


def _wait(made: JMSBridge, stopping: threading.Event) -> int:
    """Wait for a signal, or until the bridge gives up; the exit status."""
    told = False
    while not stopping.wait(LOOK_S):
        state = made.state
        if state is BridgeState.FAILED:
            click.echo(f"{made.options.name}: {made.why}", err=True)
            return FAILED
        if state is BridgeState.STARTED and not told:
            told = True
            say(f"bridging: {made.options.name}, {made.snapshot()['mode']}")
    return 0


@bridge.command(epilog=example("broker bridge recover orders.toml --end"))
@click.argument("file", type=FILE)
@click.option("--end", "ends", is_flag=True, help="End them as shown; the bridge must not run.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def recover(file: Path, *, ends: bool, is_json: bool) -> None:
    """List or end transactions that a bridge has left.

    They are prepared, and how each is to end follows from the log or from what is prepared.

    A bridge ends them by itself when it is started again. This is for one that is gone, also
    without its transaction log.
    """
    try:
        orphans = asyncio.run(recovered(read_definition(file), ends=ends))
    except BridgeError as error:
        raise click.ClickException(str(error)) from None
    for one in orphans:
        prepared = sorted(role.value for role in one.prepared)
        row = {
            "transaction": one.transaction.hex(),
            "bridge": one.bridge,
            "prepared": prepared,
            "outcome": "commit" if one.is_committed else "roll back",
            "reason": one.reason,
            "ended": ends,
        }
        if is_json:
            click.echo(json.dumps(row))
        else:
            done = "ended" if ends else "to end"
            click.echo(
                f"{row['transaction']}  prepared at {' and '.join(prepared)}  "
                f"{done}: {row['outcome']}, because {one.reason}"
            )
    if not orphans and not is_json:
        say("no transaction is left")


def _names(session: Session, name: str | None) -> list[str]:
    known: list[str] = session.attribute("broker", "JMSBridgeNames")
    if name is not None and name not in known:
        raise click.ClickException(
            f"no JMS bridge {name!r}; the broker has {', '.join(known) or 'none'}"
        )
    return known if name is None else [name]


@bridge.command(epilog=example("broker bridge status"))
@connecting
@click.argument("name", required=False)
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def status(
    url: str, user: str | None, password: str | None, name: str | None, *, is_json: bool
) -> None:
    """Show state and counters of the JMS bridges of a running broker."""
    with connected(url, user, password) as session:
        rows = [
            {"name": one}
            | {
                column: session.attribute(f"jmsbridge.{one}", attribute)
                for column, attribute in COLUMNS.items()
            }
            for one in _names(session, name)
        ]
    if is_json:
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
        return
    _table([dict(zip(("name", *COLUMNS), ("name", *COLUMNS), strict=True)), *rows])


def _table(rows: list[dict[str, Any]]) -> None:
    texts = [["-" if value is None else str(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for line in texts:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


@bridge.command(epilog=example("broker bridge why orders"))
@connecting
@click.argument("name")
def why(url: str, user: str | None, password: str | None, name: str) -> None:
    """Say why a JMS bridge of a running broker moves nothing."""
    with connected(url, user, password) as session:
        (one,) = _names(session, name)
        reason = session.attribute(f"jmsbridge.{one}", "why")
    click.echo(reason or "it moves messages")


def _operation(verb: str, text: str) -> click.Command:
    """Make a command that calls an operation."""

    @click.command(verb, help=text, epilog=example(f"broker bridge {verb} orders"))
    @connecting
    @click.argument("name")
    def call(url: str, user: str | None, password: str | None, name: str) -> None:
        with connected(url, user, password) as session:
            (one,) = _names(session, name)
            session.manage(f"jmsbridge.{one}", verb, timeout_s=None)

    return call


for _verb, _text in (
    ("pause", "Pause a JMS bridge of a running broker."),
    ("resume", "Resume a paused JMS bridge."),
    ("start", "Start a stopped JMS bridge of a running broker."),
    ("stop", "Stop a JMS bridge, after the batch on its way."),
):
    bridge.add_command(_operation(_verb, _text))
