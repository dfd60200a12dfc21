"""`broker producer`, `consumer`, `browser`: messages from the shell and to it."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import sys
import time
from concurrent.futures import wait
from typing import TYPE_CHECKING, Final

import click

from broker.cli.connect import Destination, DestinationType, connected, connecting
from broker.client import AckMode, AddressFull, ClientError, make_message
from broker.model.counted_text import counted
from broker.model.encoding import RecordFormatError
from broker.model.routing_type import RoutingType
from journal.commands.output import example, say
from journal.commands.parameters import SIZE
from journal.commands.progress import Progress
from journal.options import parse_duration_ns

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from broker.client import Producer, Received, Session
    from broker.model.message import Message

__all__ = ["browser", "consumer", "producer"]

COUNT_DEFAULT: Final = 1000
SIZE_DEFAULT: Final = 1000
NS_PER_S: Final = 1_000_000_000
# Sends that wait for their confirmation at one time.
IN_FLIGHT: Final = 256
# After an error, how long confirmations of the others are waited for.
ANSWERS_S: Final = 2.0


class Seconds(click.ParamType):  # type: ignore[type-arg]  # Generic only since click 8.3.
    """A time in seconds: 2, 0.5, 2s, 500ms."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            found = float(text) if text[-1:].isdigit() else parse_duration_ns(text) / NS_PER_S
        except ValueError:
            self.fail(f"{text!r} is not a time; write 2, 0.5, 2s or 500ms", param, ctx)
        if not 0 <= found < float("inf"):
            self.fail(f"{text!r} is out of range; write a finite time of 0 or more", param, ctx)
        return found


def _size(context: click.Context, parameter: click.Parameter, value: int) -> int:
    if value < 0:
        raise click.BadParameter(f"{value} is not a valid size: 0 or more")
    return value


DESTINATION = click.option(
    "--destination",
    type=DestinationType(),
    required=True,
    help="queue://NAME or topic://NAME; a name alone is a queue.",
)
COUNT = click.option(
    "--message-count",
    "count",
    type=click.IntRange(min=1),
    default=COUNT_DEFAULT,
    show_default=True,
    help="Number of messages.",
)
SELECTOR = click.option("--selector", "--filter", help="Only messages that match this selector.")
JSON = click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
TX = click.option(
    "--tx",
    "--commit-interval",
    "tx_size",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Commit after as many messages; 0 for no transactions.",
)


@click.command(epilog=example("broker producer --destination queue://orders --message-count 10"))
@connecting
@DESTINATION
@COUNT
@click.option(
    "--message-size",
    "size",
    type=SIZE,
    callback=_size,
    default=SIZE_DEFAULT,
    show_default=True,
    help="Bytes of each body: 1000, 10K, 1MiB.",
)
@click.option("--text", "--message", "text", help="Text of the body, in place of --message-size.")
@click.option(
    *("--durable/--non-durable", " /--non-persistent"),
    default=True,
    show_default=True,
    help="Whether it survives a restart.",
)
@click.option(
    "--priority",
    type=click.IntRange(0, 9),
    default=4,
    show_default=True,
    help="Of each message; 9 is delivered first.",
)
@click.option("--property", "properties", multiple=True, help="NAME=VALUE, text; repeatable.")
@TX
def producer(
    url: str,
    user: str | None,
    password: str | None,
    destination: Destination,
    count: int,
    size: int,
    text: str | None,
    priority: int,
    properties: tuple[str, ...],
    tx_size: int,
    *,
    durable: bool,
) -> None:
    """Send messages.

    Each durable one is on the broker's disk before this ends.
    """
    content = bytes(size) if text is None else text
    named = dict(_property(one) for one in properties)

    def made() -> Message:
        message = make_message(content, durable=durable, priority=priority, properties=named)
        message.routing_type = (
            RoutingType.MULTICAST if destination.is_topic else RoutingType.ANYCAST
        )
        return message

    started = time.perf_counter()
    mode = AckMode.TRANSACTED if tx_size else AckMode.AUTO
    sending = _Sending(count)
    with connected(url, user, password, mode) as session:
        try:
            with Progress("send") as progress:
                sender = session.producer(destination.name)
                if tx_size:
                    sending.in_transactions(session, sender, made, tx_size, progress)
                else:
                    sending.one_by_one(sender, made, progress)
        except (Exception, KeyboardInterrupt) as error:
            say(f"sent: {sending.count_confirmed()} of {counted(count, 'message')}")
            if isinstance(error, AddressFull):
                _tell_limit(session, destination.name)
            raise
    say(f"sent: {counted(count, 'message')} in {time.perf_counter() - started:.1f} s")


def _property(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"--property {text!r} is not NAME=VALUE")
    return name, value


