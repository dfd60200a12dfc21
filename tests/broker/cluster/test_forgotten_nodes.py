"""`broker cluster sf`: nodes that are gone for good, connections that have another name now."""

import asyncio
import json
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from broker.cli.cluster import _find
from broker.cli.main import broker as command_line
from broker.client import AckMode
from broker.cluster.peer_rows import left_names, nodes_with_queues
from broker.routing.remote_bindings import STORE_AND_FORWARD
from tests.broker.bridges.two_brokers import port_of, send, session_of, take
from tests.broker.cluster.mesh import (
    Mesh,
    demand,
    forwarding,
    is_told,
    peers_of,
    queue,
    settings,
    until,
    waiting,
)
from tests.interop.asynchronous import asynchronous

Q = (queue("q"),)


async def sf(node, *words):
    """Run `broker cluster`: its exit status and what it prints."""
    words = ("cluster", *words, "--url", f"tcp://127.0.0.1:{port_of(node)}")
    found = await asyncio.to_thread(CliRunner().invoke, command_line, list(words))
    # What a broker refuses is told by the program around the commands.
    is_told = found.exception is None or isinstance(found.exception, SystemExit)
    return found.exit_code, found.output if is_told else str(found.exception)


async def rows_of(node):
    _, text = await sf(node, "status", "--json")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def queues_of(node):
    return node.parts.postoffice.addresses.queues


def forwarding_queues(node):
    return [name for name in queues_of(node) if name.startswith(STORE_AND_FORWARD)]


def strict(count, folder, **more):
    """What is sent to node 0 goes to each node in turn, and stays there."""
    return Mesh(
        count,
        folder=folder,
        queues=Q,
        mode="STRICT",
        address_settings=settings(redistribution_delay_ms=-1),
        **more,
    )


@asynchronous
async def test_the_queue_of_a_node_that_is_gone_is_forgotten_for_good(tmp_path):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes:
        gone = nodes[1].node_id
        name = f"{STORE_AND_FORWARD}mesh.{gone}"
        status, text = await sf(nodes[0], "sf", "forget", gone)
        assert status == 1
        assert f"node {gone} is connected: stop it for good" in text

        await cluster.stop(1)
        await until(lambda: not peers_of(nodes[0])[gone].is_connected)
        assert [row["nodeID"] for row in await rows_of(nodes[0])] == [gone]

        # So much of its id as tells it from others.
        status, text = await sf(nodes[0], "sf", "forget", gone[:-1])

        assert (status, text) == (0, f"forgotten: node {gone} of cluster-connection mesh\n")
        assert await rows_of(nodes[0]) == []
        assert name not in queues_of(nodes[0])
        assert name not in nodes[0].parts.postoffice.addresses.by_name
        assert (await sf(nodes[0], "status"))[0] == 0
        status, text = await sf(nodes[0], "sf", "forget", gone)
        assert (status, text) == (1, f"Error: no node {gone}: see `broker cluster status`\n")

        await cluster.stop(0)
        node = await cluster.start(0)
        assert forwarding_queues(node) == []
        # It was not gone for good: it is met anew.
        await cluster.start(1)
        await cluster.joined()
        await send(node, "q", *map(str, range(10)))
        await until(lambda: waiting(cluster.nodes[1], "q") == 5)
        assert forwarding_queues(node) == [name]


@asynchronous
async def test_a_node_for_which_messages_wait_is_not_forgotten(tmp_path):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes:
        gone = nodes[1].node_id
        nodes[0].cluster.connections["mesh"].queue_of(gone).pause()
        await send(nodes[0], "q", *map(str, range(20)))
        await cluster.stop(1)
        await until(lambda: not peers_of(nodes[0])[gone].is_connected)

        status, text = await sf(nodes[0], "sf", "forget", gone)

        assert status == 1
        assert f"10 messages for node {gone}: first `broker cluster sf return {gone}`" in text
        assert forwarding(nodes[0]) == 10
        # It is tried on.
        assert peers_of(nodes[0])[gone].is_started

        assert (await sf(nodes[0], "sf", "return", gone)) == (0, "returned 10 messages\n")
        assert (await sf(nodes[0], "sf", "forget", gone))[0] == 0
        assert waiting(nodes[0], "q") == 20


@asynchronous
async def test_a_node_that_a_transaction_sends_to_is_not_forgotten(tmp_path):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes, session_of(nodes[0], AckMode.TRANSACTED) as session:
        gone = nodes[1].node_id
        producer = session.producer("q")
        for content in ("a", "b"):
            await producer.send(content, durable=True)
        await cluster.stop(1)
        await until(lambda: not peers_of(nodes[0])[gone].is_connected)

        status, text = await sf(nodes[0], "sf", "forget", gone)

        assert status == 1
        assert "commit it or roll it back" in text
        await session.commit()
        assert forwarding(nodes[0]) == 1


