"""A server ends a session while the network is cut: who waits for its answer is told of it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from jdbcstore.dialects.keepalive import Probes, probes
from tests.machines import Machines, missing
from tests.proxy import Proxy

ROOT = Path(__file__).parents[2]
# A tenth of what the reader would wait; the reader's kernel asks every 5 s.
WAIT_S = 60


@pytest.mark.parametrize(
    ("timeout_ms", "found"),
    [
        (20_000, Probes(2, 9)),
        (1000, Probes(1, 1)),
        (1, Probes(1, 1)),
        (3000, Probes(2, 1)),
        (256_000, Probes(2, 127)),
        (600_000, Probes(5, 119)),
    ],
)
def test_unanswered_probes_take_as_long_as_the_time_out(timeout_ms, found):
    assert probes(timeout_ms) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database", "statement"),
    [("mariadb", "SELECT SLEEP(900)"), ("postgresql", "SELECT pg_sleep(900)")],
    indirect=["database"],
    ids=["mariadb", "postgresql"],
)
def test_a_reader_learns_of_a_reset_that_was_lost(database, statement):
    if reason := missing():
        pytest.skip(reason)
    with (
        Machines(1) as machines,
        Proxy(database.server.port, host=machines.address) as relay,
    ):
        url = database.url.replace(
            f"127.0.0.1:{database.server.port}", f"{machines.address}:{relay.port}"
        )
        assert url != database.url
        network = machines[0].to_everything()
        reader = subprocess.Popen(
            [
                *machines[0].launcher,
                *(sys.executable, "-m", "tests.jdbcstore.waiting_reader", url, statement),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert reader.stdout.readline() == "waiting\n"
            time.sleep(1)  # It waits for the answer by then, or fails at its question.
            network.stall()
            relay.cut()
            # What the relay's kernel sent is lost.
            time.sleep(1)
            network.resume()
            told, _ = reader.communicate(timeout=WAIT_S)
        finally:
            network.resume()
            reader.kill()
            reader.wait()

    assert told == "LOST\n"
