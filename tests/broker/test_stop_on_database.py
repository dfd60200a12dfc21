"""A broker on a database stops in good order whatever its server did to idle connections."""

import pytest

from jdbcstore.database import Database
from jdbcstore.locks import read_locks
from jdbcstore.options import DatabaseStoreOptions
from tests.broker.serve import BrokerProcess
from tests.jdbcstore.test_session_kill import OTHERS, Administrator


@pytest.mark.parametrize("database", sorted(OTHERS), indirect=True)
def test_broker_whose_idle_connections_were_closed_stops_in_good_order(database):
    administrator = Administrator(database)
    broker = BrokerProcess(database.url)
    administrator.end_all("session")
    administrator.engine.dispose()

    status = broker.stop()

    looking = Database(DatabaseStoreOptions(connection_url=database.url))
    locks = read_locks(looking)
    looking.close()
    assert administrator.ended
    assert status == 0
    assert locks.state == "P"
    assert not locks.leases[1].is_held
