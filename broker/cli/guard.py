"""From the broker's errors to exit statuses; those of the journal are journal.cli.guard's.

A configuration or a user that cannot be is unreadable input: one line, exit status 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from broker.client.errors import ClientError
from broker.config import ConfigError
from broker.errors import BrokerError
from broker.security import UserError
from journal.cli import guard

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["REFUSED", "run"]

REFUSED = 1


def run(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status.

    What a running broker refuses is status 1: the command was right, and was not done.
    """

    class Guarded(click.Group):
        def invoke(self, ctx: click.Context) -> object:
            try:
                return command.invoke(ctx)
            except (ConfigError, UserError) as error:
                raise click.ClickException(str(error)) from None
            except (BrokerError, ClientError) as error:
                guard.say(f"{name}: {error}")
                return REFUSED

        def make_context(
            self,
            info_name: str | None,
            args: list[str],
            parent: click.Context | None = None,
            **extra: object,
        ) -> click.Context:
            return command.make_context(info_name, args, parent, **extra)

    return guard.run(Guarded(name), name, arguments)
