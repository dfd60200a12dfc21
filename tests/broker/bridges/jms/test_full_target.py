"""Batches larger than a page of the target, and than what its disk still takes: all bridges."""

import contextlib
import json
import logging
import time

import pytest

from tests.broker.bridges.jms.faults import MAY_DOUBLE, MAY_LOSE
from tests.broker.bridges.jms.sides import CORE, END_S, Sides
from tests.crash.small_disk import empty, fill, small_disk

# Characters, of two bytes each: more than a page of tests.broker.serve, and no large message.
IN_PAGES, PAGED = 45_000, 20
# For the files of both journals at the start.
ROOM = 9 << 20
FILE_SIZE = 512 << 10
# Of each bridge; all of them together are a third of the disk.
ON_DISK, LARGE = 200, 10_000
DISK_IS_FULL = "AMQ229102: the disk is full"


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Of each attempt there is a line in the log."""
    caplog.set_level(logging.ERROR, "broker")


@contextlib.contextmanager
def moving(sides):
    with contextlib.ExitStack() as running:
        for one in sides.bridges.values():
            running.enter_context(one)
        sides.start_core_bridge()
        yield


def reasons(sides):
    """Why each bridge does not move."""
    with sides.session("source") as session:
        core = json.loads(session.attribute("bridge.core", "statusAsJSON"))["reason"]
    return {CORE: core, **{way: one.why or "" for way, one in sides.bridges.items()}}


def check(sides, count):
    for way in sides.queues:
        found = sides.taken(way)
        lost = [number for number in map(str, range(count)) if number not in found]
        doubled = [number for number, ids in found.items() if len(ids) > 1]
        assert not lost or way in MAY_LOSE, (way, lost)
        assert not doubled or way in MAY_DOUBLE, (way, doubled)


@pytest.mark.slow
def test_messages_larger_than_a_page_of_the_target_arrive(tmp_path):
    with contextlib.ExitStack() as stack:
        places = {side: tmp_path / side for side in ("source", "target")}
        sides = Sides(places, tmp_path, stack, has_core_bridge=True, max_messages=PAGED // 4)
        sides.send(PAGED, IN_PAGES)
        with moving(sides):
            sides.wait_until_moved()
            assert {one.snapshot()["failures"] for one in sides.bridges.values()} == {0}
        assert list((tmp_path / "target" / "paging").glob("*/*.page"))
        check(sides, PAGED)


@pytest.mark.slow
def test_a_full_disk_of_the_target_is_told_and_waited_for(tmp_path):
    with small_disk("tmpfs", tmp_path) as mount, contextlib.ExitStack() as stack:
        places = {"source": tmp_path / "source", "target": mount / "data"}
        fill(mount, ROOM)
        sides = Sides(places, tmp_path, stack, has_core_bridge=True, file_size=FILE_SIZE)
        sides.send(ON_DISK, LARGE)
        # What the target's files have room for already is less than any bridge has.
        fill(mount)
        with moving(sides):
            silent, end_s = set(sides.queues), time.monotonic() + END_S
            while silent:
                found = reasons(sides)
                assert time.monotonic() < end_s, found
                silent -= {way for way, reason in found.items() if DISK_IS_FULL in reason}
                # Gone before anybody looks: no batch is tried twice.
                silent -= {one for one in MAY_LOSE if sides.bridges[one].snapshot()["failures"]}
                time.sleep(0.01)
            assert sides.left() > 0
            empty(mount)
            sides.wait_until_moved()
        check(sides, ON_DISK)
