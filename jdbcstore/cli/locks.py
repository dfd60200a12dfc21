"""`journal locks URL`: who holds the leases of a broker in a database, and ending one."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from jdbcstore.database import Database
from jdbcstore.locks import LOCK_NAMES, break_lock, read_locks
from jdbcstore.node import NodeState
from jdbcstore.tools.opener import options_of
from journal.commands.output import example, say
from journal.commands.sources import access_to, login_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jdbcstore.lease_row import LeaseView
    from jdbcstore.locks import Locks

__all__ = ["locks"]

UNCHANGED = 1
DEFAULT_TABLE = "NODE_MANAGER_STORE"


@click.command(epilog=example("journal locks postgresql://broker@db.example/broker --json"))
@click.argument("url")
@login_options()
@click.option(
    "--table", "node_table", default=DEFAULT_TABLE, show_default=True, help="The node manager's."
)
@click.option(
    "--break",
    "row",
    type=click.Choice([str(row) for row in LOCK_NAMES]),
    help="End the lease of this row: 1 is the primary's, 2 the backup's.",
)
@click.option("--yes", is_flag=True, help="Do not ask before breaking.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object instead of lines.")
def locks(
    url: str,
    row: str | None,
    *,
    yes: bool,
    is_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Show who holds the leases of a broker in a database.

    URL is JDBC's or SQLAlchemy's. How long a lease lasts is told by the database's clock. A holder
    whose lease is broken, and who lives, finds out before he writes anything more, and stops. Exit
    status 1: the lease changed hands while it was to be broken.
    """
    with closing(Database(options_of(access_to(url, given)))) as database:
        found = read_locks(database)
        status = 0 if row is None else _break(database, found, int(row), is_agreed=yes)
        if row is not None:
            found = read_locks(database)
    if is_json:
        click.echo(json.dumps(_as_object(found), separators=(",", ":")))
    else:
        for line in _lines(found):
            click.echo(line)
    return status


def _break(database: Database, found: Locks, row: int, *, is_agreed: bool) -> int:
    lease = found.leases[row]
    if lease is None or lease.holder is None:
        say(f"the {LOCK_NAMES[row]}'s lease (row {row}) is free already")
        return 0
    question = f"Break the {LOCK_NAMES[row]}'s lease (row {row}), {_holding(lease)}?"
    if not is_agreed and not click.confirm(question, err=True):
        raise click.Abort
    if break_lock(database, row, lease.holder):
        say(f"broken: the {LOCK_NAMES[row]}'s lease of {lease.holder}")
        return 0
    say(f"not broken: {lease.holder} gave the lease up meanwhile")
    return UNCHANGED


def _holding(lease: LeaseView | None) -> str:
    if lease is None:
        return "no such row"
    if lease.holder is None:
        return "free"
    if not lease.is_held:
        return f"expired, last held by {lease.holder}"
    return f"held by {lease.holder} for another {lease.remaining_ms} ms"


def _lines(found: Locks) -> Iterator[str]:
    clock = datetime.fromtimestamp(found.now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    side = "ahead of" if found.skew_ms > 0 else "behind"
    yield f"table    {found.table}"
    yield f"clock    {clock}, {abs(found.skew_ms)} ms {side} this machine's"
    yield f"node     {found.node_id or 'no id yet'}"
    yield f"state    {_state(found.state)}"
    for row, lease in found.leases.items():
        yield f"row {row}    {LOCK_NAMES[row]}: {_holding(lease)}"


def _state(letter: str | None) -> str:
    if letter is None:
        return "not started"
    known = {state.value: state.name.lower().replace("_", " ") for state in NodeState}
    return f"{letter} ({known.get(letter, 'unknown')})"


def _as_object(found: Locks) -> dict[str, object]:
    return {
        "table": found.table,
        "now_ms": found.now_ms,
        "skew_ms": found.skew_ms,
        "node_id": found.node_id,
        "state": found.state,
        "locks": [
            {
                "row": row,
                "name": LOCK_NAMES[row],
                "holder": None if lease is None else lease.holder,
                "expires_ms": None if lease is None else lease.expires_ms,
                "remaining_ms": 0 if lease is None else lease.remaining_ms,
                "is_held": lease is not None and lease.is_held,
            }
            for row, lease in found.leases.items()
        ],
    }
