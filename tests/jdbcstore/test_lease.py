"""Leases on real databases: who has one, until when, and what a fence lets through."""

import logging
import threading

import pytest
import sqlalchemy

from jdbcstore.errors import LeaseLost
from jdbcstore.lease import Lease, LeaseState
from jdbcstore.node_table import DatabaseAway
from jdbcstore.schema import BACKUP_LOCK_ROW, PRIMARY_LOCK_ROW
from journal.errors import JournalClosed, JournalIOError, JournalLocked, OptionError, WrongState
from tests.jdbcstore.leases import KINDS

pytestmark = pytest.mark.parametrize("database", KINDS, indirect=True)


class Clock:
    """Seconds that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def write(lease, database, row="1"):
    """One transaction of the holder: the fence, then a write."""
    with database.connect() as connection:
        lease.fence(connection)
        connection.exec_driver_sql(f"INSERT INTO written VALUES ({row})")
        connection.commit()


def make_written(database):
    with database.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE written (a INTEGER)")
        connection.commit()


def written(database):
    with database.connect() as connection:
        return [row for (row,) in connection.exec_driver_sql("SELECT a FROM written ORDER BY a")]


# --- taking it


def test_a_free_lease_is_acquired(brokers):
    lease = brokers.lease()

    assert lease.try_acquire()

    assert lease.state is LeaseState.HELD
    assert lease.is_held_by_me()
    assert 0 < lease.look().remaining_ms <= 600_000


def test_what_another_holds_is_not_acquired(brokers):
    holder, other = brokers.lease(), brokers.lease()
    holder.try_acquire()

    assert not other.try_acquire()

    assert other.is_held()
    assert not other.is_held_by_me()
    assert holder.is_held_by_me()


def test_the_same_holder_does_not_acquire_twice(brokers):
    lease = brokers.lease()
    lease.try_acquire()

    assert not lease.try_acquire()
    with pytest.raises(WrongState):
        lease.acquire()

    assert lease.is_held_by_me()


def test_a_released_lease_is_free_for_others(brokers):
    first, second = brokers.lease(), brokers.lease()
    first.try_acquire()

    assert first.release()

    assert first.state is LeaseState.FREE
    assert not first.is_held()
    assert second.try_acquire()


def test_a_release_is_retried_while_another_session_locks_the_row(brokers):
    """A backup that polls does so; else it would wait until the lease expires."""
    lease = brokers.lease(lock_renew_period_ms=50)
    lease.try_acquire()
    refused, answers, ask = threading.Event(), [], lease._table.ask

    def asked(work, **more):
        try:
            return ask(work, **more)
        except DatabaseAway:
            if work == lease._release_row:
                refused.set()
            raise

    lease._table.ask = asked
    giver = threading.Thread(target=lambda: answers.append(lease.release()))
    database = brokers.database()
    table = database.dialect.quoted(lease._table.table)
    with database.connect() as connection:
        connection.exec_driver_sql(f"UPDATE {table} SET HOLDER_ID = HOLDER_ID WHERE ID = 1")
        giver.start()
        is_short = database.dialect.lock_wait_sql(50) is not None
        was_refused = refused.wait(60 if is_short else 1)
        connection.rollback()
    giver.join()

    assert was_refused == is_short
    assert answers == [True]
    assert not lease.is_held()


@pytest.mark.parametrize("who", ["same", "other"])
def test_an_expired_lease_is_acquired(brokers, who):
    holder = brokers.lease()
    holder.try_acquire()
    brokers.expire()
    assert not holder.is_held()
    assert not holder.is_held_by_me()
    next_holder = brokers.lease() if who == "other" else Lease(brokers.database(), holder_id="me")

    assert next_holder.try_acquire()

    assert next_holder.is_held_by_me()
    assert not holder.is_held_by_me()
    next_holder.release()


def test_the_last_millisecond_still_counts(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    view = lease.look()
    at_the_end = type(view)(view.holder, 5000, 5000)
    after = type(view)(view.holder, 5000, 5001)

    assert at_the_end.is_held
    assert not after.is_held
    assert after.remaining_ms == 0


def test_acquire_without_waiting_names_the_holder(brokers):
    holder, other = brokers.lease(), brokers.lease()
    holder.try_acquire()

    with pytest.raises(JournalLocked, match=holder.holder_id):
        other.acquire(0)


def test_acquire_gives_up_after_its_time(brokers):
    brokers.lease().try_acquire()

    with pytest.raises(JournalLocked):
        brokers.lease().acquire(50)


def test_acquire_waits_until_the_lease_is_free(brokers):
    holder = brokers.lease()
    holder.try_acquire()
    other = brokers.lease(lock_renew_period_ms=20)
    waiter = threading.Thread(target=other.acquire, args=(-1,))

    waiter.start()
    holder.release()
    waiter.join()

    assert other.is_held_by_me()


def test_a_wait_is_interrupted(brokers):
    brokers.lease().try_acquire()
    other = brokers.lease()
    caught = []

    def wait():
        try:
            other.acquire(-1)
        except JournalClosed as error:
            caught.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    other.interrupt()
    waiter.join()

    assert len(caught) == 1


def test_two_rows_are_two_leases(brokers):
    primary, backup = brokers.lease(PRIMARY_LOCK_ROW), brokers.lease(BACKUP_LOCK_ROW)

    assert primary.try_acquire()
    assert backup.try_acquire()


def test_of_many_contenders_one_at_a_time_is_inside(brokers):
    inside, most, turns = [], [], []

    def contend():
        # Where a server answers late, a release may fail: then the lease ends by itself.
        lease = brokers.lease(lock_renew_period_ms=10, lock_expiration_ms=20_000)
        for _ in range(5):
            lease.acquire(-1)
            inside.append(lease)
            most.append(len(inside))
            turns.append(lease)
            inside.remove(lease)
            lease.release()

    threads = [threading.Thread(target=contend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(turns) == 20
    assert max(most) == 1


def test_a_holder_id_is_never_used_for_two_acquisitions(brokers):
    lease = brokers.lease()
    ids = set()

    for _ in range(3):
        lease.try_acquire()
        ids.add(lease.holder_id)
        lease.release()

    assert len(ids) == 3


def test_a_holder_id_that_does_not_fit_is_refused(brokers):
    with pytest.raises(OptionError, match="128"):
        Lease(brokers.database(), holder_id="x" * 129)


def test_a_table_without_the_row_says_so(brokers):
    lease = brokers.lease(row_id=77)

    assert not lease.try_acquire()
    with pytest.raises(JournalIOError, match="no row 77"):
        lease.look()


# --- keeping it


def test_a_renewal_moves_the_end(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    brokers.change_row(1, "HOLDER_EXPIRATION_TIME = NOW + 5000")

    assert lease.renew()

    assert lease.look().remaining_ms > 100_000


def test_an_expired_lease_that_was_not_taken_is_renewed(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    brokers.expire()

    assert lease.renew()

    assert lease.is_held_by_me()


def test_a_lease_that_another_took_is_lost_for_good(brokers):
    losses = []
    holder, other = brokers.lease(on_lost=losses.append), brokers.lease()
    holder.try_acquire()
    brokers.expire()
    other.try_acquire()

    assert not holder.renew()
    assert not holder.renew()

    assert holder.state is LeaseState.LOST
    assert len(losses) == 1
    assert other.is_held_by_me()


def test_a_lease_that_another_took_and_gave_back_is_lost(brokers):
    holder, other = brokers.lease(), brokers.lease()
    holder.try_acquire()
    brokers.expire()
    other.try_acquire()
    other.release()

    assert not holder.renew()


def test_a_released_lease_is_not_renewed(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    lease.release()

    assert not lease.renew()

    assert not lease.is_held()


def test_a_lost_lease_can_be_taken_anew(brokers):
    holder, other = brokers.lease(), brokers.lease()
    holder.try_acquire()
    brokers.expire()
    other.try_acquire()
    holder.renew()
    other.release()

    assert holder.try_acquire()

    assert holder.is_held_by_me()


def test_a_database_clock_set_back_does_not_cost_the_lease(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    brokers.change_row(1, "HOLDER_EXPIRATION_TIME = NOW + 3600000 * 24")

    assert lease.renew()

    assert lease.look().remaining_ms <= 600_000


def test_the_thread_renews_and_notices_the_loss(brokers):
    lost = threading.Event()
    holder = brokers.lease(lock_renew_period_ms=20, on_lost=lambda error: lost.set())
    holder.try_acquire()
    while holder.renewals < 3:
        pass

    other = brokers.lease()
    brokers.change_row(1, "HOLDER_ID = 'somebody else'")

    assert lost.wait(60)
    assert holder.state is LeaseState.LOST
    assert not other.is_held_by_me()


def test_a_listener_that_fails_is_heard_of(brokers, caplog):
    def fail(error):
        raise RuntimeError("listener")

    holder = brokers.lease(on_lost=fail)
    holder.try_acquire()
    brokers.change_row(1, "HOLDER_ID = 'somebody else'")

    holder.renew()

    assert "listener" in caplog.text


def test_what_is_left_is_never_more_than_the_database_says(brokers):
    clock = Clock()
    lease = brokers.lease(clock=clock)

    lease.try_acquire()
    clock.now += 599.9
    almost = lease.remaining_ms
    clock.now += 0.2

    assert almost == pytest.approx(100, abs=1)
    assert lease.remaining_ms == 0
    assert not lease.is_certain
    assert lease.state is LeaseState.HELD


def test_the_clocks_of_this_machine_decide_nothing(brokers):
    """A machine whose clocks are hours off gets a lease, keeps it, and loses it as any other."""
    clock = Clock()
    off = brokers.lease(clock=clock, wall_clock=lambda: 0.0)
    other = brokers.lease(wall_clock=lambda: 4e9)

    assert off.try_acquire()
    clock.now -= 3600 * 10
    assert not other.try_acquire()
    assert off.renew()
    assert off.is_held_by_me()
    brokers.expire()
    assert other.try_acquire()
    assert not off.renew()


def test_a_difference_of_the_clocks_is_a_number_and_one_warning(brokers, caplog):
    caplog.set_level(logging.INFO)
    wall = Clock()
    wall.now = 0.0
    lease = brokers.lease(wall_clock=wall)
    lease.try_acquire()

    lease.renew()
    skew_ms = lease.skew_ms
    now_s = lease.look().now_ms / 1000
    wall.now = now_s
    lease._allowed_time_diff_ms = 60_000
    lease.renew()

    assert skew_ms == pytest.approx(now_s * 1000, abs=60_000)
    assert abs(lease.skew_ms) < 60_000
    warnings = [r for r in caplog.records if "clock" in r.getMessage()]
    assert [r.levelname for r in warnings] == ["WARNING", "INFO"]


# --- proving it


def test_a_holder_writes(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    database = brokers.database()
    make_written(database)

    write(lease, database)

    assert written(database) == [1]
    assert lease.fenced_writes == 0


def test_a_write_after_the_end_is_refused_and_counted(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    database = brokers.database()
    make_written(database)
    brokers.expire()

    with pytest.raises(LeaseLost):
        write(lease, database)

    assert written(database) == []
    assert lease.fenced_writes == 1


def test_after_an_expiration_without_a_taker_a_renewal_lets_writes_through_again(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    database = brokers.database()
    make_written(database)
    brokers.expire()
    with pytest.raises(LeaseLost):
        write(lease, database)

    assert lease.renew()
    write(lease, database)

    assert written(database) == [1]


def test_a_write_after_a_take_over_is_refused(brokers):
    old, new = brokers.lease(), brokers.lease()
    old.try_acquire()
    database = brokers.database()
    make_written(database)
    brokers.expire()
    new.try_acquire()

    with pytest.raises(LeaseLost):
        write(old, database)
    write(new, database, "2")

    assert written(database) == [2]


def test_no_fence_without_a_lease(brokers):
    lease = brokers.lease()

    with pytest.raises(JournalClosed):
        lease.fence_statement()


def test_a_known_loss_needs_no_question(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    brokers.change_row(1, "HOLDER_ID = 'somebody else'")
    lease.renew()

    with pytest.raises(LeaseLost):
        lease.fence_statement()


def take_fence(brokers, lease, connection):
    """Hold the fence of a lease that ends soon; in how many milliseconds.

    The machine may stand still between the two statements: then the lease is to last longer.
    """
    remaining_ms = 2000
    while True:
        brokers.change_row(1, f"HOLDER_EXPIRATION_TIME = NOW + {remaining_ms}")
        try:
            lease.fence(connection)
        except LeaseLost:
            connection.rollback()
            remaining_ms *= 2
        else:
            return remaining_ms


def test_a_take_over_waits_for_a_fenced_transaction(brokers):
    """The check and the commit are one: no broker gets in between, even after the expiration."""
    old, new = brokers.lease(), brokers.lease(lock_renew_period_ms=299_999)
    old.try_acquire()
    database = brokers.database()
    make_written(database)
    order = []

    with database.connect() as connection:
        remaining_ms = take_fence(brokers, old, connection)
        taker = threading.Thread(target=lambda: (new.acquire(-1), order.append("taken")))
        new._renew_period_ms = 50
        taker.start()
        taker.join(remaining_ms / 1000 + 1)
        order.append("committing")
        connection.exec_driver_sql("INSERT INTO written VALUES (1)")
        connection.commit()
    taker.join()

    assert order == ["committing", "taken"]
    assert written(database) == [1]


def test_a_holder_that_stands_still_while_it_renews_is_not_waited_for(brokers):
    options = {"lock_renew_period_ms": 1000, "lock_expiration_ms": 1500}
    old, new = brokers.lease(**options), brokers.lease(**options)
    if old._table.database.dialect.idle_transaction_sql(1) is None:
        pytest.skip("no session of this database ends by itself: a take-over has to wait")
    old.try_acquire()
    old._renewal.stop()
    stopped = old._table._work(old._renew_row, False)

    new.acquire(120_000)

    assert stopped
    assert new.is_held_by_me()
    with pytest.raises(sqlalchemy.exc.DBAPIError):
        old._table._commit()


def test_a_holder_that_stands_still_in_a_fenced_transaction_is_not_waited_for(brokers):
    """One of a driver's own, as those that write large messages and pages."""
    options = {"lock_renew_period_ms": 1000, "lock_expiration_ms": 1500}
    old, new = brokers.lease(**options), brokers.lease(**options)
    database = brokers.database(**options)
    if database.dialect.idle_transaction_sql(1) is None:
        pytest.skip("no session of this database ends by itself: a take-over has to wait")
    old.try_acquire()
    for _ in range(2):  # The second one has it from the pool, as it is.
        with database.raw(is_fenced=True) as raw:
            assert holds(old.fence_statement(may_raise=False), raw)
            raw.rollback()
    old._renewal.stop()
    with database.raw(is_fenced=True) as raw:
        statement = old.fence_statement(may_raise=False)
        cursor = raw.cursor()
        cursor.execute(statement.sql, statement.parameters)

        new.acquire(120_000)

    assert new.is_held_by_me()