class Renamed(Mesh):
    """Its cluster connection gets another name."""

    name = "mesh.old"

    def options(self, number):
        self._how = {**self._how, "names": (self.name,)}
        return super().options(number)


@pytest.mark.parametrize("command", ["return", "move"])
@asynchronous
async def test_what_waits_under_an_older_name_of_the_connection_is_seen_and_moved(
    tmp_path, command, caplog
):
    cluster = Renamed(
        2,
        links={0: [1], 1: [0]},
        folder=tmp_path,
        queues=Q,
        mode="STRICT",
        address_settings=settings(redistribution_delay_ms=-1),
    )
    async with cluster.serving() as nodes:
        await until(lambda: all(is_told(one, 1, "mesh.old") for one in nodes))
        there = nodes[1].node_id
        nodes[0].cluster.connections["mesh.old"].queue_of(there).pause()
        await send(nodes[0], "q", *map(str, range(20)))
        assert forwarding(nodes[0]) == 10
        for number in range(2):
            await cluster.stop(number)
        cluster.name = "mesh"
        for number in range(2):
            await cluster.start(number)
        await cluster.joined()
        here = cluster.nodes[0]

        assert "queues of cluster-connection mesh.old are here" in caplog.text
        old, new = sorted(await rows_of(here), key=lambda row: row["connected"])
        assert (old["connection"], old["nodeID"], old["waiting"]) == ("mesh.old", there, 10)
        assert old["reason"] == "no cluster-connection mesh.old is in use"
        assert (new["connection"], new["nodeID"], new["connected"]) == ("mesh", there, True)
        status, text = await sf(here, "sf", "forget", there)
        assert status == 1
        assert f"10 messages for node {there}" in text

        others = (there,) if command == "move" else ()
        status, text = await sf(here, "sf", command, there, *others, "--connection", "mesh.old")
        assert (status, text.split()[1]) == (0, "10")
        await until(lambda: forwarding(here) == 0)
        if command == "move":
            assert waiting(cluster.nodes[1], "q") == 10
        assert waiting(here, "q") + waiting(cluster.nodes[1], "q") == 20

        # The node is there, by the connection in use: that is not touched.
        status, text = await sf(here, "sf", "forget", there)
        assert (status, text) == (0, f"forgotten: node {there} of cluster-connection mesh.old\n")
        assert forwarding_queues(here) == [f"{STORE_AND_FORWARD}mesh.{there}"]
        assert [row["connection"] for row in await rows_of(here)] == ["mesh"]


@asynchronous
async def test_a_broker_that_has_left_its_cluster_shows_what_waited_for_the_others(tmp_path):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes:
        gone = nodes[1].node_id
        nodes[0].cluster.connections["mesh"].queue_of(gone).pause()
        await send(nodes[0], "q", *map(str, range(20)))
        for number in range(2):
            await cluster.stop(number)
        cluster._how["names"] = ()
        node = await cluster.start(0)

        (row,) = await rows_of(node)
        assert (row["connection"], row["nodeID"], row["waiting"]) == ("mesh", gone, 10)
        assert (await sf(node, "sf", "drop", gone)) == (0, "deleted 10 messages\n")
        assert (await sf(node, "sf", "forget", gone))[0] == 0
        assert forwarding_queues(node) == []
        assert await take(node, "q", 10)
        assert demand(node, "q") == 0


def session_with(*node_ids):
    rows = json.dumps([{"nodeID": one, "waiting": 0} for one in node_ids])
    answers = {"clusterConnectionNames": ["c"], "leftClusterConnectionNames": []}
    return SimpleNamespace(attribute=lambda resource, name: answers.get(name, rows))


def test_a_node_is_named_by_its_id_or_so_much_of_it_as_no_other_has():
    session = session_with("abc-1", "abc-10", "xyz-2")

    assert _find(session, "xyz").node_id == "xyz-2"
    # One id may be the beginning of another.
    assert _find(session, "abc-1").node_id == "abc-1"
    for text, said in (
        ("abc", "node abc may be abc-1, abc-10: write one of these ids"),
        ("bc-1", "no node bc-1: see `broker cluster status`"),
        ("", "no node : see `broker cluster status`"),
    ):
        with pytest.raises(click.ClickException) as raised:
            _find(session, text)
        assert raised.value.message == said
    with pytest.raises(click.ClickException, match="no node xyz-2 in cluster-connection d"):
        _find(session, "xyz-2", "d")


def test_queues_belong_to_the_connection_of_their_whole_name():
    names = ("a.n1", "a.n2", "a.b.n1", "ab.n3")
    queues = {f"{STORE_AND_FORWARD}{one}": one for one in names} | {"orders.n1": "", "x": ""}

    assert nodes_with_queues(queues, "a") == {"n1": "a.n1", "n2": "a.n2"}
    assert nodes_with_queues(queues, "a.b") == {"n1": "a.b.n1"}
    assert left_names(queues, {"a"}) == ["a.b", "ab"]
