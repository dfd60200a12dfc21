"""Servers close connections that are idle: what a broker needs at its stop is kept alive."""

import pytest

from jdbcstore.node import NodeManager, NodeState
from jdbcstore.node_table import DatabaseAway
from tests.jdbcstore.test_session_kill import OTHERS, Administrator

pytestmark = pytest.mark.parametrize("database", sorted(OTHERS), indirect=True)


@pytest.fixture
def administrator(database):
    administrator = Administrator(database)
    yield administrator
    administrator.engine.dispose()


@pytest.fixture
def primary(brokers):
    manager = NodeManager(brokers.database())
    manager.start()
    manager.start_primary()
    manager.activated()
    yield manager
    manager.stop()


def test_a_primary_whose_connections_were_closed_pauses_all_the_same(
    primary, brokers, administrator
):
    administrator.end_all("session")

    primary.pause_primary()

    other = brokers.lease()
    assert administrator.ended
    assert primary.read_state() is NodeState.PAUSED
    assert not other.is_held()


def test_a_renewal_meets_a_closed_connection_and_renews_all_the_same(primary, administrator):
    administrator.end_all("session")

    assert primary.primary_lease.renew()


def test_the_state_is_written_over_the_connection_that_renewals_keep_alive(primary, administrator):
    """A server that allows this broker no further connection cannot refuse its stop."""
    connections = primary._table.database.engine.pool.checkedout()

    primary.pause_primary()

    assert connections == 1
    assert administrator.ended == 0


def test_a_closed_connection_in_place_of_the_answer_to_commit_is_told(primary, administrator):
    """Whether the transaction was committed is not known, so that nothing is done twice."""
    table = primary._table
    runs = []

    def end_ourselves(connection):
        runs.append(connection.exec_driver_sql("SELECT 1").scalar_one())
        administrator.end_all("session")

    with pytest.raises(DatabaseAway):
        table.ask(end_ourselves)

    assert runs == [1]
