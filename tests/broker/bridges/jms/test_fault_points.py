"""A cut before and behind every frame of a batch, for every quality of service."""

import asyncio
import itertools
import logging

import pytest

from broker.bridges.jms import coordinator, transfers
from broker.bridges.jms.transactions import Role
from tests.broker.bridges.jms.faults import MAY_DOUBLE, MAY_LOSE, WAYS, WHOLE, every_point

# Every so many fault points in the quick test.
STEP = 15


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Of each cut there is a line in the log."""
    caplog.set_level(logging.ERROR, "broker")


def told(way, outcomes):
    lost = sum(bool(one.lost) for one in outcomes)
    doubled = sum(bool(one.doubled) for one in outcomes)
    cut = sum(one.has_cut for one in outcomes)
    return f"{way}: {len(outcomes)} fault points, {cut} cut, {lost} lost, {doubled} doubled"


def wrong(way, outcomes):
    return [one for one in outcomes if one.is_wrong(way)]


@pytest.mark.parametrize("way", WAYS)
def test_some_fault_points(way, tmp_path):
    outcomes = asyncio.run(every_point(way, tmp_path, STEP))

    print(told(way, outcomes))
    assert wrong(way, outcomes) == []
    assert sum(one.has_cut for one in outcomes) > len(outcomes) / 2


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_fault_point(way, tmp_path, effort):
    """Each that a batch has, at full effort: over 1,000 of all qualities together."""
    step = max(1, 100 // effort(100, least=33))
    outcomes = asyncio.run(every_point(way, tmp_path, step, size=WHOLE))

    print(told(way, outcomes))
    assert wrong(way, outcomes) == []
    # What a quality allows does happen: the faults are real ones.
    assert any(one.lost for one in outcomes) == (way in MAY_LOSE)
    assert any(one.doubled for one in outcomes) == (way in MAY_DOUBLE)


# --- planted faults: each is found ----------------------------------------------------------------


async def acknowledge_first(self, messages):
    for message in messages:
        message.duplicate_id = transfers.duplicate_id(self._node_id, message.position)
    await self.source_session.acknowledge()
    await self._send(messages)


def new_id_each_time():
    made = itertools.count()
    return lambda node_id, position: next(made).to_bytes(8, "big")


async def commit_the_source_alone(resources, transaction):
    await coordinator._end(
        resources[Role.SOURCE], coordinator.branch(Role.SOURCE, transaction), is_commit=True
    )
    target = coordinator.branch(Role.TARGET, transaction)
    await coordinator._end(resources[Role.TARGET], target, is_commit=False)


def test_acknowledging_before_the_confirmation_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(transfers._DuplicateIds, "move", acknowledge_first)
    way = "ONCE_AND_ONLY_ONCE by duplicate ids"

    outcomes = asyncio.run(every_point(way, tmp_path, 3, until=lambda one: one.lost))

    assert outcomes[-1].lost


def test_a_new_duplicate_id_at_a_retry_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(transfers, "duplicate_id", new_id_each_time())
    way = "ONCE_AND_ONLY_ONCE by duplicate ids"

    outcomes = asyncio.run(every_point(way, tmp_path, 3, until=lambda one: one.doubled))

    assert outcomes[-1].doubled


def test_a_branch_committed_on_one_side_is_found(tmp_path, monkeypatch):
    way = "ONCE_AND_ONLY_ONCE by two phases"
    monkeypatch.setattr(coordinator, "commit_branches", commit_the_source_alone)

    with pytest.raises(AssertionError):
        # Without any cut.
        asyncio.run(every_point(way, tmp_path))
