"""Marks every test here `interop`, and gives them one JVM for the session."""

from pathlib import Path

import pytest

from tests.interop.our_broker import OurBroker
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


@pytest.fixture(scope="session")
def our_broker(tmp_path_factory):
    """Ours, running; what it logs at its end shows what was a fault of it."""
    broker = OurBroker(tmp_path_factory.mktemp("our_broker"))
    yield broker
    assert broker.end() == 0, broker.log()[-2000:]
    assert "Traceback" not in broker.log()


@pytest.fixture(params=["reference", "ours"])
def either_broker(request):
    """One and the other: a client finds no difference."""
    return request.getfixturevalue(f"{request.param.replace('ours', 'our')}_broker")
