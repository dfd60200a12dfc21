"""`broker cluster status`, `sf return|move|drop|forget`: a cluster as a running broker sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    """Give what each connection says of the other nodes, those too that are not in use."""
    for attribute in ("clusterConnectionNames", "leftClusterConnectionNames"):
        for name in session.attribute("broker", attribute):
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


class _Waiting(NamedTuple):
    """What waits for a node.

    Attributes:
        node_id: of the node.
        rows: by the connections that know it.
    """

    node_id: str
    rows: dict[str, dict[str, Any]]


def _find(session: Session, node: str, connection: str | None = None) -> _Waiting:
    """Find a node by its id, or by how that begins where no other one begins so.

    Raises:
        click.ClickException: there is none; or several, which are named.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, rows in _connections(session):
        for row in rows if connection in (None, name) else ():
            found.setdefault(row["nodeID"], {})[name] = row
    if node in found:
        return _Waiting(node, found[node])
    begun = sorted(one for one in found if node and one.startswith(node))
    if len(begun) > 1:
        raise click.ClickException(f"node {node} may be {', '.join(begun)}: write one of these ids")
    if not begun:
        where = "" if connection is None else f" in cluster-connection {connection}"
        raise click.ClickException(f"no node {node}{where}: see `broker cluster status`")
    return _Waiting(begun[0], found[begun[0]])


def _call(
    session: Session, waiting: _Waiting, operation: str, *arguments: object
) -> tuple[int, int]:
    """Call an operation of the connections that know a node; how many messages it was, and wait."""
    count = sum(
        session.manage(
            f"clusterconnection.{name}", operation, waiting.node_id, *arguments, timeout_s=None
        )
        for name in waiting.rows
    )
    left = sum(
        row["waiting"]
        for name, rows in _connections(session)
        for row in rows
        if row["nodeID"] == waiting.node_id and name in waiting.rows
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
    """Move what waits for a node that is gone, and forget the node."""


_CONNECTION: Final = click.option(
    "--connection", metavar="NAME", help="Of this cluster connection alone; else of each."
)


@click.command("return", epilog=example("broker cluster sf return NODE"))
@connecting
@_UNCERTAIN
@_CONNECTION
@click.argument("node")
def return_(
    url: str,
    user: str | None,
    password: str | None,
    node: str,
    connection: str | None,
    *,
    uncertain: bool,
) -> None:
    """Send what waits for a node back to its addresses."""
    with connected(url, user, password) as session:
        found = _call(session, _find(session, node, connection), "returnMessages", uncertain)
    _tell("returned", *found)


@click.command(epilog=example("broker cluster sf move NODE OTHER"))
@connecting
@_UNCERTAIN
@_CONNECTION
@click.argument("node")
@click.argument("other")
def move(
    url: str,
    user: str | None,
    password: str | None,
    node: str,
    other: str,
    connection: str | None,
    *,
    uncertain: bool,
) -> None:
    """Let what waits for a node go to another one."""
    with connected(url, user, password) as session:
        target = _find(session, other).node_id
        waiting = _find(session, node, connection)
        found = _call(session, waiting, "moveMessages", target, uncertain)
    _tell("moved", *found)


@click.command(epilog=example("broker cluster sf drop NODE"))
@connecting
@_CONNECTION
@click.argument("node")
def drop(
    url: str, user: str | None, password: str | None, node: str, connection: str | None
) -> None:
    """Delete what waits for a node."""
    with connected(url, user, password) as session:
        count, _ = _call(session, _find(session, node, connection), "dropMessages")
    click.echo(f"deleted {counted(count, 'message')}")


@click.command(epilog=example("broker cluster sf forget NODE"))
@connecting
@_CONNECTION
@click.argument("node")
def forget(
    url: str, user: str | None, password: str | None, node: str, connection: str | None
) -> None:
    """Delete the empty queue of a node that is gone for good.

    It is refused while messages are in there, and while the node is connected.
    """
    with connected(url, user, password) as session:
        waiting = _find(session, node, connection)
        for name in _gone(waiting):
            session.manage(f"clusterconnection.{name}", "forgetNode", waiting.node_id)
            click.echo(f"forgotten: node {waiting.node_id} of cluster-connection {name}")


def _gone(waiting: _Waiting) -> list[str]:
    """Give the connections by which a node is not reached; all of them if it is by each.

    Nothing is to be forgotten of one while messages wait in another: these are named first.
    """
    gone = {name: row for name, row in waiting.rows.items() if not row["connected"]}
    return sorted(gone or waiting.rows, key=lambda name: -waiting.rows[name]["waiting"])


for _command in (return_, move, drop, forget):
    store_and_forward.add_command(_command)
# As they were called first.
cluster.add_command(return_)
cluster.add_command(drop)