@pytest.mark.parametrize("stands_still_in", ["a transaction", "a COPY"])
def test_a_holder_that_stands_still_in_a_transaction_is_not_waited_for(brokers, stands_still_in):
    """Where the server can, it ends the session; elsewhere a take-over has to wait."""
    old, new = brokers.lease(), brokers.lease(lock_renew_period_ms=1000, lock_expiration_ms=1500)
    old.try_acquire()
    database = brokers.database(lock_renew_period_ms=1000, lock_expiration_ms=1500)
    can_end = {"postgresql": {"a transaction", "a COPY"}, "mariadb": {"a transaction"}}
    kind = database.engine.dialect.name
    if stands_still_in not in can_end.get(kind, ()):
        assert kind in can_end or database.dialect.idle_transaction_sql(1) is None
        return
    make_written(database)

    with database.connect() as connection:
        database.bound_idle_transactions(connection)
        take_fence(brokers, old, connection)
        if stands_still_in == "a COPY":
            connection.connection.driver_connection.pgconn.send_query(b"COPY written FROM STDIN")
        new.acquire(120_000)
        if stands_still_in == "a transaction":
            with pytest.raises(sqlalchemy.exc.DBAPIError):
                connection.exec_driver_sql("INSERT INTO written VALUES (1)")
        connection.invalidate()

    assert new.is_held_by_me()
    assert written(database) == []


