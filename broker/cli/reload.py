"""`broker reload`: a running broker reads its broker.xml again."""

from __future__ import annotations

import click

from broker.cli.connect import connected, connecting
from journal.commands.output import example, say

__all__ = ["reload"]


@click.command(epilog=example("broker reload --user admin --password secret"))
@connecting
def reload(url: str, user: str | None, password: str | None) -> None:
    """Have a running broker read its broker.xml again, at once.

    Security settings, address settings, addresses, queues, diverts, connectors and core bridges
    are applied without a restart. If the file is wrong, nothing changes and the command ends with
    status 1.
    """
    with connected(url, user, password) as session:
        session.manage("broker", "reloadConfigurationFile")
    say("reloaded")
