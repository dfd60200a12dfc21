"""What is there before the first simulation is never looked at by a garbage collection."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="session")
def _frozen():
    gc.freeze()
    yield
    gc.unfreeze()
