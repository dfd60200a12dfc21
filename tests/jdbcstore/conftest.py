"""What the tests of the SQL store share."""

import pytest

from tests.jdbcstore.leases import Brokers


@pytest.fixture
def brokers(database):
    """Brokers over one empty database; the test is parametrised with its kind (indirect)."""
    brokers = Brokers(database.url)
    yield brokers
    brokers.close()