def test_the_statement_goes_straight_to_the_driver(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    database = brokers.database()

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        assert holds(lease.fence_statement(), raw)
        assert holds(lease.fence_statement(may_raise=False), raw)
        raw.rollback()
    brokers.expire()
    with database.raw() as raw:
        database.dialect.begin_write(raw)
        assert not holds(lease.fence_statement(may_raise=False), raw)
        raw.rollback()


def test_where_the_statement_raises_the_transaction_is_refused_by_the_database(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    brokers.expire()
    fence = lease.fence_statement()
    if not fence.raises:
        assert brokers.database().dialect.name != "postgresql"
        return

    with brokers.database().raw() as raw, pytest.raises(Exception, match="zero") as caught:
        holds(fence, raw)

    assert caught.value.sqlstate == "22012"


def holds(fence, raw):
    cursor = raw.cursor()
    cursor.execute(fence.sql, fence.parameters)
    held = fence.holds(cursor)
    cursor.close()
    return held


def test_a_fence_that_renews_proves_as_much_as_one_that_does_not(brokers):
    lease = brokers.lease()
    lease.try_acquire()
    database = brokers.database()
    brokers.change_row(1, "HOLDER_EXPIRATION_TIME = NOW + 5000")
    renewing = lease._row.renewing_fence(lease.holder_id, 600_000)

    with database.raw() as raw:
        database.dialect.begin_write(raw)
        assert holds(renewing, raw)
        raw.commit()
    extended = lease.look().remaining_ms
    brokers.expire()
    with database.raw() as raw:
        database.dialect.begin_write(raw)
        assert not holds(renewing, raw)
        raw.commit()

    assert extended > 100_000
    assert not lease.is_held()


# --- names


@pytest.mark.parametrize("name", ["x; drop table y", "a'b", 'a"b', "x" * 200, "", "a b", "ä"])
def test_a_hostile_table_name_never_reaches_the_database(brokers, name):
    with pytest.raises(OptionError):
        brokers.database(node_manager_store_table_name=name)


def test_a_hostile_holder_is_a_parameter(brokers):
    lease = Lease(brokers.database(), holder_id="'; DROP TABLE written; --")
    lease.create_table()

    assert lease.try_acquire()
    assert lease.is_held_by_me()
    assert lease.release()


def test_many_starters_make_one_table(brokers):
    leases = [Lease(brokers.database()) for _ in range(6)]
    errors = []

    def create(lease):
        try:
            lease.create_table()
        except (JournalIOError, sqlalchemy.exc.SQLAlchemyError) as error:
            errors.append(error)

    threads = [threading.Thread(target=create, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert sum(lease.try_acquire() for lease in leases) == 1
    for lease in leases:
        lease.release()
