"""A core bridge between two brokers of a kind: messages a second, on loopback and a slow link.

    python -m benchmarks.bench_bridge [--messages 20000] [--size 1024] [--latency 20] [--rounds 3]
        [--seconds 60] [--brokers ours,artemis] [--folder DIR]

So many durable messages wait in a queue of the first broker. Then a bridge is made by management,
with everything by default. The time is taken from when the second has the first of them on its
disk, until it has all or so many seconds are over. `--latency` adds a pass in which the bridge goes
over a link with that round trip (`bridge_ends.py`). Prints a line a kind and link: the median, the
slowest and fastest round, and ours over each other kind. The claim: at least 1.5 of Artemis on
loopback; over the link not below 0.8 of the own figure on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from benchmarks.bridge_ends import POLL_S, Pair, add_options, measured, uri_of
from benchmarks.peers.brokers import PASSWORD, USER


class CoreBridge:
    """See Case."""

    name = "core bridge"

    async def start(self, pair: Pair, queue: str, target_port: int) -> None:
        """Make it."""
        source = pair.source_session
        await source.manage("broker", "addConnector", queue, uri_of(target_port))
        made = {
            "name": queue,
            "queue-name": queue,
            "forwarding-address": queue,
            "static-connectors": [queue],
            "user": USER,
            "password": PASSWORD,
        }
        await source.manage("broker", "createBridge", json.dumps(made))

    async def stop(self, pair: Pair, queue: str) -> None:
        """Destroy it."""
        source = pair.source_session
        await source.manage("broker", "destroyBridge", queue)
        while (await source.query_queue(queue)).consumer_count:  # noqa: ASYNC110 - of another process.
            await asyncio.sleep(POLL_S)


def main() -> None:
    """Read the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.bench_bridge")
    add_options(made)
    made.add_argument("--folder", type=Path, help="where the brokers keep their files")
    options = made.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        asyncio.run(measured(options, Path(folder), lambda _: [CoreBridge()])).show()


if __name__ == "__main__":
    main()
