"""A core bridge whose connection is cut before and behind every frame of a batch."""

import asyncio
import logging

import pytest

from tests.broker.bridges.jms.cutting import DOWN, UP, CuttingProxy
from tests.broker.bridges.two_brokers import (
    WAIT_S,
    bridge,
    count_of,
    options,
    port_of,
    running,
    session_of,
    until,
)

QUICK, WHOLE = 6, 30  # Messages of a batch.
STEP = 15  # Every so many fault points in the quick test.
UNCUT = (UP, 10**9, False)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Of each cut there is a line in the log."""
    caplog.set_level(logging.ERROR, "broker")


async def moved(source, target_session, proxy, moving, sent, point):
    """Send a batch through a bridge that connects anew, cut at a point; what arrived, in order."""
    await moving.stop()
    proxy.cut_at(point[0], point[1], is_passed=point[2])
    async with session_of(source) as session:
        producer = session.producer("from")
        for text in sent:
            await producer.send(text)
    moving.start()
    await until(lambda: count_of(source, "from") == 0, WAIT_S)
    found = []
    async with await target_session.consumer("to") as consumer:
        while (one := await consumer.receive_now()) is not None:
            found.append(one.content)
    return found


async def every_point(size, step):
    """Run at every `step`-th fault point; the counts of points and cuts, and what was wrong."""
    async with running(options("t", queue="to")) as target, CuttingProxy(port_of(target)) as proxy:
        changes = {"retry_interval_ms": 1, "max_retry_interval_ms": 1}
        source_options = options(
            "s", queue="from", bridges=(bridge(**changes),), target_port=proxy.port
        )
        async with running(source_options) as source, session_of(target) as target_session:
            (moving,) = source.bridges.by_name.values()
            ends = (source, target_session, proxy, moving)
            sent = [f"0-{index}" for index in range(size)]
            assert await moved(*ends, sent, UNCUT) == sent
            counts = dict(proxy.counts)
            points = [
                (direction, number, is_passed)
                for direction in (UP, DOWN)
                for number in range(1, counts[direction] + 1)
                for is_passed in (False, True)
            ][::step]
            cuts, wrong = 0, []
            for run, point in enumerate(points, 1):
                sent = [f"{run}-{index}" for index in range(size)]
                found = await moved(*ends, sent, point)
                cuts += proxy.has_cut
                if found != sent:
                    wrong.append((point, found))
            return len(points), cuts, wrong


def tell(figures, points, cuts, wrong):
    figures("core bridge", fault_points=points, faults_that_came=cuts, wrong=len(wrong))


def test_some_cuts_lose_and_double_nothing(figures):
    points, cuts, wrong = asyncio.run(every_point(QUICK, STEP))

    tell(figures, points, cuts, wrong)
    assert wrong == []
    assert cuts > points / 2


@pytest.mark.slow
def test_a_cut_at_every_frame_loses_and_doubles_nothing(effort, figures):
    points, cuts, wrong = asyncio.run(every_point(WHOLE, max(1, 100 // effort(100, least=10))))

    tell(figures, points, cuts, wrong)
    assert wrong == []
    assert cuts > points / 2
