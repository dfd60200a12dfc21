"""Two colocated nodes, each a process: each runs the backup of the other one."""

import signal

import pytest

from tests.broker.colocated_nodes import exchange, free_ports, node_in

# Processes that start and load, six of them.
pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(tmp_path):
    """Two, not started."""
    (one, other), offset = free_ports(2)
    made = (
        node_in(tmp_path / "first", one, [other], offset),
        node_in(tmp_path / "second", other, [one], offset),
    )
    yield made
    for node in made:
        node.ensure_ended()


def test_a_backup_in_the_other_process_serves_until_the_primary_is_back(nodes):
    first, second = nodes
    first.start()
    first.says("no backup yet")
    second.start()
    first.says("runs the backup of this one")
    second.says("runs the backup of this one")
    second.says("colocated_backup_1 of node")
    first.says("AMQ221031: backup announced")
    exchange(first.port, send=["1", "2"])

    first.end(signal.SIGKILL)

    told = second.says("colocated_backup_1 serves in place of node")
    port = second.port + second.offset
    assert f"127.0.0.1:{port}" in told
    assert exchange(port, send=["3"], receive=1) == ["1"]

    first.start()
    second.says("backup: failing-back -> waiting")
    first.serves()
    assert exchange(first.port, receive=2) == ["2", "3"]
    # The same one, which goes on: none is begun.
    first.says("runs the backup of this one")
    assert second.log.read_text().count("AMQ221050") == 1

    # And once more.
    first.end(signal.SIGKILL)
    second.says("colocated_backup_1 serves in place of node", 2)
    assert second.end() == 0
    # With its host it has stopped in good order, so the other one does not take over.
    assert (first.data / "journal/server.lock").read_bytes()[:1] == b"P"


def test_a_backup_hands_everything_to_the_node_whose_process_it_runs_in(tmp_path):
    more = "<backup><scale-down/></backup>"
    (one, other), offset = free_ports(2)
    first = node_in(tmp_path / "first", one, [other], offset, more)
    second = node_in(tmp_path / "second", other, [one], offset, more)
    try:
        first.start()
        first.says("no backup yet")
        second.start()
        first.says("runs the backup of this one")
        second.says("runs the backup of this one")
        exchange(first.port, send=["1", "2"])

        first.end(signal.SIGKILL)

        second.says("AMQ221063: scale-down is complete: 2 messages")
        second.says("backup: stopping -> waiting")
        assert exchange(second.port, send=["3"], receive=3) == ["1", "2", "3"]
        assert (first.data / "journal/server.lock").read_bytes()[:1] == b"P"

        # Its primary comes back to an empty store, and has that backup.
        first.start()
        first.serves()
        first.says("runs the backup of this one")
        assert first.end() == 0
        assert second.end() == 0
    finally:
        first.ensure_ended()
        second.ensure_ended()
