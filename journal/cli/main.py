"""`journal`: inspect and maintain journals, the broker's or another product's."""

from __future__ import annotations

import sys

import click

from journal.cli.append import append
from journal.cli.compact import compact
from journal.cli.copy import copy
from journal.cli.exec import exec_script
from journal.cli.print_data import print_data
from journal.cli.recover import recover
from journal.cli.stat import stat
from journal.cli.transfer import export, import_lines
from journal.cli.verify import verify
from journal.commands.exit_status import run
from journal.commands.groups import PluggableGroup
from journal.commands.output import example
from journal.version import __version__

__all__ = ["journal", "main"]


@click.group(
    cls=PluggableGroup,
    no_args_is_help=False,  # One line says that a command is missing, as of every wrong use.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("journal print-data data/journal --decode"),
)
@click.version_option(__version__, prog_name="journal")
def journal() -> None:
    """Inspect and maintain journals, in folders and in databases.

    Every command takes the common options (--prefix, --extension, --type, --file-size, --min-files,
    --pool-files, --buffer-timeout, --buffer-size, --max-io, --[no-]datasync, --[no-]checksums);
    commands that only read ignore those that say how a journal is written.
    """


for command in (
    print_data,
    stat,
    verify,
    compact,
    recover,
    exec_script,
    append,
    export,
    import_lines,
    copy,
):
    journal.add_command(command)


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(journal, "journal"))


if __name__ == "__main__":
    main()
