"""JMS bridges under faults: what each quality of service says; planted faults are found.

Quick: some seeds, and every so many of the places that a fault may come at. `make soak` runs all.
"""

from collections import Counter
from functools import partial
from unittest import mock

import pytest

from broker.bridges.jms import connecting, duplicate_ids, pipelined
from broker.bridges.jms.coordinator import Coordinator
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.pipelined_two_phase import PipelinedTwoPhase
from broker.client.channel import Channel
from tests.broker.bridges.jms import planted
from tests.sim.bridge_cases import (
    AT_MOST_ONCE,
    CORE,
    DUPLICATE_IDS,
    DUPLICATES_OK,
    JMS,
    TWO_PHASE,
    Case,
)
from tests.sim.bridge_run import Run
from tests.sim.bridges import look_for, places, run_case, wrong
from tests.sim.story import Event

SOAK_SEEDS = 20_000
FEW = 4
STEP = 97
SOAK_STEP = 23
# As many are on their way as the target remembers, and more wait.
CACHE = 3


def chains(kind):
    """The pairs of bridges that a kind is tried in: both, and beside a core bridge."""
    return ((kind, kind), (kind, CORE), (CORE, kind))


@pytest.mark.parametrize("kind", JMS)
def test_seeds_find_nothing_wrong(kind):
    cases = [Case(seed, kinds) for seed, kinds in enumerate(chains(kind), 1)]

    assert wrong(map(run_case, cases)) == []


@pytest.mark.parametrize("kind", JMS)
def test_a_fault_at_any_frame_or_sync_finds_nothing_wrong(kind):
    found = places(Case(1, (kind, kind), messages=FEW))

    assert len(found) > 400
    assert wrong(map(run_case, found[::STEP])) == []


def test_with_a_cache_of_a_batch_nothing_doubles():
    found = places(Case(2, (DUPLICATE_IDS, CORE), messages=10, cache=CACHE))

    assert wrong(map(run_case, found[1::STEP])) == []


def test_a_case_is_its_text_and_happens_again():
    texts = (
        "seed 7 by two-phase core",
        "seed 7 by two-phase core calm",
        "seed 7 by at-most-once duplicates-ok late ab-b 31 9 messages 6",
        "seed 7 by duplicate-ids duplicate-ids repeat bc-c 12",
        "seed 7 by two-phase two-phase kill ab 3 early of a messages 6",
    )

    assert [str(Case.parse(text)) for text in texts] == list(texts)
    for text in texts[-2:]:
        assert len({run_case(Case.parse(text)).trace_hash for _ in range(2)}) == 1
    with pytest.raises(ValueError, match="no bridge is 'jms'"):
        Case.parse("seed 1 by jms core")


def test_a_large_body_that_is_sent_while_its_message_is_given_up():
    case = Case.parse("seed 3 by two-phase two-phase cut b-bc 23 messages 6")

    assert wrong([run_case(case)]) == []


@pytest.mark.parametrize(("fault", "exits"), [("fail_disk", True), ("full_disk", False)])
def test_a_log_whose_disk_fails_or_is_full(fault, exits):
    """A failed one ends the process, which is started again; a full one is waited for."""
    event = Event(0.3, fault, ("ab",), 1.5)
    events = partial(mock.patch.object, Run, "_events", lambda self: [event])

    result = run_case(Case(1, (TWO_PHASE, TWO_PHASE)), [events])

    assert wrong([result]) == []
    assert (result.counts["exits"] > 0) == exits
    assert result.counts["again"] > 0 or exits


@pytest.mark.soak
@pytest.mark.parametrize("kind", JMS)
def test_many_seeds_find_nothing_wrong(kind, effort, figures):
    count = effort(SOAK_SEEDS // len(JMS))
    results = [run_case(Case(seed, chains(kind)[seed % 3])) for seed in range(1, count + 1)]

    failed = [one for one in results if one.problems]
    counts = sum((one.counts for one in results), Counter())
    told = {name: counts[name] for name in ("again", "lost", "duplicated")}
    figures(f"simulation, JMS bridges, {kind}", seeds=count, failed=len(failed), **told)
    assert wrong(failed[:3]) == []


@pytest.mark.soak
@pytest.mark.parametrize("kind", JMS)
def test_every_frame_and_sync_does_what_the_quality_says(kind, effort, figures):
    share = effort(SOAK_STEP)
    found = places(Case(3, (kind, kind), messages=6))[:: max(1, SOAK_STEP // share)]
    results = [run_case(case) for case in found]

    failed = [one for one in results if one.problems]
    counts = sum((one.counts for one in results), Counter())
    figures(f"simulation, places of JMS bridges, {kind}", cases=len(found), failed=len(failed))
    assert wrong(failed[:3]) == []
    # What the quality allows does happen: the faults are real ones.
    assert (counts["lost"] > 0) == (kind == AT_MOST_ONCE)
    assert (counts["duplicated"] > 0) == (kind == DUPLICATES_OK)


# --- planted -----------------------------------------------------------------------------------

BY_IDS, BY_TWO_PHASES = (DUPLICATE_IDS, DUPLICATE_IDS), (TWO_PHASE, TWO_PHASE)
# By what it is: what is replaced, what a run says, and a case not far from one that finds it.
PLANTED = {
    "acknowledged before the confirmation": (
        *(pipelined.PipelinedAcknowledgeLast, "move", planted.acknowledge_first),
        *("lost", Case(1, BY_IDS)),
    ),
    "another duplicate id at a retry": (
        *(duplicate_ids, "duplicate_id", planted.new_id_each_time()),
        *("duplicated", Case(1, BY_IDS)),
    ),
    "an answer that comes twice taken for the next one": (
        *(Channel, "_answers", planted.take_any_answer),
        *("lost", Case.parse("seed 5 by duplicate-ids duplicate-ids repeat bc-c 86")),
    ),
    "a batch larger than the cache": (
        *(connecting, "batch_size_for", planted.one_more),
        *("duplicated", Case(1, BY_IDS, messages=60, cache=2)),
    ),
    "committed at the source alone": (
        *(PipelinedTwoPhase, "_commit", planted.commit_the_source_alone),
        *("lost", Case(1, BY_TWO_PHASES)),
    ),
    "committed at the target alone": (
        *(PipelinedTwoPhase, "_commit", planted.commit_the_target_alone),
        *("stranded", Case(1, BY_TWO_PHASES, messages=FEW)),
    ),
    "committed at the target alone, by recovery": (
        *(Coordinator, "recover", planted.recover_the_target_alone),
        *("duplicated", Case(24, (CORE, TWO_PHASE))),
    ),
    "decided without a sync": (
        *(DecisionLog, "_add", planted.add_without_sync),
        *("duplicated", Case.parse("seed 1 by two-phase two-phase kill ab 3 of b messages 6")),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_happens_again(name):
    owner, attribute, fault, word, case = PLANTED[name]
    look_for(partial(mock.patch.object, owner, attribute, fault), word, case)
