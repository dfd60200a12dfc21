"""`broker cluster status`, `sf return|move|drop`: the cluster as a running broker sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.bridges import table
from broker.cli.connect import connected, connecting
from broker.cli.exit_status import REFUSED
from broker.model.counted_text import counted
from journal.commands.output import example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.client import Session

__all__ = ["cluster"]

# Column: key of a node's status.
_COLUMNS: Final = {
    "node": "nodeID",
    "connected": "connected",
    "target": "target",
    "queues": "queues",
    "consumers": "consumers",
    "waiting": "waiting",
    "acknowledged": "acknowledged",
    "why": "reason",
}


@click.group(no_args_is_help=False, epilog=example("broker cluster status"))
def cluster() -> None:
    """Show a cluster, and move what waits for a node that is gone."""


def _connections(session: Session) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for name in session.attribute("broker", "clusterConnectionNames"):
        yield name, json.loads(session.attribute(f"clusterconnection.{name}", "statusAsJSON"))


@cluster.command(epilog=example("broker cluster status"))
@connecting
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def status(url: str, user: str | None, password: str | None, *, is_json: bool) -> int:
    """Show each other node, and what waits for it.

    The exit status is 1 if one of them is not connected.
    """
    with connected(url, user, password) as session:
        found = list(_connections(session))
        own = session.attribute("broker", "nodeID")
        stranded = json.loads(session.attribute("broker", "strandedMessagesAsJSON"))
    for name, rows in found:
        if is_json:
            for row in rows:
                click.echo(json.dumps({"connection": name, **row}))
            continue
        click.echo(f"cluster-connection {name} of node {own}: {counted(len(rows), 'other node')}")
        if rows:
            table([{column: row[key] for column, key in _COLUMNS.items()} for row in rows])
    for row in stranded:
        click.echo(json.dumps({"stranded": row}) if is_json else _stranded_line(row))
    if not found:
        click.echo("no cluster connection", err=True)
    return REFUSED if any(not row["connected"] for _, rows in found for row in rows) else 0


def _stranded_line(row: dict[str, Any]) -> str:
    return (
        f"stranded: {counted(row['count'], 'message')} of queue {row['queue']}, "
        f"message {row['messageID']} for {row['forMs'] / 1000:.0f} s: "
        f"broker queue why {row['queue']} {row['messageID']}"
    )


def _call(session: Session, node_id: str, operation: str, *arguments: object) -> tuple[int, int]:
    """Call an operation of the connections that know a node; how many messages it was, and wait."""
    known = [
        name
        for name, rows in _connections(session)
        if any(row["nodeID"] == node_id for row in rows)
    ]
    if not known:
        raise click.ClickException(f"no node {node_id}: see `broker cluster status`")
    count = sum(
        session.manage(f"clusterconnection.{name}", operation, node_id, *arguments, timeout_s=None)
        for name in known
    )
    left = sum(
        row["waiting"]
        for _, rows in _connections(session)
        for row in rows
        if row["nodeID"] == node_id
    )
    return count, left


def _tell(done: str, count: int, left: int) -> None:
    click.echo(f"{done} {counted(count, 'message')}")
    if left:
        click.echo(
            f"{counted(left, 'message')} not moved: the node may have them (--uncertain), "
            "or no queue takes them",
            err=True,
        )


_UNCERTAIN: Final = click.option(
    "--uncertain", is_flag=True, help="Also what the node may have, marked so."
)


@cluster.group("sf", no_args_is_help=False, epilog=example("broker cluster sf return NODE"))
def store_and_forward() -> None:
    """Move what waits for a node that is gone."""


@click.command("return", epilog=example("broker cluster sf return NODE"))
@connecting
@_UNCERTAIN
@click.argument("node_id", metavar="NODE")
def return_(
    url: str, user: str | None, password: str | None, node_id: str, *, uncertain: bool
) -> None:
    """Send what waits for a node back to its addresses."""
    with connected(url, user, password) as session:
        found = _call(session, node_id, "returnMessages", uncertain)
    _tell("returned", *found)


@click.command(epilog=example("broker cluster sf move NODE OTHER"))
@connecting
@_UNCERTAIN
@click.argument("node_id", metavar="NODE")
@click.argument("target_id", metavar="OTHER")
def move(
    url: str,
    user: str | None,
    password: str | None,
    node_id: str,
    target_id: str,
    *,
    uncertain: bool,
) -> None:
    """Let what waits for a node go to another one."""
    with connected(url, user, password) as session:
        found = _call(session, node_id, "moveMessages", target_id, uncertain)
    _tell("moved", *found)


@click.command(epilog=example("broker cluster sf drop NODE"))
@connecting
@click.argument("node_id", metavar="NODE")
def drop(url: str, user: str | None, password: str | None, node_id: str) -> None:
    """Delete what waits for a node."""
    with connected(url, user, password) as session:
        count, _ = _call(session, node_id, "dropMessages")
    click.echo(f"deleted {counted(count, 'message')}")


for _command in (return_, move, drop):
    store_and_forward.add_command(_command)
# As they were called first.
cluster.add_command(return_)
cluster.add_command(drop)
