"""`broker queue` and `broker address`: list, create, change and delete both in a running broker."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any, Final

import click
from rich.cells import cell_len, set_cell_size

from broker.cli.connect import connected, connecting
from broker.cli.names import named, named_or_all
from broker.cli.why import why
from broker.client import ClientError
from broker.model.counted_text import counted
from broker.model.routing_type import RoutingType
from journal.commands.output import example, say
from journal.commands.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.client import Session

__all__ = ["address", "queue"]

# Column: what the broker calls it in its list of queues.
TEXTS: Final = {"queue": "name", "address": "address", "type": "routingType"}
# The same; the list, as Artemis's, tells numbers as text.
COUNTS: Final = {
    "messages": "messageCount",
    "delivering": "deliveringCount",
    "scheduled": "scheduledCount",
    "consumers": "consumerCount",
    "added": "messagesAdded",
    "acknowledged": "messagesAcked",
}
COLUMNS: Final = (*TEXTS, *COUNTS)
WIDTH_MAX: Final = 40  # Of a name in a table; `--json` has all of it.
PAGE_SIZE: Final = 200
TELL_EVERY_S: Final = 0.5
ROUTING = click.option(
    "--anycast/--multicast", "is_anycast", default=True, show_default=True, help="Routing type."
)


def _settings_of_queue(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command what a queue may be told when it is made, and later."""
    for option in (
        click.option("--max-consumers", type=click.IntRange(min=-1), help="-1 is no limit."),
        click.option(
            "--purge-on-no-consumers",
            is_flag=True,
            default=None,
            help="Delete its messages when the last consumer leaves.",
        ),
        click.option(
            "--preserve-on-no-consumers",
            "keeps_messages",
            is_flag=True,
            default=None,
            help="Keep its messages when the last consumer leaves.",
        ),
    ):
        command = option(command)
    return command


def _given_settings(
    max_consumers: int | None, purges: bool | None, keeps: bool | None
) -> dict[str, int | bool]:
    if purges and keeps:
        raise click.UsageError("--purge-on-no-consumers and --preserve-on-no-consumers exclude")
    found: dict[str, int | bool] = {}
    if max_consumers is not None:
        found["max_consumers"] = max_consumers
    if purges or keeps:
        found["purge_on_no_consumers"] = bool(purges)
    return found


@click.group(no_args_is_help=False, epilog=example("broker queue stat --queue orders"))
def queue() -> None:
    """List and change the queues of a running broker."""


queue.add_command(why)


@queue.command(epilog=example("broker queue stat --queue orders"))
@connecting
@click.option(
    "--queue", "--queueName", "name", default="", help="Only queues whose name contains this."
)
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def stat(url: str, user: str | None, password: str | None, name: str, *, is_json: bool) -> None:
    """Show the settings and counters of queues.

    JSON says also whether a queue is paused or temporary, and whether its address is paging.
    """
    with connected(url, user, password) as session:
        listed = [
            found
            for found in _listed(session, "listQueues", "CONTAINS", name)
            # But the one that this question's own answer comes by.
            if not found["name"].startswith(session.answers_prefix)
        ]
        rows = [
            {column: found[key] for column, key in TEXTS.items()}
            | {column: int(found[key]) for column, key in COUNTS.items()}
            for found in listed
        ]
        paging = _paging(session) if is_json else {}
    if is_json:
        for row, found in zip(rows, listed, strict=True):
            more = {
                "paused": found["paused"] == "true",
                "temporary": found["temporary"] == "true",
                # Of an address that was deleted meanwhile nothing is known.
                "paging": paging.get(found["address"]),
            }
            click.echo(json.dumps(row | more, ensure_ascii=False))
    else:
        _table(rows)


def _listed(
    session: Session, operation: str, compared: str, name: str | None
) -> Iterator[dict[str, Any]]:
    # Artemis takes no filter as an empty text only.
    wanted = json.dumps({"field": "NAME", "operation": compared, "value": name}) if name else ""
    page = 1
    while True:
        found = json.loads(session.manage("broker", operation, wanted, page, PAGE_SIZE))
        yield from found["data"]
        if page * PAGE_SIZE >= found["count"]:
            return
        page += 1


def _paging(session: Session) -> dict[str, bool]:
    """Whether each address is paging: the list of queues does not say."""
    found = _listed(session, "listAddresses", "CONTAINS", None)
    return {one["name"]: one["paging"] == "true" for one in found}


def _table(rows: list[dict[str, Any]]) -> None:
    texts = [
        list(COLUMNS),
        *([_shortened(str(value)) for value in row.values()] for row in rows),
    ]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    for line in texts:
        cells = []
        for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
            blanks = " " * (width - cell_len(cell))
            cells.append(cell + blanks if place < len(TEXTS) else blanks + cell)
        click.echo("  ".join(cells).rstrip())


