"""Two brokers with a queue `q`, for a bridge between them."""

import pytest

from tests.broker.bridges.jms.ends import an_end


@pytest.fixture
def source():
    with an_end() as end:
        end.create("q")
        yield end


@pytest.fixture
def target():
    with an_end() as end:
        end.create("q")
        yield end
