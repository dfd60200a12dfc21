"""What a backup costs that waits, perhaps for years: memory and processor of its process."""

import os
import re
import time
import urllib.request
from pathlib import Path

import pytest

from tests.broker.history.pair import Pair

# What docs/guide/failover.md promises; 54 MB were seen, and 57 in a cluster.
MEMORY_MAX = 60_000_000
# Of a processor; a twentieth of that was seen, in ticks of the system's clock.
SHARE_MAX = 0.05
WATCHED_S = 4.0
CLUSTER = (
    *("--static-cluster", "tcp://127.0.0.1:1"),
    *("--cluster-user", "peer", "--cluster-password", "secret"),
)


def rollup(pid, what):
    """Bytes of a process: Rss is all that is in memory, Pss its share of what others use too."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {what}")


def cpu_s(pid):
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scrape(log):
    """Have the metrics asked for, as each pair that is watched has; the state that they tell."""
    place = log.split("HTTP Server started at ")[1].split()[0]
    with urllib.request.urlopen(f"{place}/metrics", timeout=30) as answer:
        return answer.read().decode()


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param((), id="alone", marks=pytest.mark.slow),
        pytest.param(CLUSTER, id="in a cluster"),
    ],
)
def test_a_backup_that_waits_costs_little(tmp_path, figures, cluster):
    pair = Pair(tmp_path, ("--data", str(tmp_path / "data"), *cluster), ())
    try:
        pair.start()
        told = scrape(pair.backup.said())
        pid = pair.backup.process.pid
        before_s = cpu_s(pid)
        time.sleep(WATCHED_S)
        used_s = cpu_s(pid) - before_s
        memory, shared_out = rollup(pid, "Rss"), rollup(pid, "Pss")
    finally:
        pair.ensure_ended()

    where = "in a cluster" if cluster else "alone"
    figures(
        f"a backup that waits {where}",
        KB_resident=memory // 1000,
        KB_pss=shared_out // 1000,
        ms_of_processor=round(used_s * 1000),
    )
    assert re.search(r"^artemis_active\{.*\} 0", told, re.MULTILINE)
    assert memory < MEMORY_MAX
    assert used_s / WATCHED_S < SHARE_MAX
