"""Bridges between brokers on files, PostgreSQL and SQLite, in every pairing, through faults.

Each pairing moves messages with every quality of service at once. Connections are reset, and source
and target are killed (-9) and started again on the same port.
"""

import contextlib
import itertools

import pytest

from tests.broker.bridges.jms.faults import MAY_DOUBLE, MAY_LOSE, WAYS
from tests.broker.bridges.jms.sides import Sides

pytest.importorskip("psycopg", reason="psycopg is not installed: quiver-mq[postgresql] brings it")

STORES = ("file", "postgresql", "sqlite")
# In `make test-all`; the others are for the full length.
QUICK = {("file", "postgresql")}
PAIRS = [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.soak)
    for pair in itertools.product(STORES, STORES)
]
COUNT, LEAST, ROUNDS = 600, 60, 10


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_faults_between_stores(tmp_path, new_database, effort, figures, source, target):
    def place(side, kind):
        return tmp_path / side if kind == "file" else new_database(kind).url

    count, rounds = effort(COUNT, least=LEAST), effort(ROUNDS)
    with contextlib.ExitStack() as stack:
        sides = Sides({"source": place("s", source), "target": place("t", target)}, tmp_path, stack)
        sides.send(count)
        running = stack.enter_context(contextlib.ExitStack())
        for one in sides.bridges.values():
            running.enter_context(one)
        faults = sides.fail_while_moving(len(WAYS) * count, rounds)
        sides.wait_until_moved()
        running.close()
        found = {way: sides.taken(way) for way in WAYS}

    told = {}
    for way, counted in found.items():
        lost = sum(not counted[str(number)] for number in range(count))
        doubled = sum(len(ids) > 1 for ids in counted.values())
        told[way] = (lost, doubled)
        figures(
            f"JMS bridge between stores, {way}",
            fault_points=faults,
            messages=count,
            lost=lost,
            doubled=doubled,
        )
    assert all(not lost or way in MAY_LOSE for way, (lost, _) in told.items()), told
    assert all(not doubled or way in MAY_DOUBLE for way, (_, doubled) in told.items()), told
