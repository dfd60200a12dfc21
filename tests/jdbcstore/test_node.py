"""Primaries and backups over one database: who is active, who waits, who takes over."""

import threading
import time
import uuid

import pytest

from jdbcstore.environment import Environment
from jdbcstore.errors import LeaseLost
from jdbcstore.lease import LeaseState
from jdbcstore.node import ABANDONED_S, NodeManager, NodeState
from journal.errors import JournalClosed, JournalError, JournalIOError, JournalLocked, WrongState
from tests.jdbcstore.leases import KINDS

pytestmark = pytest.mark.parametrize("database", KINDS, indirect=True)


@pytest.fixture
def node(brokers):
    """`node()`: one more broker's node manager, started, with short pauses."""
    made = []

    def new(**options):
        manager = NodeManager(brokers.database(**({"lock_renew_period_ms": 20} | options)))
        manager.start()
        made.append(manager)
        return manager

    yield new
    for manager in made:
        manager.stop()


def in_thread(work):
    """Run it in a thread; what it raised is in the list."""
    errors = []

    def run():
        try:
            work()
        except JournalError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def active_primary(node):
    primary = node()
    primary.start_primary()
    primary.activated()
    return primary


# --- id


def test_the_first_makes_the_id_and_all_others_have_it(node):
    first, second = node(), node()

    assert uuid.UUID(first.node_id).version == 1
    assert second.node_id == first.node_id == first.read_node_id()


def test_many_that_start_at_once_agree_on_one_id(brokers):
    managers = [NodeManager(brokers.database()) for _ in range(6)]
    threads = [threading.Thread(target=manager.start) for manager in managers]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({manager.node_id for manager in managers}) == 1
    assert managers[0].node_id
    for manager in managers:
        manager.stop()


def test_a_table_that_exists_without_rows_is_filled(brokers, node):
    lease = brokers.lease()
    with lease._table.database.connect() as connection:
        connection.execute(lease._table.table.delete())
        connection.commit()

    manager = node()

    assert manager.node_id
    assert manager.read_state() is NodeState.NOT_STARTED


def test_a_missing_row_is_a_first_start_and_cannot_be_written(brokers, node):
    manager = node()
    table = manager._table.table
    with brokers.database().connect() as connection:
        connection.execute(table.delete().where(table.c["ID"] == 0))
        connection.commit()

    assert manager.read_state() is NodeState.FIRST_TIME_START
    with pytest.raises(JournalIOError, match="no row 0"):
        manager.start_primary()


def test_an_unknown_state_is_an_error(brokers, node):
    manager = node()
    brokers.change_row(0, "STATE = 'X'")

    with pytest.raises(JournalIOError, match="unknown state 'X'"):
        manager.read_state()


def test_nothing_works_before_the_start(brokers):
    manager = NodeManager(brokers.database())

    for call in (manager.start_primary, manager.start_backup, manager.await_primary):
        with pytest.raises(WrongState):
            call()


# --- primary


def test_a_primary_asks_for_its_place_and_then_is_active(node):
    primary = node()

    primary.start_primary()
    asked = primary.is_awaiting_failback()
    primary.activated()

    assert asked
    assert primary.read_state() is NodeState.ACTIVE
    assert primary.is_primary_active()
    assert primary.primary_lease.is_held_by_me()


def test_a_backup_that_waits_is_seen(node):
    primary = active_primary(node)
    assert not primary.is_other_waiting()

    assert node().backup_lease.try_acquire()

    assert primary.is_other_waiting()


def test_a_second_primary_is_locked_out(node):
    active_primary(node)
    other = node(lock_acquisition_timeout_ms=0)

    with pytest.raises(JournalLocked):
        other.start_primary()

    assert other.is_awaiting_failback()


def test_a_paused_primary_leaves_its_place_and_says_so(node):
    primary = active_primary(node)

    primary.pause_primary()

    assert primary.read_state() is NodeState.PAUSED
    assert not primary.is_primary_active()


def test_a_crashed_primary_leaves_the_state(node):
    primary = active_primary(node)

    primary.crash_primary()

    assert primary.read_state() is NodeState.ACTIVE
    assert not primary.is_primary_active()


