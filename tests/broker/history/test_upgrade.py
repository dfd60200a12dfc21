"""A rolling upgrade and downgrade of a pair between two versions, as the guide has it, under load.

    old, old* ─▶ new, old* ─▶ new*, old ─▶ new, new* ─▶ old, new* ─▶ old*, new ─▶ …     (* serves)

The backup first. Each version reads what the other one has written. Rounds, of an upgrade and a
downgrade each: `effort` of 10 for each store. QUIVER_SEED tries something else.
"""

import asyncio
import itertools
import os
import random

import pytest

from tests.broker.history.older_version import build_older_version, runs
from tests.broker.history.pair import SHORT_LEASE, Pair
from tests.broker.history.test_random_service import CHANGES, SHOWN
from tests.broker.history.test_rolling import RollingService
from tests.broker.history.world import World
from tests.interop.our_broker import ROOT

SEED = int(os.environ.get("QUIVER_SEED", "4"))
ROUNDS = 10
LIVES_OF_ROUND = 4
# The older version logs it at a stop now and then. Mended since: tests/broker/paging has a test.
OLD_FAULT = "PagingStore._delete_now"


@pytest.fixture(scope="session")
def older(tmp_path_factory):
    return build_older_version(tmp_path_factory.mktemp("older"))


class UpgradingService(RollingService):
    """What starts again is another version."""

    def __init__(self, pair, world, older):
        super().__init__(pair, world)
        self._versions = itertools.cycle((ROOT, older))
        self._next = None
        self._older = older
        self.runs |= {"lives_on_older": 0, "lives_on_newer": 0}

    async def end(self, how):
        pair = self.broker
        is_older = runs(pair.active.process.pid, self._older)
        self.runs["lives_on_older" if is_older else "lives_on_newer"] += 1
        if pair.active is pair.primary:
            self._next = pair.backup.version = next(self._versions)
        else:
            pair.primary.version = self._next
        await super().end(how)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["files", "postgresql"])
def test_clients_of_a_rolling_upgrade_and_downgrade_lose_nothing(
    kind, tmp_path, new_database, effort, figures, older
):
    options, changes = ("--data", str(tmp_path / "data")), CHANGES
    if kind != "files":
        database = new_database(kind)
        options, changes = ("--jdbc", database.jdbc_url), (*CHANGES, SHORT_LEASE)
    pair = Pair(tmp_path, options, changes, version=older)
    world = World(random.Random(SEED), has_large=True)
    service = UpgradingService(pair, world, older)
    print(f"seed {SEED}")
    try:
        found = asyncio.run(service.run_lives(LIVES_OF_ROUND * effort(ROUNDS)))
    finally:
        pair.ensure_ended()

    figures(f"rolling upgrade on {kind}", **service.runs, **world.counts)
    pair.show(figures, f"rolling upgrade on {kind}")
    shown = "\n".join(found[:SHOWN])
    assert not found, f"seed {SEED}; {len(found)} in all\n{shown}"
    assert service.runs["lives_on_older"] == service.runs["lives_on_newer"]
    assert world.counts["deliveries"]
    found = [fault for fault in pair.faults() if OLD_FAULT not in fault or str(older) not in fault]
    assert found == []
