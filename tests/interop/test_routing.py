"""The table of tests/broker/routing.json is what Artemis, and ours over the wire, answer today."""

import asyncio

import pytest

from tests.broker import routing_cells
from tests.interop.artemis import PeerUnavailableError
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.our_broker import OurBroker

CHANGE = ("<address-settings>", f"<address-settings>{routing_cells.CONFIGURATION}")
# Thousands of queues.
MEMORY_MB = 1024


@pytest.fixture(params=["Artemis", "ours"])
def broker(request, tmp_path):
    if request.param == "ours":
        made = OurBroker(tmp_path, CHANGE)
        yield made
        made.end()
        return
    try:
        made = ArtemisBroker(tmp_path, memory_mb=MEMORY_MB)
        made.change_configuration(CHANGE)
        made.start()
    except PeerUnavailableError as error:
        pytest.skip(f"Artemis cannot be run here: {error}")
    yield made
    made.kill()


def test_every_cell_is_as_the_table_says(broker):
    expected = routing_cells.read_table()
    names = expected.keys()
    # A few cells in thousands are counted before Artemis is done: they are asked again, later.
    for wait_s in (0, 1, 10):
        found = asyncio.run(
            routing_cells.ask(broker.uri, broker.USER, broker.PASSWORD, names, wait_s)
        )
        names = {name for name, one in found.items() if one != expected[name]}
        if not names or isinstance(broker, OurBroker):
            break

    assert {name: found[name] for name in names} == {}
