"""A JMS bridge between two brokers of a kind: messages a second with each quality of service.

    python -m benchmarks.bench_jms_bridge [--messages 20000] [--size 1024] [--latency 20]
        [--rounds 3] [--seconds 10] [--batches 100,1] [--in-flight 4000] [--only NAME]
        [--brokers ours,artemis] [--folder DIR]

So many durable messages wait in a queue of the first broker. Then a bridge is started, in a process
of its own that stays for all rounds. The time is taken from when the second broker has the first of
them on its disk, until it has all or so many seconds are over. `--latency` adds a pass in which the
bridge reaches its target over a link with that round trip (`bridge_ends.py`).

Beside ours is JMSBridgeImpl of Artemis, between two of its brokers, with Narayana for
ONCE_AND_ONLY_ONCE, whose log is of plain synced files. Both bridges have their defaults, but for
max-batch-size, of `--batches`, and max-batch-time, 100 ms. With `--in-flight 1` a batch of ours
waits for the one before it.

Prints a line a kind, quality, batch and link: the median, the slowest and fastest round, and ours
over the other kind. The claim: at least 1.5 of Artemis on loopback, ONCE_AND_ONLY_ONCE by duplicate
ids at least 5 of its XA bridge; over the link not below 0.8 of the own figure on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bridge_ends import POLL_S, Pair, add_options, measured, uri_of
from benchmarks.jms_bridges import artemis_process, our_process
from broker.bridges.jms.options import JMSBridgeOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.interop.jms.client import ScenarioProcess

BATCH_TIME_MS = 100
IN_FLIGHT = JMSBridgeOptions().max_in_flight
# As it is shown: quality of service, and how exactly once is reached.
IDS, PHASES = "duplicate ids", "two phases"
WAYS = {
    "AT_MOST_ONCE": ("AT_MOST_ONCE", "auto"),
    "DUPLICATES_OK": ("DUPLICATES_OK", "auto"),
    IDS: ("ONCE_AND_ONLY_ONCE", "duplicate-ids"),
    PHASES: ("ONCE_AND_ONLY_ONCE", "two-phase"),
}


@dataclass(slots=True)
class OfQuality:
    """See Case.

    Attributes:
        name: as it is shown.
        process: that runs the bridge.
        words: that it is started with, behind the queue.
    """

    name: str
    process: ScenarioProcess
    words: tuple[object, ...]

    async def start(self, pair: Pair, queue: str, target_port: int) -> None:
        """Start it."""
        ends = uri_of(pair.source.port), uri_of(target_port)
        await asyncio.to_thread(self.process.run, "start", *ends, queue, *self.words)

    async def stop(self, pair: Pair, queue: str) -> None:
        """Stop it."""
        await asyncio.to_thread(self.process.run, "stop")
        source = pair.source_session
        while (await source.query_queue(queue)).consumer_count:  # noqa: ASYNC110 - of another process.
            await asyncio.sleep(POLL_S)


def of_qualities(
    process: ScenarioProcess, batch_size: int, *, is_ours: bool, in_flight: int = IN_FLIGHT
) -> list[OfQuality]:
    """Give the bridges with each quality that a kind has.

    Args:
        process: that runs them.
        batch_size: messages.
        is_ours: whether the process is of our bridges.
        in_flight: messages on their way, of ours.
    """
    found = []
    for name, (quality, exactly_once) in WAYS.items():
        shown = f"{name}, {batch_size}"
        sizes = (batch_size, BATCH_TIME_MS)
        if is_ours:
            words = (quality, exactly_once, *sizes, in_flight)
            found.append(OfQuality(shown, process, words))
        elif name != IDS:
            found.append(OfQuality(shown, process, (quality, *sizes)))
    return found


def matching(case: str) -> str:
    """Give the case of Artemis's that one of ours is compared with."""
    return case.replace(IDS, PHASES)


def main() -> None:
    """Read the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.bench_jms_bridge")
    add_options(made)
    made.add_argument("--batches", default="100,1", help="max-batch-size, one run each")
    made.add_argument("--in-flight", type=int, default=IN_FLIGHT, help="max-in-flight of ours")
    made.add_argument("--only", default="", help="what a quality's name contains")
    made.add_argument("--folder", type=Path, help="where the brokers keep their files")
    options = made.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))

        def cases(pair: Pair) -> Sequence[OfQuality]:
            is_ours = pair.kind == "ours"
            place = folder / f"{pair.kind}-bridge"
            place.mkdir()
            process = (our_process if is_ours else artemis_process)(place)
            stack.enter_context(closing(process))
            sizes = map(int, options.batches.split(","))
            found = [
                one
                for size in sizes
                for one in of_qualities(process, size, is_ours=is_ours, in_flight=options.in_flight)
            ]
            return [case for case in found if options.only in case.name]

        asyncio.run(measured(options, folder, cases)).show(matching)


if __name__ == "__main__":
    main()
