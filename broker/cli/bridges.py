"""`broker bridge status`, `why`, `pause` and the like: bridges of a running broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from broker.cli.connect import connected, connecting
from journal.commands.output import example

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.client import Session

__all__ = ["COMMANDS", "table"]

# Column: attribute of a JMS bridge's management.
_JMS: Final = {
    "state": "state",
    "moved": "messageCount",
    "retried": "retriedMessageCount",
    "aborted": "abortedMessageCount",
    "in doubt": "inDoubtCount",
    "lag ms": "lag",
}
# Column: key of a core bridge's status.
_CORE: Final = {
    "queue": "queue",
    "target": "target",
    "state": "state",
    "moved": "messagesAcknowledged",
    "pending": "messagesPendingAcknowledgement",
    "waiting": "messageCount",
    "why": "reason",
}


class _Bridge(NamedTuple):
    """One of the broker's.

    Attributes:
        kind: `core` or `jms`.
        name: of the bridge.
    """

    kind: str
    name: str

    @property
    def resource(self) -> str:
        return f"bridge.{self.name}" if self.kind == "core" else f"jmsbridge.{self.name}"

    def row(self, session: Session) -> dict[str, Any]:
        """Its line in the table."""
        first = {"name": self.name, "kind": self.kind}
        if self.kind == "core":
            found = json.loads(session.attribute(self.resource, "statusAsJSON"))
            return first | {column: found[key] for column, key in _CORE.items()}
        return first | {
            column: session.attribute(self.resource, key) for column, key in _JMS.items()
        }

    def why(self, session: Session) -> str:
        """Why it moves nothing, or what it does."""
        if self.kind == "core":
            reason: str = json.loads(session.attribute(self.resource, "statusAsJSON"))["reason"]
            return reason
        return session.attribute(self.resource, "why") or "it moves messages"


def _found(session: Session, name: str | None) -> list[_Bridge]:
    known = [
        _Bridge(kind, one)
        for kind, attribute in (("core", "bridgeNames"), ("jms", "JMSBridgeNames"))
        for one in session.attribute("broker", attribute)
    ]
    if name is None:
        return known
    kind, colon, rest = name.partition(":")
    found = [one for one in known if one.name == name or (colon and one == (kind, rest))]
    if not found:
        told = ", ".join(one.name for one in known) or "none"
        raise click.ClickException(f"no bridge {name!r}; the broker has {told}")
    return found


def _one(session: Session, name: str) -> _Bridge:
    found = _found(session, name)
    if len(found) > 1:
        raise click.ClickException(f"two bridges are called {name!r}: core:{name} and jms:{name}")
    return found[0]


@click.command(epilog=example("broker bridge status"))
@connecting
@click.argument("name", required=False)
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
def status(
    url: str, user: str | None, password: str | None, name: str | None, *, is_json: bool
) -> None:
    """Show the bridges of a running broker."""
    with connected(url, user, password) as session:
        rows = [one.row(session) for one in _found(session, name)]
    if is_json:
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
        return
    for kind in ("core", "jms"):
        of_kind = [
            {name: value for name, value in row.items() if name != "kind"}
            for row in rows
            if row["kind"] == kind
        ]
        if of_kind:
            table(of_kind)


def table(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows below their names, in columns."""
    texts = [
        list(rows[0]),
        *(["-" if value is None else str(value) for value in row.values()] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for line in texts:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


@click.command(epilog=example("broker bridge why orders"))
@connecting
@click.argument("name")
def why(url: str, user: str | None, password: str | None, name: str) -> None:
    """Say why a bridge of a running broker moves nothing."""
    with connected(url, user, password) as session:
        reason = _one(session, name).why(session)
    click.echo(reason)


def _operation(verb: str, text: str) -> click.Command:
    """Make a command that calls an operation."""

    @click.command(verb, help=text, epilog=example(f"broker bridge {verb} orders"))
    @connecting
    @click.argument("name")
    def call(url: str, user: str | None, password: str | None, name: str) -> None:
        with connected(url, user, password) as session:
            session.manage(_one(session, name).resource, verb, timeout_s=None)

    return call


COMMANDS: Final = (
    status,
    why,
    _operation("pause", "Pause a bridge of a running broker."),
    _operation("resume", "Resume a paused bridge."),
    _operation("start", "Start a stopped bridge of a running broker."),
    _operation("stop", "Stop a bridge; what is on its way is waited for."),
)
