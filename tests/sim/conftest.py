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


@pytest.fixture(autouse=True, scope="module")
def _buried():
    """What simulations have left ends here, and not in a test of another folder."""
    yield
    # What was left before may have been frozen meanwhile, and would be freed within another test.
    gc.unfreeze()
    free_buried()
    gc.freeze()
