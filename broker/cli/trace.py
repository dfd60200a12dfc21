"""`broker trace`: where a message has been, over all nodes of a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.connect import URL_DEFAULT, connected
from broker.cli.why import reason_lines
from broker.client import ClientError
from journal.commands.output import example
from journal.commands.passwords import PASSWORD_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.client import Session

__all__ = ["trace"]

# Hops of a message that are followed: a redistributed one may come back.
_HOPS_MAX: Final = 16


@click.command(epilog=example("broker trace 1234"))
@click.argument("message_id", metavar="MESSAGE_ID", type=int)
@click.option(
    "--url",
    "urls",
    multiple=True,
    default=(URL_DEFAULT,),
    show_default=True,
    help="Connection URI of a node; repeat it for several. [default: and what these know]",
)
@click.option("--user", help="Log in as this user; anonymous if absent.")
@click.option(
    "--password", envvar=PASSWORD_VARIABLE, show_envvar=True, help="Password of the user."
)
@click.option("--json", "is_json", is_flag=True, help="One JSON object a node and hop.")
def trace(
    message_id: int,
    urls: tuple[str, ...],
    user: str | None,
    password: str | None,
    *,
    is_json: bool,
) -> None:
    """Show where a message has been, on all nodes of a cluster.

    Sent, routed, forwarded, delivered, acknowledged. The id is that of the first node that has it.
    A message that was moved, has expired or is a dead letter has another id: either is taken.
    Other nodes are found by the cluster's topology.
    """
    tracer = _Tracer(urls, user, password)
    count = 0
    for found in tracer.follow(message_id):
        count += len(found["messages"])
        if is_json:
            click.echo(json.dumps(found, ensure_ascii=False))
        else:
            for line in _lines(found):
                click.echo(line)
    for url, error in tracer.failed.items():
        click.echo(f"{url} is not asked: {error}", err=True)
    if not count:
        raise click.ClickException(
            f"nothing is known of message {message_id}: it was not durable, its records are gone, "
            "or no node has had it"
        )


class _Tracer:
    """Asks one node after the other.

    Attributes:
        failed: nodes that cannot be asked, and why.
    """

    def __init__(self, urls: tuple[str, ...], user: str | None, password: str | None) -> None:
        self._given = urls
        self._user = user
        self._password = password
        # Where each node is.
        self._places: dict[str, str] = {}
        self.failed: dict[str, str] = {}

    def _ask(self, url: str, *arguments: object) -> dict[str, Any] | None:
        try:
            with connected(url, self._user, self._password) as session:
                self._learn(session, url)
                text = session.manage("broker", "queryTraceAsJSON", *arguments, timeout_s=None)
        except ClientError as error:
            self.failed[url] = str(error)
            return None
        found: dict[str, Any] = json.loads(text)
        return found

    def _learn(self, session: Session, url: str) -> None:
        own = session.attribute("broker", "nodeID")
        self._places[own] = url
        for row in json.loads(session.manage("broker", "listNetworkTopology")):
            self._places.setdefault(row["nodeID"], f"tcp://{row['primary']}")

    def follow(self, message_id: int) -> Iterator[dict[str, Any]]:
        """Give what each node says, from the first one that has the message on."""
        for first in self._first(message_id):
            yield first
            yield from self._behind(first)

    def _first(self, message_id: int) -> Iterator[dict[str, Any]]:
        for url in self._given:
            found = self._ask(url, message_id)
            if found is not None and _is_known(found):
                yield found
                return
        # None of those that were named: any other node of the cluster may have it.
        for url in [one for one in self._places.values() if one not in self._given]:
            found = self._ask(url, message_id)
            if found is not None and _is_known(found):
                yield found
                return

    def _behind(self, first: dict[str, Any]) -> Iterator[dict[str, Any]]:
        left = list(_hops(first))
        seen: set[tuple[str, str, int]] = set()
        while left and len(seen) < _HOPS_MAX:
            hop = left.pop(0)
            if hop in seen:
                continue
            seen.add(hop)
            source, target, message_id = hop
            url = self._places.get(target)
            if url is None:
                self.failed[f"node {target}"] = "no node that was asked knows where it is"
                continue
            found = self._ask(url, source, message_id)
            if found is None:
                continue
            found["from"] = {"node": source, "messageID": message_id}
            yield found
            left += _hops(found)


def _is_known(found: dict[str, Any]) -> bool:
    return any(one["steps"] or one["now"] for one in found["messages"])


def _hops(found: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    for message in found["messages"]:
        for target in message["forwardedTo"]:
            yield found["node"], target, message["messageID"]


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"node {found['node']} ({found['broker']}); records: {found['records']}"
    source = found.get("from")
    if source is not None:
        said = "arrived" if found["arrived"] else "is not known to have arrived"
        yield f"  message {source['messageID']} of node {source['node']} {said}"
    for message in found["messages"]:
        address = "" if message["address"] is None else f" to address {message['address']}"
        yield f"  message {message['messageID']}{address}"
        original = message.get("original")
        if original is not None:
            queue = "" if original["queue"] is None else f" in queue {original['queue']}"
            yield f"    was message {original['messageID']}{queue} (address {original['address']})"
        for step in message["steps"]:
            yield f"    {_step(step)}"
        for place in message["now"]:
            consumer = f" to {place['consumer']}" if place["consumer"] else ""
            yield f"    now: {place['place']}{consumer} in queue {place['queue']}"
            yield from (f"      {line}" for line in reason_lines(place["reasons"]))
        if not message["now"]:
            yield "    now: in no queue of this node"
        for copy in message["copies"]:
            yield f"    goes on as message {copy}"


def _step(step: dict[str, Any]) -> str:
    parts = [step["step"]]
    if "queue" in step:
        parts.append(f"in {step['queue']}" if step["step"] != "routed" else f"to {step['queue']}")
    if "text" in step:
        parts.append(step["text"])
    if "outcome" in step:
        parts.append(f"(transaction {step['transaction']}, {step['outcome']})")
    if "copied" in step:
        parts.append(f"[copied to the history at {step['copied']}]")
    return " ".join(parts)
