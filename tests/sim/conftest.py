"""What is there before the first simulation is never looked at by a garbage collection."""

import gc

import pytest

from tests.sim.loop import free_buried


@pytest.fixture(autouse=True, scope="session")
def _frozen():
    gc.freeze()
    yield
    free_buried()
    gc.unfreeze()
