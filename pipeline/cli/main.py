"""`pipeline`: jobs on Spark over what brokers stored.

A command is a module of this folder with a click command of its name, and a row in COMMANDS.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Final, cast

import click

from journal.cli.folder import example
from journal.version import __version__
from pipeline.cli.guard import run

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMANDS", "main", "pipeline"]

# Command: its module in this folder, where the click command has the command's name.
COMMANDS: Final[Mapping[str, str]] = {
    "export": "export",
    "audit": "audit",
    "replay": "replay",
    "report": "report",
    "package": "package",
}


class Commands(click.Group):
    """The table above as a group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import it; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"pipeline.cli.{COMMANDS[cmd_name]}")
        return cast("click.Command", getattr(module, cmd_name))


@click.group(
    cls=Commands,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("pipeline export my-broker --to parquet:history"),
)
@click.version_option(__version__, prog_name="pipeline")
def pipeline() -> None:
    """Export, audit, replay and draw what brokers stored, on Spark."""


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(pipeline, "pipeline"))


if __name__ == "__main__":
    main()
