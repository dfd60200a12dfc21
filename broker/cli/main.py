"""`broker`: the command line of the broker.

A command is a module of this folder with a click command of its name, and a row in COMMANDS. The
module is imported when its command is called: `broker mask` does not wait for what `broker run`
needs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from broker.cli.exit_status import run
from journal.commands.groups import LazyGroup
from journal.commands.output import example
from journal.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMANDS", "broker", "main"]

# Command: its module, and the name of the click command there.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "create": ("broker.cli.create", "create"),
    "run": ("broker.cli.run", "run"),
    "reload": ("broker.cli.reload", "reload"),
    "user": ("broker.cli.user", "user"),
    "mask": ("broker.cli.mask", "mask"),
    "producer": ("broker.cli.messages", "producer"),
    "consumer": ("broker.cli.messages", "consumer"),
    "browser": ("broker.cli.messages", "browser"),
    "queue": ("broker.cli.queues", "queue"),
    "address": ("broker.cli.queues", "address"),
    "data": ("broker.cli.data", "data"),
    "bridge": ("broker.cli.bridge", "bridge"),
    "cluster": ("broker.cli.cluster", "cluster"),
    "trace": ("broker.cli.trace", "trace"),
    "scale-down": ("broker.cli.scale_down", "scale_down"),
    "ha": ("broker.cli.ha", "ha"),
    "manage": ("broker.cli.manage", "manage"),
    "check": ("broker.cli.check", "check"),
    "perf": ("broker.cli.perf", "perf"),
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("broker create my-broker --queues orders"),
)
@click.version_option(__version__, prog_name="broker")
def broker() -> None:
    """Create, run and manage instances of the broker."""


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(broker, "broker"))


if __name__ == "__main__":
    main()
