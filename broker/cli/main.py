"""`broker`: the command line of the broker.

A command is a module of this folder with a click command of its name, and a row in COMMANDS. The
module is imported when its command is called: `broker mask` does not wait for what `broker run`
needs.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Final, cast

import click

from broker.cli.guard import run
from journal.cli.folder import example
from journal.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMANDS", "broker", "main"]

# Command: its module in this folder, and the name of the click command there.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "create": ("create", "create"),
    "run": ("run", "run"),
    "reload": ("reload", "reload"),
    "user": ("user", "user"),
    "mask": ("mask", "mask"),
    "producer": ("messages", "producer"),
    "consumer": ("messages", "consumer"),
    "browser": ("messages", "browser"),
    "queue": ("queues", "queue"),
    "address": ("queues", "address"),
    "data": ("data", "data"),
    "check": ("check", "check"),
    "perf": ("perf", "perf"),
}


class Commands(click.Group):
    """The table above as a group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import it; None where there is none of that name."""
        found = COMMANDS.get(cmd_name)
        if found is None:
            return None
        module, name = found
        return cast("click.Command", getattr(importlib.import_module(f"broker.cli.{module}"), name))


@click.group(
    cls=Commands,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("broker create my-broker --queues orders"),
)
@click.version_option(__version__, prog_name="broker")
def broker() -> None:
    """Create a broker's instance, run it, talk to it."""


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(broker, "broker"))


if __name__ == "__main__":
    main()
