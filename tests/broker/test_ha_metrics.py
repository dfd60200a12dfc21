"""What a pair tells of itself in metrics, and two settings of it that a start is to obey."""

import asyncio
import re
import time

import pytest

from broker.options import BrokerOptions
from broker.server import failback
from broker.server.lifecycle import HaState
from broker.server.server import Broker
from jdbcstore import Database, NodeManager
from jdbcstore.node import NodeState
from journal.errors import JournalIOError
from tests.broker.management.test_web import get
from tests.broker.test_starting import KINDS, held, options_of, store_of, until
from tests.interop.asynchronous import asynchronous

WAIT_S = 60


async def told(broker):
    """The metrics of its pair, by their short names; the state is the one that is 1."""
    _, _, text = await get(broker.web[0].port, "/metrics")
    values = {
        name: float(value)
        for name, value in re.findall(r"^quiver_ha_(\w+)\{broker=\"b\"\} (\S+)", text, re.MULTILINE)
    }
    states = re.findall(r"^quiver_ha_state\{(.*)\} (\S+)", text, re.MULTILINE)
    (values["state"],) = (labels for labels, value in states if float(value) == 1)
    assert len(states) == len(HaState)
    return values


async def become_active(broker):
    async with asyncio.timeout(WAIT_S):
        while not broker.is_active:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_metrics_follow_a_backup_from_its_wait_to_its_place(tmp_path, kind):
    # A primary that served, and left its place to a backup.
    primary = Broker(options_of(tmp_path, kind, shares_store=True, failover_on_shutdown=True))
    await primary.start()
    served = await told(primary)
    await primary.stop()
    began_s = time.time()
    backup = Broker(options_of(tmp_path, kind, shares_store=True, is_backup=True))

    with held(tmp_path, kind):
        if kind == "tables":
            primary_serves(tmp_path, kind)
        starting = asyncio.ensure_future(backup.start())
        await until(backup, "waiting for the lock")
        waits = await told(backup)
        await asyncio.sleep(0.2)
    await starting
    await become_active(backup)
    serves = await told(backup)
    await backup.stop()

    assert 'role="primary"' in served["state"]
    assert 'state="active"' in served["state"]
    assert served["transitions"] == 3
    assert served["outage_seconds"] < 0
    assert 0 <= served["proof_age_seconds"] < WAIT_S
    assert 'role="backup"' in waits["state"]
    assert 'state="waiting"' in waits["state"]
    assert waits["transitions"] == 1
    assert began_s <= waits["state_since_seconds"] + 0.001
    assert waits["proof_age_seconds"] == -1
    assert waits["epoch"] == 0
    assert waits["outage_seconds"] < 0
    assert 'state="active"' in serves["state"]
    assert serves["transitions"] == 3
    assert serves["state_since_seconds"] > waits["state_since_seconds"]
    assert 0 <= serves["proof_age_seconds"] < WAIT_S
    assert serves["takeover_seconds"] >= 0
    # The last sign of life is up to half a second older than the end.
    assert 0 < serves["outage_seconds"] < time.time() - began_s + 1
    assert [served["epoch"], serves["epoch"]] == ([1, 2] if kind == "files" else [0, 0])


def primary_serves(folder, kind):
    """Write L, which who holds the lease alone does not."""
    database = Database(store_of(folder, kind))
    manager = NodeManager(database)
    manager.start()
    manager._set_state(NodeState.ACTIVE, as_holder=False)
    manager.stop()
    database.close()


@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_without_wait_for_activation_a_start_returns_before_the_lock_is_there(tmp_path, kind):
    broker = Broker(options_of(tmp_path, kind, shares_store=True, wait_for_activation=False))

    with held(tmp_path, kind):
        await asyncio.wait_for(broker.start(), WAIT_S)
        await until(broker, "waiting for the lock")
        was_active = broker.is_active
    await become_active(broker)
    await broker.stop()

    assert not was_active


@asynchronous
async def test_without_wait_for_activation_a_start_that_fails_later_is_told(tmp_path):
    broker = Broker(options_of(tmp_path, "files", wait_for_activation=False))
    with held(tmp_path, "files"):
        await broker.start()
        await until(broker, "waiting for the lock")
        (tmp_path / "journal/server.lock").write_bytes(b"X" * 19)
    failure = await asyncio.wait_for(broker.failed(), WAIT_S)
    await broker.stop()

    assert isinstance(failure, JournalIOError)
    assert "unknown state b'X'" in str(failure)


class Asked:
    """What a backup asks whether a primary wants its place; the answers one after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def is_awaiting_failback(self):
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynchronous
async def test_a_primary_gets_its_place_once_it_has_asked_for_the_delay(monkeypatch):
    monkeypatch.setattr(failback, "_PERIOD_S", 0.01)
    loop = asyncio.get_running_loop()
    # Once it asks no more, and once its question cannot be read.
    asked = Asked(True, True, False, True, JournalIOError(5, "cannot read the state"), True)
    began_s = loop.time()

    await asyncio.wait_for(failback.primary_asks(asked, 200), WAIT_S)

    assert loop.time() - began_s >= 0.2
    assert asked.asked > 6
    assert asked.answers == [True]


@asynchronous
async def test_without_a_delay_it_gets_it_at_once(monkeypatch):
    monkeypatch.setattr(failback, "_PERIOD_S", 0.01)
    asked = Asked(False, True)

    await asyncio.wait_for(failback.primary_asks(asked, BrokerOptions(name="b").failback_delay), 60)

    assert asked.asked == 2
