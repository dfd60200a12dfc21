"""Marks every test here `interop`, and gives them one JVM for the session."""

from pathlib import Path

import pytest

from tests.interop.reference import Reference, ReferenceUnavailableError
from tests.interop.reference_broker import ReferenceBroker

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def reference():
    try:
        process = Reference()
    except ReferenceUnavailableError as error:
        pytest.skip(f"the reference cannot be run here: {error}")
    yield process
    process.close()


@pytest.fixture(scope="session")
def reference_broker(tmp_path_factory):
    """The reference's broker, running; a test that stops it starts it again."""
    try:
        broker = ReferenceBroker(tmp_path_factory.mktemp("reference_broker"))
        broker.start()
    except ReferenceUnavailableError as error:
        pytest.skip(f"the reference's broker cannot be run here: {error}")
    yield broker
    broker.kill()
