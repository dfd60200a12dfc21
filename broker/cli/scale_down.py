"""`broker scale-down`: a running broker moves all it has to another node, and stops."""

from __future__ import annotations

import click

from broker.cli.connect import connected, connecting
from journal.commands.output import example

__all__ = ["scale_down"]


@click.command(epilog=example("broker scale-down --connector to-two"))
@connecting
@click.option("--connector", help="Of the broker's configuration; any node of the group if absent.")
@click.option("--force", is_flag=True, help="Any node will do, where none of the group is there.")
def scale_down(
    url: str, user: str | None, password: str | None, connector: str | None, *, force: bool
) -> None:
    """Move all messages to another node, and stop the broker."""
    with connected(url, user, password) as session:
        node = session.manage("broker", "scaleDown", connector, force, timeout_s=None)
    click.echo(f"scaling down to node {node}; the broker's log says what went, and what is left")
