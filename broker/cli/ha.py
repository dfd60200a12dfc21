"""`broker ha`: the pair on one store that an instance is one of; what its operator orders."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import click

from broker.cli.connect import connected, connecting
from broker.cli.instance import INSTANCE
from broker.config.load import load
from broker.options.from_config import broker_options
from broker.storage.layout import BROKER_XML
from broker.storage.node_orders import fence as fence_folder
from broker.storage.node_orders import promote as promote_folder
from broker.storage.node_view import view_of
from broker.storage.open import FileStoreOptions
from jdbcstore import Database, NodeManager
from jdbcstore.locks import LOCK_NAMES, break_lock, read_locks
from jdbcstore.schema import BACKUP_LOCK_ROW, PRIMARY_LOCK_ROW
from journal.commands.output import example, say

if TYPE_CHECKING:
    from pathlib import Path

    from jdbcstore.options import DatabaseStoreOptions

__all__ = ["ha"]

# By the letter of the state, for people.
_STATES = {
    "0": "no broker has served yet",
    "N": "not started",
    "L": "active",
    "F": "a primary asks for its place, or loads",
    "P": "stopped in good order: no backup takes over",
}


@click.group(no_args_is_help=False, epilog=example("broker ha status my-broker"))
def ha() -> None:
    """See and order a pair of brokers on one store.

    INSTANCE is either of the two, on a machine that reaches their store.
    """


def _store(instance: Path) -> FileStoreOptions | DatabaseStoreOptions:
    store = broker_options(load(instance / BROKER_XML, lenient=True)).store
    if store is None:
        raise click.ClickException(f"{instance}: it keeps nothing (persistence-enabled)")
    return store


def _folder(store: FileStoreOptions) -> Path:
    return store.lock_directory or store.messages.directory


@ha.command(epilog=example("broker ha status my-broker --json"))
@click.argument("instance", type=INSTANCE)
@click.option("--json", "is_json", is_flag=True, help="One JSON object.")
def status(instance: Path, *, is_json: bool) -> int:
    """Show who serves, who waits, and the state between the two.

    Exit status 1: no broker serves.
    """
    store = _store(instance)
    found = _of_folder(store) if isinstance(store, FileStoreOptions) else _of_tables(store)
    if is_json:
        click.echo(json.dumps(found))
    else:
        state = str(found["state"])
        shown = found | {"state": f"{state} ({_STATES.get(state, 'unknown')})"}
        for name, value in shown.items():
            click.echo(f"{name:<8} {'-' if value is None else value}")
    return 0 if found["primary"] is not None and found["state"] == "L" else 1


def _of_folder(store: FileStoreOptions) -> dict[str, object]:
    view = view_of(_folder(store))
    owner = view.owner
    where = "" if owner is None or owner.pid != view.primary else f" of {owner.host}"
    return {
        "store": str(_folder(store)),
        "node": view.node_id,
        "state": view.state.value.decode(),
        "primary": None if view.primary is None else f"process {view.primary}{where}",
        "backup": None if view.backup is None else f"process {view.backup}",
        "epoch": 0 if owner is None else owner.epoch,
    }


def _of_tables(store: DatabaseStoreOptions) -> dict[str, object]:
    with closing(Database(store)) as database:
        found = read_locks(database)
    holders = {
        LOCK_NAMES[row]: lease.holder if lease is not None and lease.is_held else None
        for row, lease in found.leases.items()
    }
    return {
        "store": found.table,
        "node": found.node_id,
        "state": found.state or "N",
        "primary": holders[LOCK_NAMES[PRIMARY_LOCK_ROW]],
        "backup": holders[LOCK_NAMES[BACKUP_LOCK_ROW]],
        "skew_ms": found.skew_ms,
    }


@ha.command(epilog=example("broker ha promote my-backup"))
@click.argument("instance", type=INSTANCE)
def promote(instance: Path) -> None:
    """Have the backup take over from a stopped primary.

    For a primary that stopped in good order and does not come back. One that runs is demoted
    instead, or fenced.
    """
    store = _store(instance)
    if isinstance(store, FileStoreOptions):
        promote_folder(_folder(store))
    else:
        with closing(Database(store)) as database:
            NodeManager(database).promote()
    say("promoted: the backup that waits takes over")


@ha.command(epilog=example("broker ha demote --user admin --password secret"))
@connecting
def demote(url: str, user: str | None, password: str | None) -> None:
    """Stop the broker that serves, for the backup.

    Whatever failover-on-shutdown says. Clients reconnect to the backup. Refused where none waits.
    """
    with connected(url, user, password) as session:
        session.manage("broker", "forceFailover")
    say("demoted: it stops, and the backup that waits takes over")


@ha.command(epilog=example("broker ha fence my-backup --yes"))
@click.argument("instance", type=INSTANCE)
@click.option("--yes", is_flag=True, help="Do not ask before.")
def fence(instance: Path, *, yes: bool) -> int:
    """End the ownership of who serves.

    It writes and answers nothing any more, and stops. On a folder the process keeps its lock until
    it has ended; one that stands still has to be killed before a backup can take over. Exit status
    1: its lease changed hands meanwhile.
    """
    store = _store(instance)
    if not yes and not click.confirm("Fence the broker that serves?", err=True):
        raise click.Abort
    if isinstance(store, FileStoreOptions):
        pid = fence_folder(_folder(store))
        say("fenced" if pid is None else f"fenced; process {pid} has the lock until it has ended")
        return 0
    with closing(Database(store)) as database:
        lease = read_locks(database).leases[PRIMARY_LOCK_ROW]
        if lease is None or lease.holder is None:
            say("the lease is free")
            return 0
        is_broken = break_lock(database, PRIMARY_LOCK_ROW, lease.holder)
    say("fenced" if is_broken else "not fenced: the lease changed hands meanwhile")
    return 0 if is_broken else 1
