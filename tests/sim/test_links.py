"""Faults of links and names, as stories have them."""

import asyncio
import random

import pytest

from tests.sim.faults import FAULTS, NARROW, SLOW_S
from tests.sim.run import Run
from tests.sim.story import Story

SECONDS = 20.0


class Links:
    """A run with a node and a client's machine; nothing of its story happens by itself."""

    def __init__(self):
        self.run = Run(Story(seed=1))
        self.loop, self.network = self.run.loop, self.run.network
        self.near = self.network.host("client-1")
        self.far = self.run.host("a")
        self.client = self.loop.process("client", self.near)
        self.server = self.loop.process("server", self.far)
        self.loop.run_until_complete(self.server.spawn(self._serve()))

    async def _serve(self):
        async def echo(reader, writer):
            while data := await reader.read(65536):
                writer.write(data)

        await asyncio.start_server(echo, "a", 80)

    def under(self, fault, work):
        """What work gives while a fault lasts, and again behind it."""

        async def both():
            beginning = asyncio.ensure_future(
                FAULTS[fault](self.run, SECONDS, *self.targets(fault))
            )
            await asyncio.sleep(0.001)
            first = await self.client.spawn(work())
            await beginning
            return first, await self.client.spawn(work())

        return self.loop.run_until_complete(both())

    def targets(self, fault):
        return ("a",) if fault == "no_name" else ("a", "client-1")

    async def seconds_for(self, size):
        """For so many bytes there and back."""
        reader, writer = await asyncio.open_connection("a", 80)
        began = self.loop.time()
        writer.write(random.Random(1).randbytes(size))
        await reader.readexactly(size)
        seconds = self.loop.time() - began
        writer.close()
        await writer.wait_closed()
        return seconds


@pytest.fixture
def links():
    made = Links()
    yield made
    made.loop.close()


def test_a_slow_link_delays_all_that_goes_over_it(links):
    during, behind = links.under("slow_link", lambda: links.seconds_for(10))

    assert during >= 2 * SLOW_S[0]
    assert behind < SLOW_S[0]


def test_a_narrow_link_takes_long_for_many_bytes(links):
    during, behind = links.under("narrow_link", lambda: links.seconds_for(200_000))

    assert during > 200_000 / NARROW
    assert behind < 1


def test_what_a_connection_carries_one_way_is_late_and_keeps_its_order(links):
    async def both():
        reader, writer = await asyncio.open_connection("a", 80)
        delaying = asyncio.ensure_future(FAULTS["late"](links.run, SECONDS, "a", "client-1"))
        await asyncio.sleep(0.001)
        began = links.loop.time()
        for text in (b"one ", b"two"):
            writer.write(text)
        echo = await reader.readexactly(7)
        waited = links.loop.time() - began
        # Another connection is not.
        other = await links.seconds_for(10)
        await delaying
        writer.close()
        await writer.wait_closed()
        return echo, waited, other

    echo, waited, other = links.loop.run_until_complete(links.client.spawn(both()))

    assert echo == b"one two"
    assert SECONDS - 1 < waited < SECONDS + 1
    assert other < 1


def test_a_name_that_nobody_knows_is_an_error_until_it_is_known_again(links):
    async def connect():
        try:
            await links.seconds_for(10)
        except OSError as error:
            return str(error)
        return "connected"

    during, behind = links.under("no_name", connect)

    assert "not known" in during
    assert behind == "connected"


def test_a_process_that_stalls_runs_its_timers_late_and_in_order(links):
    node = links.run.node("a")
    links.loop.run_until_complete(node.start())
    seen, late = [], []

    async def count():
        began = links.loop.time()
        for number in range(20):
            moment = began + 0.05 * number
            links.loop.call_at(
                moment,
                lambda number=number, moment=moment: (
                    seen.append(number),
                    late.append(links.loop.time() - moment),
                ),
            )
        await asyncio.sleep(2)

    async def both():
        stalling = asyncio.ensure_future(FAULTS["stall"](links.run, 2, "a"))
        node.process.spawn(count())
        await stalling
        await asyncio.sleep(1)

    links.loop.run_until_complete(both())

    assert seen == list(range(20))
    assert max(late) > 0.01
