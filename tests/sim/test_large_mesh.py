"""Clusters of any number of brokers under faults; planted faults are found.

Quick: a few seeds of five nodes. `make soak` runs 20,000 of them, and more of larger clusters.
"""

import pytest

from tests.sim.mesh import run_case, wrong
from tests.sim.mesh_case import MeshCase

SEEDS = 2
SLOW_SEEDS = 200
SOAK_SEEDS = 20_000


def test_seeds_of_five_nodes_find_nothing_wrong():
    assert wrong(map(run_case, map(MeshCase, range(1, SEEDS + 1)))) == []


@pytest.mark.slow
def test_more_seeds_of_five_nodes_find_nothing_wrong(effort):
    assert wrong(map(run_case, map(MeshCase, range(1, effort(SLOW_SEEDS) + 1)))) == []


@pytest.mark.soak
def test_many_seeds_of_five_nodes_find_nothing_wrong(effort, figures):
    count = effort(SOAK_SEEDS)
    failed = [one for seed in range(1, count + 1) if (one := run_case(MeshCase(seed))).problems]

    figures("simulation, meshes of 5", seeds=count, failed=len(failed))
    assert wrong(failed[:3]) == []


def test_a_case_is_its_text_and_happens_again():
    texts = ("seed 7", "seed 7 nodes 50", "seed 7 nodes 3 messages 4 calm", "seed 7 nodes 3")

    assert [str(MeshCase.parse(text)) for text in texts] == list(texts)
    hashes = [run_case(MeshCase.parse(texts[-1])).trace_hash for _ in range(2)]
    assert hashes[0] == hashes[1]
