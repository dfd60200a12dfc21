"""`broker perf`: load on a running broker, and on the disk under it."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.connect import Destination, DestinationType, connecting
from broker.cli.instance import INSTANCE
from broker.cli.load import ConsumerLoad, Load, Measured, ProducerLoad
from broker.cli.messages import Seconds
from broker.cli.perf_view import PerfView
from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from broker.options.layout import layout_of
from journal.commands.bench import journal_bench
from journal.commands.exit_status import run
from journal.commands.output import example
from journal.commands.parameters import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Limits", "intervals", "perf"]

DESTINATION: Final = "queue://TEST"
INTERVAL_S: Final = 1.0
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends, and what of it counts.

    Attributes:
        message_count: of all together; 0 no limit.
        duration_s: of what counts; 0 no limit.
        warmup_s: before that.
    """

    message_count: int
    duration_s: float
    warmup_s: float


def _options(*options: Callable[..., Any]) -> Callable[..., Any]:
    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return give


def _not_negative(context: click.Context, parameter: click.Parameter, value: int) -> int:
    if value < 0:
        raise click.BadParameter(f"{value} is not a valid size: 0 or more")
    return value


COMMON: Final = _options(
    click.argument("destinations", nargs=-1, type=DestinationType(), metavar="[DESTINATION]..."),
    connecting,
    click.option(
        "--message-count",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Messages in all; 0: no limit.",
    ),
    click.option(
        "--duration",
        "duration_s",
        type=Seconds(),
        default=0.0,
        show_default=True,
        help="Duration: 30, 0.5, 30s, 500ms; 0: until interrupted.",
    ),
    click.option(
        "--warmup",
        "warmup_s",
        type=Seconds(),
        default=0.0,
        show_default=True,
        help="Warm-up time, which is not measured.",
    ),
    click.option(
        "--num-destinations",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Destinations per name, with a number appended.",
    ),
    click.option(
        "--commit-interval",
        "--tx-size",
        "commit_interval",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Messages per transaction; 0: no transactions.",
    ),
    click.option("--json", "is_json", is_flag=True, help="One JSON object a line."),
)
PRODUCING: Final = _options(
    click.option(
        "--producers",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Per destination, each on a connection of its own.",
    ),
    click.option(
        "--message-size",
        type=SIZE,
        callback=_not_negative,
        default=1024,
        show_default=True,
        help="Bytes of each body: 1024, 10K, 1MiB.",
    ),
    click.option(
        "--persistent",
        is_flag=True,
        help="Durable messages: confirmed once they are on disk.",
    ),
    click.option(
        "--rate",
        type=click.FloatRange(min=0),
        default=0,
        show_default=True,
        help="Messages a second of all together; 0 as fast as it goes. Latency counts from when a"
        " message was due.",
    ),
    click.option(
        "--max-pending",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Unconfirmed messages per producer at most.",
    ),
    click.option(
        "--ttl", type=click.IntRange(min=0), default=0, help="Time to live in milliseconds."
    ),
    click.option("--group", help="Group id of all messages."),
)
CONSUMERS: Final = click.option(
    "--consumers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Per destination, each on a connection of its own.",
)


@click.group(no_args_is_help=False, epilog=example("broker perf client --duration 10 --persistent"))
def perf() -> None:
    """Measure a running broker, or the disk under it.

    It shows rates and percentiles of latency. The load is made by one process of Python, which ends
    at some thousand messages a second however fast the broker is. DESTINATION is queue://TEST where
    none is given.
    """


@perf.command(epilog=example("broker perf producer queue://orders --message-count 10000"))
@COMMON
@PRODUCING
def producer(**given: Any) -> int:  # noqa: ANN401 - click's.
    """Send messages; they stay in their queues."""
    return _run(given, _producer_load(given), None)


@perf.command(epilog=example("broker perf consumer queue://orders --duration 10"))
@COMMON
@CONSUMERS
def consumer(**given: Any) -> int:  # noqa: ANN401 - click's.
    """Consume messages.

    Those of `perf producer` show the time since they were sent.
    """
    return _run(given, None, ConsumerLoad(given["consumers"], given["commit_interval"]))


