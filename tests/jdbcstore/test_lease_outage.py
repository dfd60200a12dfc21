"""A lease through an outage of its database: in doubt, held again, or lost when the time is up."""

import threading
import time

import pytest

from jdbcstore.errors import LeaseLost
from jdbcstore.lease import LeaseState

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True),
]
SHORT = {"lock_renew_period_ms": 200, "lock_expiration_ms": 1000, "network_timeout_ms": 1000}


def wait_until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("end", ["stop", "kill9", "pause"])
def test_a_lease_that_was_not_taken_is_held_again(brokers, database, end):
    lease = brokers.lease(ride_out_ms=600_000, **SHORT)
    lease.acquire(120_000)
    token = lease.holder_id

    getattr(database.server, end)()
    wait_until(lambda: not lease.is_certain)
    in_doubt = lease.state
    database.server.ensure_running()
    wait_until(lambda: lease.is_certain)

    assert in_doubt is LeaseState.HELD
    assert lease.holder_id == token
    wait_until(lease.is_held_by_me)


@pytest.mark.own_server
def test_a_lease_is_lost_when_the_outage_lasts_too_long(brokers, database):
    lost = threading.Event()
    lease = brokers.lease(ride_out_ms=0, on_lost=lambda error: lost.set(), **SHORT)
    lease.acquire(120_000)

    database.server.kill9()

    assert lost.wait(120)
    assert lease.state is LeaseState.LOST
    with pytest.raises(LeaseLost, match="could not be renewed"):
        lease.fence_statement()
    assert not lease.release()


@pytest.mark.own_server
def test_who_waits_for_a_lease_waits_through_an_outage(brokers, database):
    holder = brokers.lease()
    holder.try_acquire()
    waiting = brokers.lease(ride_out_ms=600_000, **SHORT)
    waiter = threading.Thread(target=waiting.acquire, args=(-1,))
    waiter.start()

    database.server.kill9()
    waiter.join(0.5)
    database.server.start()
    brokers.expire()
    waiter.join(120)

    wait_until(waiting.is_held_by_me)
    # Its connection was killed: it asks over a fresh one.
    assert not holder.renew()