def _shortened(text: str) -> str:
    """At most WIDTH_MAX columns of a terminal; its beginning and its end, where it is longer."""
    if cell_len(text) <= WIDTH_MAX:
        return text
    half = (WIDTH_MAX - 1) // 2
    # set_cell_size() cuts, or fills up, to so many columns.
    return f"{set_cell_size(text, half).rstrip()}…{set_cell_size(text[::-1], half).rstrip()[::-1]}"


@queue.command(epilog=example("broker queue create orders --address shop"))
@connecting
@named
@click.option("--address", "of_address", help="Its address. [default: named as the queue]")
@ROUTING
@click.option(
    *("--durable/--non-durable", " /--no-durable"),
    default=True,
    show_default=True,
    help="Whether it survives a restart.",
)
@click.option("--filter", "selector", help="Only messages that match it are routed here.")
@click.option(
    *("--auto-create-address", "makes_address"),
    is_flag=True,
    help="Create a missing address; the default.",
)
@_settings_of_queue
def create(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    of_address: str | None,
    selector: str | None,
    max_consumers: int | None,
    *,
    is_anycast: bool,
    durable: bool,
    makes_address: bool,
    purge_on_no_consumers: bool | None,
    keeps_messages: bool | None,
) -> None:
    """Make a queue, and its address where there is none."""
    settings: Any = _given_settings(max_consumers, purge_on_no_consumers, keeps_messages)
    with connected(url, user, password) as session:
        session.create_queue(
            name,
            of_address or name,
            routing_type=RoutingType.ANYCAST if is_anycast else RoutingType.MULTICAST,
            selector=selector,
            durable=durable,
            **settings,
        )
    say(f"created: {name}")


@queue.command(epilog=example("broker queue update orders --max-consumers 3"))
@connecting
@named
@click.option("--anycast/--multicast", "is_anycast", default=None, help="Routing type.")
@click.option(
    "--filter", "selector", help="Only messages that match it are routed here; empty: all."
)
@_settings_of_queue
def update(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    selector: str | None,
    max_consumers: int | None,
    *,
    is_anycast: bool | None,
    purge_on_no_consumers: bool | None,
    keeps_messages: bool | None,
) -> None:
    """Change a queue; settings that are not given stay."""
    settings = _given_settings(max_consumers, purge_on_no_consumers, keeps_messages)
    wanted: dict[str, object] = {"name": name}
    wanted |= {key.replace("_", "-"): value for key, value in settings.items()}
    if is_anycast is not None:
        wanted["routing-type"] = "ANYCAST" if is_anycast else "MULTICAST"
    if selector is not None:
        wanted["filter-string"] = selector
    with connected(url, user, password) as session:
        session.manage("broker", "updateQueue", json.dumps(wanted))
    say(f"updated: {name}")


@queue.command(epilog=example("broker queue delete orders"))
@connecting
@named
@click.option(
    *("--remove-consumers", "--removeConsumers"),
    is_flag=True,
    help="Delete it even if it has consumers.",
)
@click.option(
    *("--auto-delete-address", "--autoDeleteAddress"),
    is_flag=True,
    help="Delete its address, too, if this is its last queue.",
)
def delete(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    *,
    remove_consumers: bool,
    auto_delete_address: bool,
) -> None:
    """Delete a queue with its messages."""
    with connected(url, user, password) as session:
        given = (name, remove_consumers, auto_delete_address)
        session.manage("broker", "destroyQueue", *given, timeout_s=None)
    say(f"deleted: {name}")


@queue.command(epilog=example("broker queue purge orders"))
@connecting
@named
def purge(url: str, user: str | None, password: str | None, name: str) -> None:
    """Delete all messages that wait in a queue."""
    ended = threading.Event()
    with connected(url, user, password) as session, Progress("purge") as progress:
        watcher = threading.Thread(
            target=_watch, args=(url, user, password, name, progress, ended), daemon=True
        )
        if progress.is_shown:
            watcher.start()
        try:
            # However long it takes: the broker goes on with it in any case.
            count = session.manage(f"queue.{name}", "removeAllMessages", timeout_s=None)
        finally:
            ended.set()
            if progress.is_shown:
                watcher.join()
    say(f"purged: {counted(count, 'message')}")