@perf.command(epilog=example("broker perf client --message-count 10000 --max-pending 100"))
@COMMON
@PRODUCING
@CONSUMERS
@click.option("--consumer-url", help="URI of another broker to consume from. [default: --url]")
def client(**given: Any) -> int:  # noqa: ANN401 - click's.
    """Send messages and consume them."""
    consumers = ConsumerLoad(given["consumers"], given["commit_interval"])
    return _run(given, _producer_load(given), consumers)


@perf.command(
    "journal",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def journal(words: tuple[str, ...]) -> int:
    """Measure the disk that an instance keeps its messages on.

    It is `journal-bench` there. The first word is an instance or a data folder, or nothing; then
    options of `journal-bench`.
    """
    options = list(words)
    if options and not options[0].startswith("-"):
        folder = INSTANCE.convert(options.pop(0), None, None)
        layout = layout_of(Path(folder), needs_all=False)
        if layout.database is not None:
            raise click.UsageError(f"{folder} keeps its messages in a database, on no disk here")
        place = layout.messages if layout.messages.is_dir() else Path(folder)
        options = ["--dir", str(place), *options]
    return run(journal_bench, "broker perf journal", options)


def _producer_load(given: dict[str, Any]) -> ProducerLoad:
    return ProducerLoad(
        count=given["producers"],
        message_size=given["message_size"],
        durable=given["persistent"],
        rate=given["rate"],
        max_pending=given["max_pending"],
        commit_interval=given["commit_interval"],
        time_to_live_ms=given["ttl"],
        group_id=given["group"],
    )


def _run(
    given: dict[str, Any], producers: ProducerLoad | None, consumers: ConsumerLoad | None
) -> int:
    named = given["destinations"] or (DestinationType().convert(DESTINATION, None, None),)
    count = given["num_destinations"]
    destinations = [
        Destination(f"{one.name}{number}" if count > 1 else one.name, one.is_topic)
        for one in named
        for number in range(count)
    ]
    load = Load(destinations, producers, consumers, given["message_count"])
    limits = Limits(given["message_count"], given["duration_s"], given["warmup_s"])
    urls = [given["url"], given.get("consumer_url") or given["url"]]
    login = {"user": given["user"], "password": given["password"]} if given["user"] else {}
    with PerfView(is_json=given["is_json"]) as view:
        try:
            is_interrupted = asyncio.run(_measure(load, urls, login, limits, view))
        except ExceptionGroup as group:
            # Each producer and consumer fails by itself; the first word says it.
            errors = _leaves(group)
            raise next((one for one in errors if isinstance(one, ClientError)), errors[0]) from None
        except ValueError as error:
            raise click.ClickException(f"--url: {error}") from None
    return INTERRUPTED if is_interrupted else 0


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


def intervals(limits: Limits, elapsed_s: Callable[[], float]) -> Iterator[tuple[float, bool]]:
    """Give length in seconds, and whether it is of the warm-up, of each interval in turn."""
    end_s = limits.warmup_s + limits.duration_s
    while True:
        now_s = elapsed_s()
        if now_s < limits.warmup_s:
            yield min(INTERVAL_S, limits.warmup_s - now_s), True
        elif not limits.duration_s:
            yield INTERVAL_S, False
        elif now_s < end_s:
            yield min(INTERVAL_S, end_s - now_s), False
        else:
            return


async def _measure(
    load: Load, urls: list[str], login: dict[str, Any], limits: Limits, view: PerfView
) -> bool:
    """Run it and show it; whether it was interrupted."""
    total = Measured()
    is_interrupted = False

    def interrupt() -> None:
        nonlocal is_interrupted
        is_interrupted = True
        load.stop()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        async with (
            AsyncClient(urls[0], **login) as sending,
            AsyncClient(urls[1], **login) as receiving,
        ):
            running = asyncio.ensure_future(load.run(sending, receiving))
            try:
                began_s = loop.time()
                for wait_s, is_warmup in intervals(limits, lambda: loop.time() - began_s):
                    await asyncio.wait((running,), timeout=wait_s)
                    measured = load.take_interval()
                    view.interval(measured, is_warmup=is_warmup)
                    if not is_warmup:
                        total.merge(measured)
                    if running.done():
                        break
                load.stop()
                await running
                total.merge(load.take_interval())
            finally:
                running.cancel()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
    view.summary(total)
    return is_interrupted
