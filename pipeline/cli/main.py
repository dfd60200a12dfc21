"""`pipeline`: jobs on Spark over what brokers stored.

A command is a module of this folder with a click command of its name, and a row in COMMANDS.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from journal.commands.groups import LazyGroup
from journal.commands.output import example
from journal.version import __version__
from pipeline.cli.exit_status import run

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMANDS", "main", "pipeline"]

# Command: its module, and the name of the click command there.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "export": ("pipeline.cli.export", "export"),
    "audit": ("pipeline.cli.audit", "audit"),
    "replay": ("pipeline.cli.replay", "replay"),
    "report": ("pipeline.cli.report", "report"),
    "package": ("pipeline.cli.package", "package"),
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("pipeline export my-broker --to parquet:history"),
)
@click.version_option(__version__, prog_name="pipeline")
def pipeline() -> None:
    """Export, audit, replay and report stored messages, on Spark."""


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(pipeline, "pipeline"))


if __name__ == "__main__":
    main()
