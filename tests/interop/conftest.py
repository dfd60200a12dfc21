"""Marks every test here `interop`, and gives them one JVM of each version for the session."""

from pathlib import Path

import pytest

from tests.interop.artemis import (
    FORMER_VERSION,
    VERSION,
    Artemis,
    PeerUnavailableError,
)
from tests.interop.artemis_broker import NEWEST, ArtemisBroker
from tests.interop.artemis_broker import VERSION as DISTRIBUTED
from tests.interop.one_folder import Artemis as FolderArtemis
from tests.interop.our_broker import OurBroker

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session", params=[VERSION, FORMER_VERSION])
def artemis(request):
    try:
        process = Artemis(request.param)
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis {request.param} cannot be run here: {error}")
    yield process
    process.close()


def running(tmp_path_factory, version):
    try:
        broker = ArtemisBroker(tmp_path_factory.mktemp("artemis_broker"), version=version)
        broker.start()
    except PeerUnavailableError as error:
        pytest.skip(f"the broker of Artemis {version} cannot be run here: {error}")
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def distributed_broker(tmp_path_factory):
    """The one with a distribution, running; a test that stops it starts it again."""
    yield from running(tmp_path_factory, DISTRIBUTED)


@pytest.fixture(scope="session")
def newest_broker(tmp_path_factory):
    """The newest one, as above."""
    yield from running(tmp_path_factory, NEWEST)


@pytest.fixture
def folder_owner(tmp_path):
    """A broker of Artemis that does not run, for a folder that ours runs on in turn with it."""
    try:
        broker = FolderArtemis(tmp_path)
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis cannot be run here: {error}")
    yield broker
    broker.kill()


ARTEMIS_BROKERS = ["distributed_broker", "newest_broker"]


@pytest.fixture(scope="module", params=ARTEMIS_BROKERS)
def artemis_broker(request):
    """A running broker of Artemis; a test that stops it starts it again."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def our_broker(tmp_path_factory):
    """Ours, running; what it logs at its end shows what was a fault of it."""
    broker = OurBroker(tmp_path_factory.mktemp("our_broker"))
    yield broker
    assert broker.end() == 0, broker.log()[-2000:]
    assert "Traceback" not in broker.log()


@pytest.fixture(scope="module", params=[*ARTEMIS_BROKERS, "our_broker"])
def either_broker(request):
    """Theirs and ours: a client finds no difference."""
    return request.getfixturevalue(request.param)