def test_who_lost_the_lease_cannot_speak_for_the_primary(brokers, node):
    primary = active_primary(node)
    brokers.change_row(1, "HOLDER_ID = 'another'")

    for call in (primary.pause_primary, primary.activated):
        with pytest.raises(LeaseLost):
            call()

    assert primary.read_state() is NodeState.ACTIVE


def test_a_loss_reaches_the_listener(brokers):
    lost = threading.Event()
    manager = NodeManager(
        brokers.database(lock_renew_period_ms=20), on_lost=lambda error: lost.set()
    )
    manager.start()
    manager.start_primary()

    brokers.change_row(1, "HOLDER_ID = 'another'")

    assert lost.wait(60)
    assert manager.primary_lease.state is LeaseState.LOST
    manager.stop()


def test_a_lease_that_may_have_expired_is_in_doubt_until_it_is_renewed_or_lost(brokers):
    now_s = [1000.0]
    manager = NodeManager(brokers.database(Environment(clock=lambda: now_s[0])))
    manager.start()
    manager.start_primary()
    doubts = [manager.check()]

    now_s[0] += brokers.options["lock_expiration_ms"] / 1000
    doubts.append(manager.check())
    manager.primary_lease.renew()
    doubts.append(manager.check())

    assert doubts == [False, True, False]
    brokers.change_row(1, "HOLDER_ID = 'another'")
    manager.primary_lease.renew()
    with pytest.raises(LeaseLost):
        manager.check()
    manager.stop()


def test_a_primary_comes_back_after_a_stop(node):
    first = active_primary(node)
    first.stop()
    second = node()

    second.start_primary()
    second.activated()

    assert second.node_id == first.node_id
    assert second.is_primary_active()


# --- backup


@pytest.mark.parametrize("end", ["crash_primary", "stop", "expire"])
def test_a_backup_takes_over_when_an_active_primary_is_gone(brokers, node, end):
    primary, backup = active_primary(node), node()
    backup.start_backup()
    waiter, errors = in_thread(backup.await_primary)
    waiter.join(0.2)
    assert waiter.is_alive()

    if end == "expire":
        primary.primary_lease._renewal.stop()  # It stands still.
        brokers.expire()
    else:
        getattr(primary, end)()
    waiter.join()
    backup.release_backup()

    assert errors == []
    assert backup.primary_lease.is_held_by_me()
    assert not backup.is_other_waiting()
    assert not backup.backup_lease.is_held()


def test_a_backup_stays_where_it_is_when_the_primary_paused(node):
    primary, backup = active_primary(node), node()
    backup.start_backup()
    waiter, errors = in_thread(backup.await_primary)

    primary.pause_primary()
    waiter.join(0.3)
    still_waits = waiter.is_alive()
    backup.interrupt()
    waiter.join()

    assert still_waits
    assert [type(error) for error in errors] == [JournalClosed]
    assert not backup.is_primary_active()


def test_only_one_backup_waits(node):
    node().start_backup()

    with pytest.raises(JournalLocked):
        # It waits as long as a renewal may take for the first one's, on SQLite.
        node(lock_acquisition_timeout_ms=0, lock_renew_period_ms=10_000).start_backup()


def test_a_backup_whose_lease_was_lost_waits_for_it_again_and_takes_over(node, brokers):
    """As after an outage that was longer than ride_out_ms: the backup is not told to stop."""
    primary, backup = active_primary(node), node()
    backup.start_backup()
    waiter, errors = in_thread(backup.await_primary)
    brokers.change_row(2, "HOLDER_ID = 'another'")
    lost = backup.backup_lease
    while lost.state is not LeaseState.LOST:
        waiter.join(0.01)
    brokers.change_row(2, "HOLDER_ID = NULL, HOLDER_EXPIRATION_TIME = NULL")
    while lost.state is not LeaseState.HELD:
        waiter.join(0.01)

    primary.crash_primary()
    waiter.join()

    assert errors == []
    assert backup.primary_lease.is_held_by_me()


