"""Our node manager and Artemis's over one table: one lease for both, one pair of brokers."""

import time

import pytest

from jdbcstore.lease import LeaseState
from jdbcstore.node import NodeManager, NodeState
from journal.errors import JournalLocked
from tests.interop.artemis import ArtemisError
from tests.jdbcstore.leases import Brokers

DRIVERS = {"postgresql": "org.postgresql.Driver", "mariadb": "org.mariadb.jdbc.Driver"}
pytestmark = [
    pytest.mark.parametrize("database", DRIVERS, indirect=True),
    pytest.mark.slow,
]


class Theirs:
    """One node manager of Artemis."""

    def __init__(self, artemis, database, name, **settings):
        self._artemis = artemis
        self._settings = {
            "url": database.jdbc_url,
            "driver": DRIVERS[database.server.kind],
            "name": name,
            "expiration_ms": 600_000,
            "renew_period_ms": 1000,
        } | settings
        self.node_id = self("open")

    def __call__(self, action):
        return self._artemis.call("node", ".", action=action, **self._settings)

    def until_done(self):
        while not self("done"):
            time.sleep(0.02)


@pytest.fixture
def theirs(artemis, database):
    """`theirs(name)`: a node manager of Artemis, stopped after the test."""
    made = []

    def new(name="theirs", **settings):
        one = Theirs(artemis, database, name, **settings)
        made.append(one)
        return one

    yield new
    for one in made:
        one("stop")


@pytest.fixture
def ours(database):
    """`ours()`: a node manager of ours, stopped after the test."""
    brokers = Brokers(database.url)
    made = []

    def new(**options):
        manager = NodeManager(brokers.database(**({"lock_renew_period_ms": 1000} | options)))
        manager.start()
        made.append(manager)
        return manager

    new.brokers = brokers
    yield new
    for manager in made:
        manager.stop()
    brokers.close()


def test_their_table_and_id_are_ours(theirs, ours):
    their = theirs()

    assert ours().node_id == their.node_id


def test_our_table_and_id_are_theirs(theirs, ours):
    our = ours()

    assert theirs().node_id == our.node_id


def test_their_lease_keeps_us_out(theirs, ours):
    their, our = theirs(), ours()
    their("start-primary")
    their.until_done()
    their("activated")

    with pytest.raises(JournalLocked):
        our.primary_lease.acquire(0)

    assert our.is_primary_active()
    assert our.read_state() is NodeState.ACTIVE
    their("crash")
    assert our.primary_lease.try_acquire()


def test_our_lease_keeps_them_out(theirs, ours):
    our, their = ours(), theirs(acquisition_timeout_ms=200)
    our.start_primary()
    our.activated()

    their("start-primary")
    with pytest.raises(ArtemisError, match="timed out"):
        their.until_done()

    assert their("is-active")
    assert their("is-awaiting-failback")
    assert our.is_awaiting_failback()
    our.crash_primary()
    assert not their("is-active")


def test_an_expired_lease_of_ours_is_taken_by_them_and_ours_is_lost(theirs, ours):
    our, their = ours(lock_renew_period_ms=300_000), theirs()
    our.start_primary()
    ours.brokers.expire()

    their("start-primary")
    their.until_done()

    assert not our.primary_lease.renew()
    assert our.primary_lease.state is LeaseState.LOST


def test_an_expired_lease_of_theirs_is_taken_by_us_and_theirs_is_lost(theirs, ours):
    their, our = theirs(renew_period_ms=500_000), ours()
    their("start-primary")
    their.until_done()
    ours.brokers.expire()

    assert our.primary_lease.try_acquire()

    assert our.primary_lease.is_held_by_me()
    assert our.primary_lease.renew()


def test_our_backup_takes_over_from_their_primary_and_gives_back(theirs, ours):
    their, our = theirs(), ours()
    their("start-primary")
    their.until_done()
    their("activated")
    our.start_backup()

    their("crash")
    our.await_primary()
    our.release_backup()
    our.activated()
    served = our.is_primary_active() and our.read_state() is NodeState.ACTIVE
    their("start-primary")
    while not our.is_awaiting_failback():
        time.sleep(0.02)
    our.crash_primary()
    their.until_done()
    their("activated")

    assert served
    assert our.read_state() is NodeState.ACTIVE
    assert their("is-active")


def test_their_backup_takes_over_from_our_primary(theirs, ours):
    our, their = ours(), theirs()
    our.start_primary()
    our.activated()
    their("start-backup")
    their.until_done()
    their("await-primary")

    assert not their("done")
    our.crash_primary()
    their.until_done()

    assert our.is_primary_active()
    assert not our.primary_lease.try_acquire()


def test_their_backup_stays_when_we_pause(theirs, ours):
    our, their = ours(), theirs(renew_period_ms=50)
    our.start_primary()
    our.activated()
    their("start-backup")
    their.until_done()
    their("await-primary")

    our.pause_primary()
    time.sleep(0.5)

    assert not their("done")
    assert our.read_state() is NodeState.PAUSED
    their("interrupt")
    with pytest.raises(ArtemisError, match="nterrupt"):
        their.until_done()
