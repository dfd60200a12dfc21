"""Core bridges under faults: nothing lost, doubled or out of order; planted faults are found.

Quick: some seeds, and every 23rd of the places that a fault may come at. `make soak` runs all.
"""

import itertools
from functools import partial
from unittest import mock

import pytest

from broker.bridges.core import bridge
from broker.bridges.core.forwarding import Forwarding
from broker.bridges.core.outgoing import OutgoingMessages
from broker.client.channel import Channel
from tests.broker.bridges.jms.planted import take_any_answer
from tests.sim.bridge_cases import Case
from tests.sim.bridges import look_for, places, run_case, wrong

SEEDS = 25
SOAK_SEEDS = 20_000
FEW = 6
STEP = 61
# As many are on their way as the target remembers, and more wait.
CACHE = 4


def test_seeds_find_nothing_wrong():
    assert wrong(map(run_case, map(Case, range(1, SEEDS + 1)))) == []


def test_a_fault_at_any_frame_or_sync_loses_and_doubles_nothing():
    found = places(Case(1, messages=FEW))

    assert len(found) > 100
    assert wrong(map(run_case, found[::STEP])) == []


def test_with_a_cache_of_the_window_nothing_doubles():
    found = places(Case(2, messages=15, cache=CACHE))

    assert wrong(map(run_case, found[1::STEP])) == []


def test_a_case_is_its_text_and_happens_again():
    texts = (
        *("seed 7", "seed 7 calm", "seed 7 cut a-b 31 messages 6"),
        "seed 7 kill b 3 early cache 4",
    )

    assert [str(Case.parse(text)) for text in texts] == list(texts)
    hashes = [run_case(Case.parse(texts[-1])).trace_hash for _ in range(2)]
    assert hashes[0] == hashes[1]


@pytest.mark.soak
def test_many_seeds_find_nothing_wrong(effort, figures):
    count = effort(SOAK_SEEDS)
    failed = [one for seed in range(1, count + 1) if (one := run_case(Case(seed))).problems]

    figures("simulation, bridges", seeds=count, failed=len(failed))
    assert wrong(failed[:3]) == []


@pytest.mark.soak
@pytest.mark.parametrize(("messages", "cache"), [(FEW, 20_000), (15, CACHE)])
def test_every_frame_and_sync_finds_nothing_wrong(messages, cache, effort, figures):
    share = effort(STEP)
    found = places(Case(3, messages=messages, cache=cache))[:: max(1, STEP // share)]
    failed = [one for case in found if (one := run_case(case)).problems]

    figures(f"simulation, places of bridges, cache {cache}", cases=len(found), failed=len(failed))
    assert wrong(failed[:3]) == []


# --- planted -----------------------------------------------------------------------------------


class AcknowledgesAtOnce(Forwarding):
    """A message is acknowledged when it is sent."""

    def _put(self, sending, sent):
        super()._put(sending, sent)
        self._timers.call_soon(self._confirm_early, sent)

    def _confirm_early(self, sent):
        if not sent.is_confirmed and sent in self._sent:
            self._answered(sent, None)


class AnotherIdEachTime(OutgoingMessages):
    """Each try has a duplicate id of its own."""

    __slots__ = ()
    numbers = itertools.count(1 << 40)

    def duplicate_id(self, message_id):
        return super().duplicate_id(next(self.numbers))


def one_more(size, **how):
    """A window of one more than the target remembers."""
    return CACHE + 1


PLANTED = {
    "acknowledged before the confirmation": (
        *(bridge, "Forwarding", AcknowledgesAtOnce),
        *("lost", Case(1)),
    ),
    "another duplicate id at a retry": (
        *(bridge, "OutgoingMessages", AnotherIdEachTime),
        *("duplicated", Case(1)),
    ),
    "an answer that comes twice taken for the next one": (
        *(Channel, "_answers", take_any_answer),
        *("lost", Case.parse("seed 2 repeat a-b 60")),
    ),
    "a window larger than the cache": (
        *(bridge, "window_of", one_more),
        *("duplicated", Case(1, messages=60, cache=CACHE)),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_happens_again(name):
    owner, attribute, fault, word, case = PLANTED[name]
    look_for(partial(mock.patch.object, owner, attribute, fault), word, case)
