"""What the tests of crashes share."""

import os
from pathlib import Path

import pytest

from tests.crash.states import copy_out


@pytest.fixture
def memory(tmp_path):
    """A folder in memory where there is one: thousands of states a minute."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    folder = shared / f"quiver-{os.getpid()}-{tmp_path.name}"
    folder.mkdir()
    yield folder
    copy_out({}, folder)
    folder.rmdir()
