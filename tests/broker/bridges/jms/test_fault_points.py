"""A cut before and behind every frame of a batch, for every quality of service."""

import asyncio
import logging

import pytest

from broker.bridges.jms import duplicate_ids, pipelined
from broker.bridges.jms.pipelined_two_phase import PipelinedTwoPhase
from tests.broker.bridges.jms.faults import (
    LATE_S,
    MAY_DOUBLE,
    MAY_LOSE,
    WAYS,
    WHOLE,
    every_point,
)
from tests.broker.bridges.jms.planted import (
    acknowledge_first,
    commit_the_source_alone,
    new_id_each_time,
)

# Every so many fault points in the quick test.
STEP = 15
# Points of a partition, of each quality, and how long it lasts.
PARTITION_STEP, PARTITION_S = 60, 30


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Of each cut there is a line in the log."""
    caplog.set_level(logging.ERROR, "broker")


def tell(figures, way, outcomes):
    """Print what came of a quality at the end of the run."""
    figures(
        f"JMS bridge, {way}",
        fault_points=len(outcomes),
        faults_that_came=sum(one.has_cut for one in outcomes),
        lost_one=sum(bool(one.lost) for one in outcomes),
        doubled_one=sum(bool(one.doubled) for one in outcomes),
    )


def wrong(way, outcomes):
    return [one for one in outcomes if one.is_wrong(way)]


@pytest.mark.parametrize("way", WAYS)
def test_some_fault_points(way, tmp_path, figures):
    outcomes = asyncio.run(every_point(way, tmp_path, STEP))

    tell(figures, way, outcomes)
    assert wrong(way, outcomes) == []
    assert sum(one.has_cut for one in outcomes) > len(outcomes) / 2


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_fault_point(way, tmp_path, effort, figures):
    """Each that a batch has, at full effort: over 1,000 of all qualities together."""
    step = max(1, 100 // effort(100, least=33))
    outcomes = asyncio.run(every_point(way, tmp_path, step, size=WHOLE))

    tell(figures, way, outcomes)
    assert wrong(way, outcomes) == []
    # What a quality allows does happen: the faults are real ones.
    assert any(one.lost for one in outcomes) == (way in MAY_LOSE)
    assert any(one.doubled for one in outcomes) == (way in MAY_DOUBLE)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_side_that_answers_late(way, tmp_path, effort, figures):
    """Nothing is lost or doubled, with any quality: nothing has failed."""
    step = max(1, 100 // effort(100, least=3))
    outcomes = asyncio.run(every_point(way, tmp_path, step, kinds=(LATE_S,)))

    tell(figures, f"{way}, late answers", outcomes)
    assert [one for one in outcomes if one.lost or one.doubled] == []
    assert any(one.has_cut for one in outcomes)


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS)
def test_partitions(way, tmp_path, figures):
    outcomes = asyncio.run(
        every_point(way, tmp_path, PARTITION_STEP, size=WHOLE, kinds=(PARTITION_S,))
    )

    tell(figures, f"{way}, partitions of {PARTITION_S} s", outcomes)
    assert wrong(way, outcomes) == []
    assert any(one.has_cut for one in outcomes)


# --- planted faults: each is found ----------------------------------------------------------------


def test_acknowledging_before_the_confirmation_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(pipelined.PipelinedAcknowledgeLast, "move", acknowledge_first)
    way = "ONCE_AND_ONLY_ONCE by duplicate ids"

    outcomes = asyncio.run(every_point(way, tmp_path, 3, until=lambda one: one.lost))

    assert outcomes[-1].lost


def test_a_new_duplicate_id_at_a_retry_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(duplicate_ids, "duplicate_id", new_id_each_time())
    way = "ONCE_AND_ONLY_ONCE by duplicate ids"

    outcomes = asyncio.run(every_point(way, tmp_path, 3, until=lambda one: one.doubled))

    assert outcomes[-1].doubled


def test_a_branch_committed_on_one_side_is_found(tmp_path, monkeypatch):
    way = "ONCE_AND_ONLY_ONCE by two phases"
    monkeypatch.setattr(PipelinedTwoPhase, "_commit", commit_the_source_alone)

    with pytest.raises(AssertionError):
        # Without any cut.
        asyncio.run(every_point(way, tmp_path))
