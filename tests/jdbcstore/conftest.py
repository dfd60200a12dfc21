"""What the tests of the SQL store share."""

import pytest
from sqlalchemy.exc import NoSuchModuleError

from tests.jdbcstore.leases import Brokers


@pytest.fixture
def brokers(database):
    """Brokers over one empty database; the test is parametrised with its kind (indirect)."""
    brokers = Brokers(database.url)
    yield brokers
    brokers.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    # Some drivers have wheels for some machines only; without one its SQL cannot be compiled.
    try:
        return (yield)
    except NoSuchModuleError as error:
        pytest.skip(f"the driver is not installed: {error}")
