"""JMS bridges between our broker and Artemis's, cut at frames, answered late, and killed."""

import asyncio
import logging

import pytest

from tests.broker.bridges.jms.faults import LATE_S, WAYS, every_point

# Every so many fault points in the quick test, and with answers that are late.
STEP, LATE_STEP = 31, 61


@pytest.fixture(params=["from ours", "from Artemis"])
def given(request, distributed_broker, our_broker):
    pair = (our_broker, distributed_broker)
    source, target = pair if request.param == "from ours" else pair[::-1]
    return {"source": source, "target": target}


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Of each cut there is a line in the log."""
    caplog.set_level(logging.ERROR, "broker")


def tell(figures, way, given, outcomes):
    """Print what came of a quality at the end of the run."""
    figures(
        f"JMS bridge, {way}, {type(given['source']).__name__} to {type(given['target']).__name__}",
        fault_points=len(outcomes),
        faults_that_came=sum(one.has_cut for one in outcomes),
        lost_one=sum(bool(one.lost) for one in outcomes),
        doubled_one=sum(bool(one.doubled) for one in outcomes),
    )


@pytest.mark.parametrize("way", WAYS)
def test_cuts(way, given, tmp_path, figures):
    """Before and behind frames of two batches."""
    outcomes = asyncio.run(every_point(way, tmp_path, STEP, given=given))

    tell(figures, way, given, outcomes)
    assert [one for one in outcomes if one.is_wrong(way)] == []
    assert sum(one.has_cut for one in outcomes) > len(outcomes) / 2


@pytest.mark.parametrize("way", WAYS)
def test_late_answers(way, given, tmp_path, figures):
    """Nothing is lost or doubled, with any quality: nothing has failed."""
    outcomes = asyncio.run(every_point(way, tmp_path, LATE_STEP, kinds=(LATE_S,), given=given))

    tell(figures, f"{way}, late answers", given, outcomes)
    assert [one for one in outcomes if one.lost or one.doubled] == []
    assert any(one.has_cut for one in outcomes)


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS)
def test_every_cut(way, given, tmp_path, effort, figures):
    """Over 1,000 of all qualities and both directions together."""
    step = max(1, 31 // effort(31))
    outcomes = asyncio.run(every_point(way, tmp_path, step, given=given))

    tell(figures, way, given, outcomes)
    assert [one for one in outcomes if one.is_wrong(way)] == []