def test_a_primary_gets_its_place_back_from_its_backup(node):
    """Fail-over, a returning primary asks, the backup sees it, stops, and the primary goes on."""
    primary, backup = active_primary(node), node()
    backup.start_backup()
    primary.crash_primary()
    backup.await_primary()
    backup.release_backup()
    backup.activated()
    returning = node()
    waiter, errors = in_thread(lambda: returning.start_primary(-1))
    while not backup.is_awaiting_failback():
        pass

    backup.crash_primary()
    waiter.join()
    returning.activated()

    assert errors == []
    assert returning.is_primary_active()
    assert returning.read_state() is NodeState.ACTIVE


def test_a_backup_gives_the_lease_back_when_the_state_changed_before_it_had_it(node):
    primary, backup = active_primary(node), node()
    primary.crash_primary()
    acquire = backup.primary_lease.try_acquire

    def acquire_too_late():
        primary._set_state(NodeState.PAUSED, as_holder=False)
        return acquire()

    backup.primary_lease.try_acquire = acquire_too_late

    assert not backup._activate(NodeState.ACTIVE)
    assert not backup.is_primary_active()


def test_a_primary_that_asked_and_never_took_its_place_has_failed(brokers, node):
    now_s = [1000.0]
    primary = active_primary(node)
    primary.crash_primary()
    primary._set_state(NodeState.FAILING_BACK, as_holder=False)
    backup = NodeManager(
        brokers.database(Environment(clock=lambda: now_s[0]), lock_renew_period_ms=20)
    )
    backup.start()
    backup.start_backup()
    waiter, errors = in_thread(backup.await_primary)
    waiter.join(0.3)
    now_s[0] += ABANDONED_S - 0.1
    waiter.join(0.3)
    waited = waiter.is_alive()

    now_s[0] += 0.2
    waiter.join()

    assert waited
    assert errors == []
    assert backup.read_state() is NodeState.ACTIVE
    assert backup.primary_lease.is_held_by_me()
    backup.stop()


def test_a_primary_that_had_the_lease_for_a_moment_is_waited_for_anew(brokers, node):
    now_s = [1000.0]
    primary = node()
    backup = NodeManager(brokers.database(Environment(clock=lambda: now_s[0])))
    backup.start()
    found = [backup._is_abandoned(NodeState.FAILING_BACK)]
    now_s[0] += ABANDONED_S
    assert primary.primary_lease.try_acquire()
    found.append(backup._is_abandoned(NodeState.FAILING_BACK))
    primary.crash_primary()
    found.append(backup._is_abandoned(NodeState.FAILING_BACK))

    now_s[0] += ABANDONED_S
    found.append(backup._is_abandoned(NodeState.FAILING_BACK))

    assert found == [False, False, False, True]
    backup.stop()


def test_the_last_sign_of_the_owner_before_is_its_last_renewal(brokers, node):
    first = active_primary(node)
    assert first.last_sign_ms is None
    first.primary_lease._renewal.stop()  # It stands still.
    # It was renewed for the last time as long before as a lease lasts.
    brokers.change_row(1, "HOLDER_EXPIRATION_TIME = NOW - 3000")
    second = node()

    second.start_primary()

    age_ms = time.time() * 1000 - second.last_sign_ms
    expected_ms = brokers.options["lock_expiration_ms"] + 3000
    assert expected_ms <= age_ms < expected_ms + 60_000
    # One that gave its lease back left none.
    second.stop()
    third = node()
    third.start_primary()
    assert third.last_sign_ms is None


def test_waiting_for_an_active_node_ends(node):
    primary, watcher = node(), node()
    waiter, errors = in_thread(watcher.await_active)
    waiter.join(0.1)
    assert waiter.is_alive()

    primary.start_primary()
    primary.activated()
    waiter.join()

    assert errors == []


def test_a_network_timeout_beyond_the_expiration_is_warned_of(brokers, caplog):
    NodeManager(brokers.database(network_timeout_ms=-1))

    assert "jdbc-network-timeout" in caplog.text


def test_a_lost_lease_ends_the_wait_for_a_database_that_is_away(node):
    """activated() asked again for ever, also when no answer could help any more."""
    primary = node(ride_out_ms=0, lock_expiration_ms=1000)
    primary.start_primary()

    def away():
        raise ConnectionRefusedError

    primary._table.database.connect = away
    primary._table.close()
    with pytest.raises(LeaseLost):
        primary.activated()
