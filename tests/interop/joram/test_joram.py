"""Joram's JMS 1.1 suite passes on our broker wherever it does on Artemis, over three clients."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.fetched import PeerUnavailableError
from tests.interop.joram.suite import PROVIDERS, class_path, results

# Of the suite's newest release.
COUNT = 196


def of(provider, broker):
    return results(provider, broker.port, ArtemisBroker.USER, ArtemisBroker.PASSWORD)


@pytest.mark.slow
@pytest.mark.parametrize(
    "provider",
    [
        # Core's own client has tests enough: it is run in the soak.
        pytest.param(one, id=one.name, marks=pytest.mark.soak if one.name == "core" else ())
        for one in PROVIDERS
    ],
)
def test_all_of_it_passes_here_and_no_more_on_artemis(provider, distributed_broker, our_broker):
    try:
        class_path(provider)
    except PeerUnavailableError as missing:
        pytest.skip(f"Joram's suite cannot be run here: {missing}")

    with ThreadPoolExecutor() as threads:
        ours, theirs = threads.map(
            lambda broker: of(provider, broker), (our_broker, distributed_broker)
        )

    assert len(ours) == len(theirs) == COUNT
    assert {test: why for test, why in ours.items() if why} == {}