def _watch(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    progress: Progress,
    ended: threading.Event,
) -> None:
    """Show how many messages have gone of a queue, on a connection of its own."""
    most = 1
    # What goes wrong here goes wrong with the purge too, and is told there.
    with contextlib.suppress(ClientError), connected(url, user, password) as session:
        while not ended.wait(TELL_EVERY_S):
            left = session.attribute(f"queue.{name}", "messageCount")
            most = max(most, left)
            progress(0, 0, most - left, most)


@click.group(no_args_is_help=False, epilog=example("broker address show"))
def address() -> None:
    """List and change the addresses of a running broker."""


@address.command(epilog=example("broker address show"))
@connecting
@named_or_all
@click.option("--bindings", "has_bindings", is_flag=True, help="Show also its bindings.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def show(
    url: str,
    user: str | None,
    password: str | None,
    name: str | None,
    *,
    has_bindings: bool,
    is_json: bool,
) -> None:
    """Show the names of all addresses, or one with its bindings.

    JSON has also the bytes in memory (size) and pages; of one, or with --bindings, its limits, too.
    """
    has_bindings = has_bindings or name is not None
    with connected(url, user, password) as session:
        # Refused where there is none of that name.
        line = None if name is None else session.manage("broker", "getAddressInfo", name)
        if line is not None and not is_json:
            click.echo(line)
            _tell_bindings(session, name)
            return
        for found in _listed(session, "listAddresses", "EQUALS", name):
            if found["temporary"] == "true":
                continue
            if is_json:
                _tell(session, found, has_bindings=has_bindings)
                continue
            click.echo(found["name"])
            if has_bindings:
                _tell_bindings(session, found["name"])


def _tell_bindings(session: Session, name: str | None) -> None:
    bindings = session.manage("broker", "listBindingsForAddress", name)
    if bindings:
        click.echo(bindings.replace("],", "]\n"))


def _tell(session: Session, found: dict[str, str], *, has_bindings: bool) -> None:
    """Print an address of the broker's list as JSON."""
    shown: dict[str, object] = {
        "address": found["name"],
        "routing_types": json.loads(found["routingTypes"]),
        "auto_created": found["autoCreated"] == "true",
        "paused": found["paused"] == "true",
        "queues": int(found["queueCount"]),
        "messages": int(found["messageCount"]),
        "size": int(found["addressSize"]),
        "paging": found["paging"] == "true",
        "pages": int(found["numberOfPages"]),
    }
    if has_bindings:
        settings = session.manage("broker", "getAddressSettingsAsJSON", found["name"])
        limits = json.loads(settings)
        shown["max_size_bytes"] = limits["maxSizeBytes"]
        shown["max_size_messages"] = limits["maxSizeMessages"]
        shown["address_full_policy"] = limits["addressFullMessagePolicy"]
        shown["bindings"] = session.attribute(f"address.{found['name']}", "bindingNames")
    click.echo(json.dumps(shown, ensure_ascii=False))


def _routing_types(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the routing types of an address."""
    for kind in ("multicast", "anycast"):
        command = click.option(
            f"--{kind}/--no-{kind}", default=None, help=f"Route messages by {kind.upper()}."
        )(command)
    return command


@address.command("create", epilog=example("broker address create news --multicast"))
@connecting
@named
@_routing_types
def create_address(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    *,
    anycast: bool | None,
    multicast: bool | None,
) -> None:
    """Make an address; of routing type ANYCAST if none is given."""
    if not anycast and not multicast:
        anycast = anycast is None
    types = _names_of(anycast, multicast)
    with connected(url, user, password) as session:
        session.manage("broker", "createAddress", name, types)
    say(f"created: {name}")


def _names_of(anycast: bool | None, multicast: bool | None) -> str:
    found = [kind for kind, wanted in (("ANYCAST", anycast), ("MULTICAST", multicast)) if wanted]
    if not found:
        raise click.UsageError("an address has a routing type: --anycast, --multicast or both")
    return ",".join(found)


@address.command("update", epilog=example("broker address update news --anycast --multicast"))
@connecting
@named
@_routing_types
def update_address(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    *,
    anycast: bool | None,
    multicast: bool | None,
) -> None:
    """Change the routing types of an address.

    Those given are all it has then.
    """
    types = _names_of(anycast, multicast)
    with connected(url, user, password) as session:
        session.manage("broker", "updateAddress", name, types)
    say(f"updated: {name}")


@address.command("delete", epilog=example("broker address delete news"))
@connecting
@named
@click.option("--force", is_flag=True, help="Delete its queues as well.")
def delete_address(
    url: str, user: str | None, password: str | None, name: str, *, force: bool
) -> None:
    """Delete an address."""
    with connected(url, user, password) as session:
        session.manage("broker", "deleteAddress", name, force, timeout_s=None)
    say(f"deleted: {name}")
