"""A pair on one store fails over and back under random clients, and loses and doubles nothing.

Clients send and take in local and distributed transactions, large messages and those in pages
among them; some transactions are in doubt when who serves ends (see pair.py). Number of lives:
`effort` of 200 for each store, half of them failovers and half failbacks. QUIVER_SEED tries
something else.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.broker.history.pair import SHORT_LEASE, WAIT_S, Pair, PairService
from tests.broker.history.test_random_service import CHANGES, SHOWN
from tests.broker.history.world import World
from tests.interop.our_broker import ROOT
from tests.machines import Machines, missing

SEED = int(os.environ.get("QUIVER_SEED", "4"))
LIVES = 200
LEAST_LIVES = 4
# In `make test-all`; `make soak` has the full length.
MOST_LIVES = 8


@pytest.fixture
def machines():
    """Two, each with a network that a cut leaves without a word: a relay's ends hear of it."""
    if (what := missing()) is not None:
        pytest.skip(what)
    with Machines(2) as made:
        yield made


@pytest.fixture
def service(tmp_path, new_database, request):
    """Of a store of the kind that the test is parametrised with (indirect).

    On machines of their own if the test has them; else on this one, behind relays.
    """
    machines = request.getfixturevalue("machines") if "machines" in request.fixturenames else None
    server = None
    changes = CHANGES
    if request.param == "files":
        options = ("--data", str(tmp_path / "data"))
    else:
        database = new_database(request.param)
        options = ("--jdbc", database.jdbc_url or database.url)
        changes = (*CHANGES, SHORT_LEASE)
        server = database.server
    pair = Pair(tmp_path, options, changes, machines=machines)
    if server is not None:
        pair.reach_database_by_relay(server.port)
    world = World(random.Random(SEED), has_large=True)
    yield PairService(
        pair,
        world,
        server=server,
        # One that stands still in the midst of a write keeps SQLite's file locked for good.
        is_paused=request.param == "files",
        has_one_clock=request.param == "sqlite",
    )
    pair.ensure_ended()


def run(service, lives, figures, kind):
    print(f"seed {SEED}")
    found = asyncio.run(service.run_lives(lives))

    pair = service.broker
    figures(f"pair on {kind}", **service.runs, **service.world.counts)
    pair.show(figures, f"pair on {kind}")
    shown = "\n".join(found[:SHOWN])
    assert not found, f"seed {SEED}; {len(found)} in all\n{shown}"
    assert service.world.counts["deliveries"]
    assert pair.faults() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "service",
    [
        "files",
        "postgresql",
        pytest.param("sqlite", marks=pytest.mark.soak),
        pytest.param("mariadb", marks=pytest.mark.soak),
    ],
    indirect=True,
)
def test_a_pair_loses_and_doubles_nothing(service, effort, figures, request):
    lives = min(MOST_LIVES, effort(LIVES, least=LEAST_LIVES))

    run(service, lives, figures, request.node.callspec.params["service"])


@pytest.mark.soak
@pytest.mark.parametrize("service", ["files", "postgresql", "mariadb"], indirect=True)
def test_a_hundred_failovers_and_failbacks_lose_and_double_nothing(
    machines, service, effort, figures, request
):
    lives = effort(LIVES, least=LEAST_LIVES)

    run(service, lives, figures, request.node.callspec.params["service"])


@pytest.mark.slow
def test_a_primary_on_a_folder_that_stands_still_keeps_its_place(tmp_path):
    pair = Pair(tmp_path, ("--data", str(tmp_path / "data")), ())
    try:
        pair.start()
        pair.primary.process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        waits = not pair.backup.serves()
        pair.primary.process.send_signal(signal.SIGCONT)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "broker.cli.main", "ha", "status", "--json"),
                str(pair.backup.folder),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        found = json.loads(done.stdout)
    finally:
        pair.ensure_ended()

    assert waits
    assert found["primary"].startswith(f"process {pair.primary.process.pid}")
    assert found["backup"] == f"process {pair.backup.process.pid}"
    assert Path(found["store"]).is_dir()
