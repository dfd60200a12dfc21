"""`broker run`: an instance's broker in the foreground, until a signal or a failed storage."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from broker.cli.instance import INSTANCE
from broker.cli.isolation import WatchedBroker
from broker.cli.logs import FORMATS, set_up
from broker.cli.serving import serve
from broker.config.unsupported import without_effect
from broker.errors import BrokerError
from broker.options.file import ConfigurationFile
from broker.options.from_config import broker_options, network_check_of, security_of
from broker.server.server import Broker
from broker.storage.layout import BRIDGES, BROKER_XML
from broker.transport.event_loop import loop_factory
from journal.commands.output import example, say

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run"]

log = logging.getLogger("broker")

# New containers before Python looks for cycles among them. A burst of messages has more than
# Python's default of 700 on their way at any time, half a dozen each, and none is in a cycle.
GC_THRESHOLD = 20_000


@click.command(epilog=example("broker run my-broker"))
@click.argument("instance", type=INSTANCE)
@click.option("--lenient", is_flag=True, help="Ignore unknown elements of broker.xml.")
@click.option("--verbose", is_flag=True, help="Log more.")
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Lines for people, or a JSON object a line.",
)
@click.pass_context
def run(
    context: click.Context, instance: Path, log_format: str, *, lenient: bool, verbose: bool
) -> None:
    """Run an instance's broker; prints a line when it serves.

    SIGTERM, SIGINT and SIGHUP stop it in good order; a second one ends the wait for clients
    (graceful-shutdown-enabled). Exit status 1: its storage failed.
    """
    set_up(log_format, verbose=verbose)
    file = ConfigurationFile(instance / BROKER_XML, lenient=lenient)
    config = file.load()
    # Paths in it are relative to the instance. Other users of the machine must not read its data.
    os.umask(0o027)
    _allow_connections()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
    ignored = without_effect(config)
    if ignored:
        log.warning("configured, and without effect in this version: %s", ", ".join(ignored))
    options = replace(broker_options(config), jms_bridges=instance / BRIDGES)

    async def main() -> int:
        log.info("event loop: %s", type(asyncio.get_running_loop()).__module__)
        network = network_check_of(config)
        make = partial(WatchedBroker, network=network) if network.is_needed else Broker
        broker = make(options, security=security_of(config), configuration=file)
        return await serve(broker, on_start=_tell)

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            status = runner.run(main())
    except BrokerError as error:
        # Found at the start: nothing was done yet.
        raise click.ClickException(str(error)) from None
    context.exit(status)


def _allow_connections() -> None:
    """Let the process have as many descriptors, one a connection, as it is allowed to.

    The usual 1024 are for programs that use select(2), which this one does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _tell(broker: Broker) -> None:
    _freeze()
    places = ", ".join(f"{one.options.host}:{one.port}" for one in broker.acceptors)
    web = "".join(f"; http://{one.host}:{one.port}" for one in broker.web)
    say(f"serving at {places}{web}" if places else f"serving, without an acceptor{web}")


def _freeze() -> None:
    """Leave what the start has made out of every later collection: it stays, and is much.

    Modules, classes and configuration are 46,000 objects, which a full collection looks through in
    20 ms, with every client waiting.
    """
    gc.collect()
    gc.freeze()
    log.debug("%d objects of the start are left out of cycle collections", gc.get_freeze_count())
