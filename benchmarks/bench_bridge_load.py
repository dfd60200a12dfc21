"""A bridge of ours while messages come in: its lag, and its memory before a dead target.

    python -m benchmarks.bench_bridge_load lag [--rate 10000] [--seconds 30] [--only NAME] [...]
    python -m benchmarks.bench_bridge_load memory [--rate 2000] [--seconds 60] [--only NAME] [...]

with [--size 1024] [--batch 100] [--folder DIR]. Bridges are the core bridge, in the source's
process, and the JMS bridge with each quality of service, in a process of its own.

`lag`: durable messages are sent to a source at a steady rate. Ten times a second the newest message
that the target has on its disk is looked for, and when it was sent. Printed are the median lag in
the first and in the last third of the time, the greatest, and the rate that was reached. The claim:
the lag stays flat.

`memory`: two sources get the same messages, one has a bridge and the other has none. The bridge
moves some; then its target is killed (kill -9), and messages come in at the rate. Both sources page
an address of more than 10 MiB. Printed is the memory (VmRSS) of the source, and of the bridge's own
process, at the start, in the middle and at the end, beside that of the source without a bridge. The
claim: what the bridge costs stays flat.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import statistics
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench_bridge import CoreBridge
from benchmarks.bench_broker_start import memory_of
from benchmarks.bench_jms_bridge import of_qualities
from benchmarks.bridge_ends import LOOPBACK, Pair, count_of, make_queue, started, wait_for
from benchmarks.jms_bridges import our_process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bridge_ends import Case
    from broker.client.aio import AsyncSession

QUEUE = "q"
TICK_S = 0.01
LOOK_S = 0.1
# Messages whose answer is not there; more wait.
UNANSWERED_MAX = 5000
PAGES_FROM = 10 << 20
WARM_S = 1
TIMEOUT_S = 120
MEBIBYTE = 1 << 20
# Messages a second, and seconds.
DEFAULTS = {"lag": (10_000, 30), "memory": (2_000, 60)}


class Steady:
    """Sends at a steady rate.

    Args:
        session: of the broker.
        rate: messages a second.
        size: bytes of a body.

    Attributes:
        count: messages sent so far.
    """

    def __init__(self, session: AsyncSession, rate: float, size: int) -> None:
        self._producer = session.producer(QUEUE)
        self._rate = rate
        self._body = b"x" * size
        self.count = 0
        # When how many had been sent.
        self._times: list[float] = [time.perf_counter()]
        self._counts: list[int] = [0]
        self._unanswered: set[asyncio.Future[object]] = set()

    async def send(self, seconds: float) -> None:
        """Send for so long; return once all is on the disk."""
        began = time.perf_counter()
        first = self.count
        while (passed := time.perf_counter() - began) < seconds:
            for _ in range(first + int(passed * self._rate) - self.count):
                answer = await self._producer.post(self._body, durable=True)
                self._unanswered.add(answer)
                answer.add_done_callback(self._unanswered.discard)
                self.count += 1
            self._times.append(time.perf_counter())
            self._counts.append(self.count)
            while len(self._unanswered) > UNANSWERED_MAX:
                await asyncio.wait(self._unanswered, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(TICK_S)
        await asyncio.gather(*self._unanswered)

    def sent_s(self, number: int) -> float:
        """When the message of that number was sent, by time.perf_counter()."""
        if number > self._counts[-1]:
            # Just now, in a turn that has not ended.
            return time.perf_counter()
        return self._times[bisect.bisect_left(self._counts, number)]


# --- lag ------------------------------------------------------------------------------------------


async def lag(options: argparse.Namespace, pair: Pair, case: Case) -> None:
    """Measure one bridge, and print it."""
    target = pair.target_session
    for session in (pair.source_session, target):
        await make_queue(session, QUEUE)
    await case.start(pair, QUEUE, pair.ports[LOOPBACK])
    steady = Steady(pair.source_session, options.rate, options.size)
    # Connected and warm: before the clock runs.
    await steady.send(WARM_S)
    before = await wait_for(target, QUEUE, steady.count, TIMEOUT_S)
    sending = asyncio.ensure_future(steady.send(options.seconds))
    lags = []
    while not sending.done():
        await asyncio.sleep(LOOK_S)
        arrived = await count_of(target, QUEUE)
        now = time.perf_counter()
        since_s = 0.0 if arrived >= steady.count else now - steady.sent_s(arrived + 1)
        lags.append(max(0.0, since_s))
    await sending
    third = max(1, len(lags) // 3)
    first, last = (1000 * statistics.median(some) for some in (lags[:third], lags[-third:]))
    rate = (steady.count - before) / options.seconds
    print(
        f"{case.name:22} {rate:9,.0f}/s  lag {first:7,.0f} ms in the first third, "
        f"{last:7,.0f} ms in the last, {1000 * max(lags):7,.0f} ms at most",
        flush=True,
    )
    await case.stop(pair, QUEUE)
    for session in (pair.source_session, target):
        await session.delete_queue(QUEUE)


async def lags(options: argparse.Namespace, folder: Path, cases: Sequence[Case]) -> None:
    """Measure all."""
    pair = await Pair.started("ours", folder)
    try:
        for case in cases:
            await lag(options, pair, case)
    finally:
        pair.stop()


# --- memory ---------------------------------------------------------------------------------------


async def memory(
    options: argparse.Namespace, folder: Path, case: Case, bridge_pid: int | None
) -> None:
    """Measure one bridge, and print it; its own process is named where it has one."""
    pair = await Pair.started("ours", folder, page_from=PAGES_FROM)
    alone, session = await started("ours", folder / "alone", PAGES_FROM)
    sessions = pair.source_session, session
    pids = {"source": pair.source.pid, "without a bridge": alone.pid}
    if bridge_pid is not None:
        pids["the bridge's process"] = bridge_pid
    try:
        for one in (*sessions, pair.target_session):
            await make_queue(one, QUEUE)
        await case.start(pair, QUEUE, pair.ports[LOOPBACK])
        steady = [Steady(one, options.rate, options.size) for one in sessions]
        await steady[0].send(WARM_S)
        await wait_for(pair.target_session, QUEUE, steady[0].count, TIMEOUT_S)
        pair.target.kill()
        print(case.name)
        for when in ("start", "middle", "end"):
            if when != "start":
                await asyncio.gather(*(one.send(options.seconds / 2) for one in steady))
            found = {name: memory_of(pid, "VmRSS") / MEBIBYTE for name, pid in pids.items()}
            told = ", ".join(f"{name} {size:.1f}" for name, size in found.items())
            waiting = await count_of(pair.source_session, QUEUE)
            print(f"  {when:6} {waiting:9,} messages wait; MiB: {told}", flush=True)
        await case.stop(pair, QUEUE)
    finally:
        alone.stop()
        pair.stop()


async def memories(
    options: argparse.Namespace, folder: Path, cases: Sequence[Case], bridge_pid: int
) -> None:
    """Measure all."""
    for number, case in enumerate(cases):
        own = None if isinstance(case, CoreBridge) else bridge_pid
        await memory(options, folder / str(number), case, own)


def main() -> None:
    """Read the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.bench_bridge_load")
    made.add_argument("what", choices=DEFAULTS)
    made.add_argument("--rate", type=float, help="messages a second")
    made.add_argument("--seconds", type=float)
    made.add_argument("--size", type=int, default=1024, help="bytes of a body")
    made.add_argument("--batch", type=int, default=100, help="max-batch-size")
    made.add_argument("--only", default="", help="what a bridge's name contains")
    made.add_argument("--folder", type=Path, help="where the brokers keep their files")
    options = made.parse_args()
    rate, seconds = DEFAULTS[options.what]
    options.rate, options.seconds = options.rate or rate, options.seconds or seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        process = stack.enter_context(closing(our_process(folder)))
        every = [CoreBridge(), *of_qualities(process, options.batch, is_ours=True)]
        cases = [case for case in every if options.only in case.name]
        if options.what == "lag":
            asyncio.run(lags(options, folder, cases))
        else:
            asyncio.run(memories(options, folder, cases, process.pid))


if __name__ == "__main__":
    main()
