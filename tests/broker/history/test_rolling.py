"""A rolling restart as the guide has it, under random clients: see docs/guide/failover.md.

Rounds: `effort` of 20 for each store. QUIVER_SEED tries something else.
"""

import asyncio
import os
import random
import signal

import pytest

from tests.broker.history.pair import SHORT_LEASE, Pair, PairService
from tests.broker.history.test_random_service import CHANGES, SHOWN
from tests.broker.history.world import World

SEED = int(os.environ.get("QUIVER_SEED", "4"))
ROUNDS = 20


class RollingService(PairService):
    """Each life ends with the next step, in the guide's order."""

    async def end(self, how):
        """Whatever way to end was drawn, it is an operator's stop."""
        pair = self.broker
        if pair.active is pair.primary:
            # The first step: no client notices, since it only waits.
            assert await asyncio.to_thread(pair.backup.end) == 0
            await asyncio.to_thread(pair.start_backup)
        # Clients are at work when the broker stops.
        self.world.may_refuse = True
        self.runs["stops"] += 1
        self.ended(await asyncio.to_thread(pair.end, signal.SIGTERM), 0)
        self.world.may_refuse = False


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_clients_of_a_rolling_restart_lose_nothing(kind, tmp_path, new_database, effort, figures):
    options, changes = ("--data", str(tmp_path / "data")), CHANGES
    if kind != "files":
        database = new_database(kind)
        options, changes = ("--jdbc", database.jdbc_url), (*CHANGES, SHORT_LEASE)
    pair = Pair(tmp_path, options, changes)
    world = World(random.Random(SEED), has_large=True)
    service = RollingService(pair, world)
    print(f"seed {SEED}")
    try:
        found = asyncio.run(service.run_lives(2 * effort(ROUNDS)))
    finally:
        pair.ensure_ended()

    figures(f"rolling restart on {kind}", **service.runs, **world.counts)
    pair.show(figures, f"rolling restart on {kind}")
    shown = "\n".join(found[:SHOWN])
    assert not found, f"seed {SEED}; {len(found)} in all\n{shown}"
    assert world.counts["deliveries"]
    assert pair.faults() == []
