"""The exit status for each of the broker's errors; journal.commands.exit_status has the journal's.

A configuration or a user that cannot be is unreadable input: one line, exit status 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config import ConfigError
from broker.errors import BrokerError
from broker.model.encoding import RecordFormatError
from broker.security import UserError
from journal.commands import exit_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

__all__ = ["REFUSED", "run"]

REFUSED = 1


def run(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status.

    What a running broker refuses is status 1: the command was right, and was not done.
    """
    return exit_status.run(command, name, arguments, _classify)


def _classify(error: Exception) -> exit_status.Failure | None:
    if isinstance(error, ConfigError | UserError):
        return exit_status.UNUSABLE, str(error)
    if isinstance(error, RecordFormatError):
        return exit_status.DAMAGED, f"damaged data: {error}"
    # `broker run` has no client in memory, and only one of it makes such an error.
    from broker.client.errors import ClientError

    if isinstance(error, BrokerError | ClientError):
        return REFUSED, str(error)
    return None
