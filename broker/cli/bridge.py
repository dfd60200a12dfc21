"""`broker bridge`: run a JMS bridge alone, end orphans; bridges of a running broker: bridges.py."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from broker.bridges.jms.definition import read_definition
from broker.bridges.jms.errors import BridgeError
from broker.bridges.jms.orphan_recovery import recovered
from broker.bridges.jms.orphans import Outcome
from broker.bridges.jms.provider_types import make_bridge
from broker.bridges.jms.state import BridgeState
from broker.cli.bridges import COMMANDS
from broker.cli.logs import FORMATS, set_up
from journal.commands.output import example, say

if TYPE_CHECKING:
    from broker.bridges.jms.blocking.bridge import JMSBridge

__all__ = ["bridge"]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FAILED: Final = 1
LOOK_S: Final = 0.1


@click.group(no_args_is_help=False, epilog=example("broker bridge status"))
def bridge() -> None:
    """Run JMS bridges, and manage bridges of both kinds."""


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
@click.option("--restarted", is_flag=True, help="Both brokers were, since the bridge ran.")
@click.option("--vm-url", metavar="URL", help="Of the broker that vm:// in FILE leads to.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def recover(file: Path, vm_url: str | None, *, ends: bool, restarted: bool, is_json: bool) -> None:
    """List or end transactions that a bridge has left.

    They are prepared, and how each is to end follows from the log or from what is prepared. Without
    the log, what one side alone lists is in doubt until both brokers were restarted (--restarted).

    A bridge ends them by itself when it is started again. This is for one that is gone, also
    without its transaction log.
    """
    try:
        orphans = asyncio.run(
            recovered(read_definition(file), ends=ends, are_restarted=restarted, vm_url=vm_url)
        )
    except BridgeError as error:
        raise click.ClickException(str(error)) from None
    for one in orphans:
        prepared = sorted(role.value for role in one.prepared)
        row = {
            "transaction": one.transaction.hex(),
            "bridge": one.bridge,
            "prepared": prepared,
            "outcome": one.outcome.value,
            "reason": one.reason,
            "ended": ends and one.outcome is not Outcome.IN_DOUBT,
        }
        if is_json:
            click.echo(json.dumps(row))
        else:
            done = "ended" if row["ended"] else "to end"
            click.echo(
                f"{row['transaction']}  prepared at {' and '.join(prepared)}  "
                f"{done}: {row['outcome']}, because {one.reason}"
            )
    if not orphans and not is_json:
        say("no transaction is left")
    count = sum(one.outcome is Outcome.IN_DOUBT for one in orphans)
    if count and not is_json:
        say(f"in doubt: {count}; restart source and target, then use --restarted")
    if count and ends:
        click.get_current_context().exit(FAILED)


for _command in COMMANDS:
    bridge.add_command(_command)
