"""Clusters of any number of brokers under faults; planted faults are found.

Quick: a few seeds of five nodes. `make soak` runs 20,000 of them, and some of larger clusters.
"""

from functools import partial
from unittest import mock

import pytest

from broker.bridges.core import bridge
from broker.bridges.core.forwarding import Forwarding
from broker.bridges.core.held_back import HeldBack
from broker.cluster.introduction import HeardTopology
from broker.cluster.peer_bindings import PeerBindings
from broker.cluster.told import ToldType
from broker.routing.remote_bindings import RemoteQueueBinding
from tests.sim.mesh import run_case, wrong
from tests.sim.mesh_case import MeshCase
from tests.sim.test_bridges import AcknowledgesAtOnce

SEEDS = 2
SLOW_SEEDS = 100
SOAK_SEEDS = 20_000
FULL_SLOW_SEEDS = 30
FULL_SOAK_SEEDS = 2_000
# Of more nodes than list each other: the rest is heard of.
LARGER = 10
LARGER_SLOW_SEEDS = 10
LARGER_SOAK_SEEDS = 500
PLANTED_SEEDS = 40


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


def full(count):
    """Cases in which links hold messages back."""
    return [MeshCase(seed, is_full=True) for seed in range(1, count + 1)]


def test_seeds_with_full_nodes_find_nothing_wrong():
    held = mock.Mock(side_effect=HeldBack.add, autospec=True)

    with mock.patch.object(HeldBack, "add", lambda *arguments: held(*arguments)):
        assert wrong(map(run_case, full(SEEDS))) == []

    assert held.call_count


@pytest.mark.slow
def test_more_seeds_with_full_nodes_find_nothing_wrong(effort):
    assert wrong(map(run_case, full(effort(FULL_SLOW_SEEDS)))) == []


@pytest.mark.soak
def test_many_seeds_with_full_nodes_find_nothing_wrong(effort, figures):
    failed = [one for case in full(effort(FULL_SOAK_SEEDS)) if (one := run_case(case)).problems]

    figures("simulation, meshes with full nodes", seeds=effort(FULL_SOAK_SEEDS), failed=len(failed))
    assert wrong(failed[:3]) == []


@pytest.mark.slow
def test_what_is_held_back_for_good_is_found():
    forgets = partial(mock.patch.object, Forwarding, "_release", lambda self, address: None)

    results = (run_case(case, [forgets]) for case in full(PLANTED_SEEDS))
    found = wrong([next(one for one in results if one.problems)])

    assert any("stranded" in one for one in found), found


@pytest.mark.slow
def test_seeds_of_a_larger_mesh_find_nothing_wrong(effort):
    cases = [MeshCase(seed, LARGER) for seed in range(1, effort(LARGER_SLOW_SEEDS) + 1)]

    assert wrong(map(run_case, cases)) == []


@pytest.mark.soak
def test_many_seeds_of_a_larger_mesh_find_nothing_wrong(effort, figures):
    cases = [MeshCase(seed, LARGER) for seed in range(1, effort(LARGER_SOAK_SEEDS) + 1)]
    failed = [one for case in cases if (one := run_case(case)).problems]

    figures(f"simulation, meshes of {LARGER}", seeds=len(cases), failed=len(failed))
    assert wrong(failed[:3]) == []


def test_a_case_is_its_text_and_happens_again():
    texts = (
        "seed 7",
        "seed 7 nodes 50",
        "seed 7 full",
        "seed 7 nodes 3 messages 4 calm",
        "seed 7 nodes 3",
    )

    assert [str(MeshCase.parse(text)) for text in texts] == list(texts)
    hashes = [run_case(MeshCase.parse(texts[-1])).trace_hash for _ in range(2)]
    assert hashes[0] == hashes[1]


def test_members_tell_each_other_of_a_member_once():
    """In a mesh of n each of n members hears from n others of n members, and a little more."""
    count = 0

    def update(self, packet):
        nonlocal count
        count += 1
        return updated(self, packet)

    updated = HeardTopology.update
    with mock.patch.object(HeardTopology, "update", update):
        assert run_case(MeshCase(1, messages=2, is_calm=True)).problems == []
    assert 5**2 < count < 4 * 5**3


# --- planted -----------------------------------------------------------------------------------


class PausedForGood(Forwarding):
    """If a bridge has lost its link once, it takes nothing more from its queue."""

    has_lost = False

    def end(self):
        super().end()
        self.has_lost = True

    def _look(self):
        if not self.has_lost:
            super()._look()


def keep_route(self, told):
    """A queue that is gone is still routed to."""
    if told.type is not ToldType.BINDING_REMOVED:
        change(self, told)


def count_twice(self, filter):
    """One consumer of another node counts for two."""
    created(self, filter)
    created(self, filter)


def stays(self, filter):
    """A consumer that has gone is still there for redistribution."""
    return False


change = PeerBindings._changed
created = RemoteQueueBinding.consumer_created

PLANTED = {
    "acknowledged before the confirmation": (bridge, "Forwarding", AcknowledgesAtOnce, "lost"),
    "a stale route": (PeerBindings, "_changed", keep_route, "route"),
    "a stuck store-and-forward queue": (bridge, "Forwarding", PausedForGood, "stranded"),
    "redistribution to a consumer that has gone": (
        *(RemoteQueueBinding, "consumer_closed"),
        *(stays, "demand"),
    ),
    "demand counted twice": (RemoteQueueBinding, "consumer_created", count_twice, "demand"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_happens_again(name):
    owner, attribute, fault, word = PLANTED[name]
    patch = partial(mock.patch.object, owner, attribute, fault)

    found = next(
        one
        for one in (run_case(MeshCase(seed), [patch]) for seed in range(1, PLANTED_SEEDS + 1))
        if one.problems
    )

    assert any(problem.startswith(word) for problem in found.problems), found.problems
    again = run_case(MeshCase.parse(str(found.case)), [patch])
    assert again.problems == found.problems
    assert again.trace_hash == found.trace_hash
