"""`broker queue why`: why messages of a queue of a running broker are not consumed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.connect import connected, connecting
from broker.cli.names import named
from broker.client import BrokerRefused
from broker.model.counted_text import counted
from journal.commands.output import example
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["reason_lines", "why"]

_NO_SUCH: Final = "AMQ229067"  # Cannot find resource with name …


@click.command(epilog=example("broker queue why orders"))
@connecting
@named
@click.argument("message_id", metavar="[MESSAGE_ID]", type=int, required=False)
@click.option("--json", "is_json", is_flag=True, help="One JSON object.")
def why(
    url: str,
    user: str | None,
    password: str | None,
    name: str,
    message_id: int | None,
    *,
    is_json: bool,
) -> None:
    """Say why a message of a queue, or the next one, is not consumed."""
    given = () if message_id is None else (message_id,)
    with connected(url, user, password) as session:
        try:
            text = session.manage(f"queue.{name}", "queryReasonsAsJSON", *given, timeout_s=None)
        except BrokerRefused as error:
            if not str(error).startswith(_NO_SUCH):
                raise
            near = nearest(name, session.attribute("broker", "queueNames"), "{}")
            raise BrokerRefused(error.code, f"{error}{near}") from None
    if is_json:
        click.echo(text)
        return
    found = json.loads(text)
    click.echo(_counts(found))
    for line in reason_lines(found["reasons"]):
        click.echo(line)


def _counts(found: dict[str, Any]) -> str:
    counts = ", ".join(
        f"{found[name]} {name}"
        for name in ("waiting", "delivering", "scheduled", "paged", "consumers")
    )
    return f"queue {found['queue']}: {counted(found['messages'], 'message')} ({counts})"


def reason_lines(reasons: list[dict[str, str]]) -> Iterator[str]:
    """Give two lines for each reason: what holds the message, and what to do."""
    for number, one in enumerate(reasons, 1):
        yield f"{number}. {one['text']} [{one['code']}]"
        yield f"   {one['action']}"
