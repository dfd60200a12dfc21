"""`broker trace` and `broker queue why`: by their command lines, over the nodes of a mesh."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from broker.cli.exit_status import run
from broker.cli.main import broker as command_line
from broker.client import AckMode
from tests.broker.bridges.two_brokers import port_of, send, session_of
from tests.broker.cluster.mesh import Mesh, demand, forwarding, queue, settings, until, waiting
from tests.interop.asynchronous import asynchronous

Q = (queue("q"),)


def uri(node):
    return f"tcp://127.0.0.1:{port_of(node)}"


async def called(*words):
    """The output of a command; its brokers serve meanwhile."""
    found = await asyncio.to_thread(CliRunner().invoke, command_line, list(map(str, words)))
    assert found.exit_code == 0, found.output
    return found.output


def first_id(node, name="q"):
    return node.parts.postoffice.addresses.queues[name].waiting.head().message.message_id


@pytest.mark.slow
@asynchronous
async def test_a_redistributed_message_is_traced_over_both_nodes(tmp_path):
    mesh = Mesh(2, queues=Q, folder=tmp_path)
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", "m")
        message_id = first_id(nodes[0])
        before = json.loads(await called("trace", message_id, "--url", uri(nodes[0]), "--json"))
        (message,) = before["messages"]
        assert [one["step"] for one in message["steps"]] == ["sent", "routed"]
        assert message["now"][0]["queue"] == "q"
        assert message["now"][0]["reasons"][0]["code"] == "no-consumer"

        async with session_of(nodes[1]) as session:
            consumer = await session.consumer("q")
            received = await consumer.receive(30)
            assert received is not None
            await until(lambda: forwarding(nodes[0]) == 0 and waiting(nodes[1], "q") == 0)

        text = await called("trace", message_id, "--url", uri(nodes[0]), "--json")
        here, there = map(json.loads, text.splitlines())
        assert (here["node"], there["node"]) == (nodes[0].node_id, nodes[1].node_id)
        original, copy = here["messages"]
        assert original["copies"] == [copy["messageID"]]
        assert [one["step"] for one in original["steps"]][:3] == ["sent", "routed", "acknowledged"]
        assert copy["forwardedTo"] == [nodes[1].node_id]
        assert there["arrived"]
        assert there["from"] == {"node": nodes[0].node_id, "messageID": copy["messageID"]}
        (arrived,) = there["messages"]
        assert [one["step"] for one in arrived["steps"]][:3] == ["sent", "routed", "acknowledged"]
        assert arrived["steps"][0]["outcome"] == "committed"

        for_people = await called("trace", message_id, "--url", uri(nodes[0]))
        assert f"goes on as message {copy['messageID']}" in for_people
        assert "no history is kept" in for_people
        # From the other node it is found as well: it knows where the first one is.
        assert await called("trace", message_id, "--url", uri(nodes[1])) == for_people


@asynchronous
async def test_a_dead_letter_is_traced_from_either_id(tmp_path):
    dead = settings(max_delivery_attempts=2, dead_letter_address="DLQ")
    queues = (queue("q"), queue("DLQ"), queue("aside"))
    async with Mesh(1, queues=queues, folder=tmp_path, address_settings=dead).serving() as nodes:
        (node,) = nodes
        await send(node, "q", "m")
        message_id = first_id(node)
        async with session_of(node, AckMode.TRANSACTED) as session:
            consumer = await session.consumer("q")
            for _ in range(2):
                received = await consumer.receive(30)
                await received.acknowledge()
                await session.rollback()
        await until(lambda: waiting(node, "DLQ") == 1)
        letter_id = first_id(node, "DLQ")

        async def traced(one):
            return await called("trace", one, "--url", uri(node), "--json")

        found = json.loads(await traced(message_id))["messages"]
        assert [one["messageID"] for one in found] == [message_id, letter_id]
        assert found[0]["copies"] == [letter_id]
        assert [one["original"] for one in found] == [
            None,
            {"messageID": message_id, "queue": "q", "address": "q"},
        ]
        assert await traced(letter_id) == await traced(message_id)

        async with session_of(node) as session:
            assert await session.manage("queue.DLQ", "moveMessages", "", "aside") == 1
        aside_id = first_id(node, "aside")
        found = json.loads(await traced(aside_id))["messages"]
        assert [one["messageID"] for one in found] == [message_id, letter_id, aside_id]
        text = await called("trace", aside_id, "--url", uri(node))
        assert f"was message {message_id} in queue q (address q)" in text
        assert f"was message {letter_id} in queue DLQ (address DLQ)" in text


@asynchronous
async def test_the_status_of_a_cluster_is_1_while_a_link_is_dead():
    async with Mesh(2, queues=Q).serving() as nodes:

        async def status(*words):
            words = ("cluster", "status", "--url", uri(nodes[0]), *words)
            arguments = list(map(str, words))
            return await asyncio.to_thread(run, command_line, "broker", arguments)

        assert await status() == 0
        peer = next(iter(nodes[0].cluster.connections["mesh"].peers.values()))
        # The node may say once more that it is there, which starts what has given up.
        peer.start = lambda: None
        await peer.pause()
        assert await status() == 1
        assert await status("--json") == 1


@pytest.mark.slow
@asynchronous
async def test_what_is_not_known_is_said(tmp_path):
    mesh = Mesh(1, queues=Q, folder=tmp_path)
    async with mesh.serving() as nodes:
        found = await asyncio.to_thread(
            CliRunner().invoke, command_line, ["trace", "12345", "--url", uri(nodes[0])]
        )
        assert found.exit_code == 1
        assert "nothing is known of message 12345" in found.output


@pytest.mark.slow
@asynchronous
async def test_why_says_what_holds_a_message_on_two_nodes(tmp_path):
    mesh = Mesh(2, queues=Q, address_settings=settings(redistribution_delay_ms=60_000))
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", "m", properties={"color": "red"})
        message_id = first_id(nodes[0])

        async def why(*words):
            return await called("queue", "why", *words, "--url", uri(nodes[0]))

        async def codes(*words):
            found = json.loads(await why("q", *words, "--json"))
            return [one["code"] for one in found["reasons"]]

        assert await codes() == ["no-consumer", "no-consumer-elsewhere"]
        async with session_of(nodes[1]) as session:
            consumer = await session.consumer("q", "color = 'blue'")
            await until(lambda: demand(nodes[0], "q") == 1)
            assert await codes(message_id) == ["no-consumer", "no-match-elsewhere"]
            await consumer.close()
            await session.consumer("q", "color = 'red'")
            await until(lambda: demand(nodes[0], "q") == 1)
            assert await codes() == ["no-consumer", "redistribution-delay"]
        lines = await why("q")
        assert lines.startswith("queue q: 1 message (1 waiting,")
        assert "1. queue q has no consumer on this node [no-consumer]" in lines
        assert "absent" in await codes("999999")


@pytest.mark.slow
@asynchronous
async def test_a_message_for_a_node_that_is_gone_is_found_in_its_store_and_forward_queue(tmp_path):
    mesh = Mesh(2, queues=Q, mode="STRICT", folder=tmp_path)
    async with mesh.serving() as nodes:
        gone = nodes[1].node_id
        peer = next(iter(nodes[0].cluster.connections["mesh"].peers.values()))
        # The node may say once more that it is there, which starts what has given up.
        peer.start = lambda: None
        await peer.pause()
        for binding in nodes[0].parts.postoffice.addresses.remote.at("q"):
            binding.is_connected = True
        await send(nodes[0], "q", "a", "b")
        name = f"$.artemis.internal.sf.mesh.{gone}"
        await until(lambda: waiting(nodes[0], name) == 1)
        message_id = first_id(nodes[0], name)

        text = await called("queue", "why", "q", message_id, "--url", uri(nodes[0]))

        assert f"store-and-forward queue of node {gone}" in text