class _Sending:
    """Sends, and knows what the broker has confirmed.

    Args:
        count: messages that are to be sent.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._confirmed = 0
        self._waiting: list[Future[None]] = []

    def in_transactions(
        self,
        session: Session,
        sender: Producer,
        made: Callable[[], Message],
        size: int,
        progress: Progress,
    ) -> None:
        for number in range(1, self._count + 1):
            sender.send(made())
            if number % size == 0 or number == self._count:
                session.commit()
                self._confirmed = number
            progress(0, 0, number, self._count)

    def one_by_one(self, sender: Producer, made: Callable[[], Message], progress: Progress) -> None:
        for number in range(1, self._count + 1):
            self._waiting.append(sender.post(made()))
            if len(self._waiting) >= IN_FLIGHT or number == self._count:
                for one in self._waiting:
                    one.result()
                self._confirmed += len(self._waiting)
                self._waiting.clear()
                progress(0, 0, number, self._count)

    def count_confirmed(self) -> int:
        """How many are, after an error. Those behind the one that failed may be as well."""
        done, _ = wait(self._waiting, ANSWERS_S)
        return self._confirmed + sum(
            not one.cancelled() and one.exception() is None for one in done
        )


def _tell_limit(session: Session, address: str) -> None:
    """Say what limits the address; a user who may not ask is told nothing."""
    with contextlib.suppress(ClientError):
        found = json.loads(session.manage("broker", "getAddressSettingsAsJSON", address))
        say(
            f"address {address}: address-full-policy {found['addressFullMessagePolicy']}, "
            f"max-size-bytes {found['maxSizeBytes']}, "
            f"max-size-messages {found['maxSizeMessages']}"
        )


@click.command(epilog=example("broker consumer --destination queue://orders --timeout 0"))
@connecting
@DESTINATION
@COUNT
@SELECTOR
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(),
    default=5.0,
    show_default=True,
    help="How long to wait for the next one: 2, 0.5, 2s, 500ms; 0 waits for ever.",
)
@click.option(
    "--receive-timeout",
    "timeout_ms",
    type=click.IntRange(min=0),
    help="The same in milliseconds; 0 waits for ever.",
)
@click.option(
    "--break-on-null",
    is_flag=True,
    expose_value=False,
    help="Accepted for Artemis's sake; it always does.",
)
@JSON
@TX
def consumer(
    url: str,
    user: str | None,
    password: str | None,
    destination: Destination,
    count: int,
    selector: str | None,
    timeout_s: float,
    timeout_ms: int | None,
    tx_size: int,
    *,
    is_json: bool,
) -> None:
    """Consume messages and print them, one a line.

    Of a topic, those that come from now on.
    """
    if timeout_ms is not None:
        timeout_s = timeout_ms / 1000
    taken = 0
    # Acknowledged once it is printed, not before.
    mode = AckMode.TRANSACTED if tx_size else AckMode.INDIVIDUAL
    # Where messages go to the same terminal they are what is to be seen.
    counter = Progress("take", is_wanted=not sys.stdout.isatty())
    with connected(url, user, password, mode) as session, counter as progress:
        queue = _subscribed(session, destination)
        with session.consumer(queue, selector) as source:
            while taken < count:
                message = source.receive(timeout_s or None)
                if message is None:
                    break
                _show(message, is_json=is_json)
                message.acknowledge()
                taken += 1
                progress(0, 0, taken, 0)
                if tx_size and taken % tx_size == 0:
                    session.commit()
            if tx_size:
                session.commit()
    if taken == count:
        say(f"taken: {counted(taken, 'message')}")
    else:
        waited = "" if not timeout_s else f"; none came for {timeout_s:g} s"
        say(f"taken: {taken} of {counted(count, 'message')}{waited}")


def _subscribed(session: Session, destination: Destination) -> str:
    if not destination.is_topic:
        return destination.name
    queue = f"{destination.name}.{time.time_ns()}"
    session.create_queue(
        queue,
        destination.name,
        routing_type=RoutingType.MULTICAST,
        durable=False,
        temporary=True,
    )
    return queue


@click.command(epilog=example("broker browser --destination queue://orders --json"))
@connecting
@DESTINATION
@COUNT
@SELECTOR
@JSON
def browser(
    url: str,
    user: str | None,
    password: str | None,
    destination: Destination,
    count: int,
    selector: str | None,
    *,
    is_json: bool,
) -> None:
    """Browse the messages of a queue and print them, one a line."""
    seen = 0
    with connected(url, user, password) as session:
        for message in session.browse(destination.name, selector):
            _show(message, is_json=is_json)
            seen += 1
            if seen == count:
                break
    say(f"seen: {counted(seen, 'message')}")


def _show(message: Received, *, is_json: bool) -> None:
    if message.is_large:
        message.read()  # Whole, and before its content is asked for: it is to be printed.
    try:
        content = message.content
    except RecordFormatError:
        # Not what its type says; all others are to be shown as well.
        content = message.read()
    if not is_json:
        # One a line: a text of several lines is shown as JSON too.
        is_line = isinstance(content, str) and len(f"{content}|".splitlines()) == 1
        click.echo(content if is_line else json.dumps(_plain(content), ensure_ascii=False))
        return
    one = message.message
    found = {
        "id": message.message_id,
        "address": message.address,
        "durable": one.durable,
        "priority": one.priority,
        "timestamp": one.timestamp,
        "expiration": one.expiration,
        "deliveries": message.delivery_count,
        "properties": {name: _plain(item.value) for name, item in message.properties.items()},
        "body": _plain(content),
    }
    click.echo(json.dumps(found, ensure_ascii=False, allow_nan=False))


def _plain(value: object) -> object:
    """Give what JSON can hold: bytes as base64, NaN and infinities as texts that name them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
