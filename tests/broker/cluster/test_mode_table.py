"""Each mode of message-load-balancing, on two nodes of ours: every row of the table."""

import pytest

from tests.broker.bridges.two_brokers import port_of
from tests.broker.cluster.mesh import Mesh, queue
from tests.broker.cluster.mode_table import MODES, Node, cells, differences, run
from tests.interop.asynchronous import asynchronous

WAIT_S = 20


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.slow
@asynchronous
async def test_messages_are_where_the_table_says(mode):
    configured = tuple(queue(one.queue) for one in cells(mode) if one.definition == "configured")
    mesh = Mesh(2, queues=configured, mode=mode)
    async with mesh.serving() as nodes:
        here, there = (Node(f"tcp://127.0.0.1:{port_of(one)}") for one in nodes)
        async with here.connected(), there.connected():
            seen = await run(mode, here, there, WAIT_S)

    assert differences(seen) == {}
    assert len(seen) == 30
