"""A node of a cluster stops for good: all it has is in another one then, once."""

import asyncio
import contextlib
import shutil
from dataclasses import replace

import pytest

from broker.client import AckMode
from broker.client.errors import BrokerRefused
from broker.config.ha import PrimaryOnly, ScaleDown, SharedStoreBackup
from broker.errors import BrokerError
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.server import scale_down
from broker.server.lifecycle import HaState
from broker.server.scale_down_messages import ScaleDownMessages
from broker.server.server import Broker
from journal.errors import JournalClosed
from tests.broker.bridges.two_brokers import send, session_of, take
from tests.broker.cluster.mesh import (
    Mesh,
    forwarding,
    peers_of,
    queue,
    settings,
    until,
    waiting,
)
from tests.interop.asynchronous import asynchronous

Q = (queue("q"),)


@pytest.fixture(autouse=True)
def _brief(monkeypatch):
    """A node is there at once, or not at all."""
    monkeypatch.setattr(scale_down, "WAIT_S", 0.5)


LARGE = "x" * 400_000
NO_REDISTRIBUTION = {"redistribution_delay_ms": -1}
STRICT = settings(**NO_REDISTRIBUTION, auto_create_addresses=False, auto_create_queues=False)
XID = Xid(7, b"branch", b"global")


def policy(group=None, **more):
    return PrimaryOnly(scale_down=ScaleDown(group_name=group, discovery_group_ref=None, **more))


def mesh(count, folder, *, each=None, queues=Q, **more):
    """Node 0 scales down when it stops."""
    return Mesh(
        count,
        folder=folder,
        queues=queues,
        each={0: {"ha_policy": policy()}} if each is None else each,
        address_settings=settings(**NO_REDISTRIBUTION),
        **more,
    )


async def scaled_down(cluster, number=0):
    """Stop a node; what its scale-down did."""
    node = cluster.nodes[number]
    await cluster.stop(number)
    return node.scale_down_choice.report


@asynchronous
async def test_all_that_a_node_has_is_in_another_one_in_order(tmp_path):
    cluster = mesh(2, tmp_path)
    async with cluster.serving() as nodes:
        await send(nodes[0], "q", *map(str, range(50)), LARGE, "last")
        async with session_of(nodes[0]) as session:
            producer = session.producer("q")
            await (await producer.post("not durable", durable=False))
        assert waiting(nodes[0], "q") == 53

        report = await scaled_down(cluster)

        assert (report.messages, report.left, report.error) == (53, {}, "")
        assert report.is_complete
        assert report.target == nodes[1].node_id
        found = await take(nodes[1], "q", 53)
        assert found == [*map(str, range(50)), LARGE, "last", "not durable"]
        assert waiting(nodes[1], "q") == 0


@asynchronous
async def test_queues_that_the_other_node_does_not_have_are_made_there(tmp_path):
    cluster = mesh(2, tmp_path, each={0: {"ha_policy": policy()}, 1: {"queues": ()}}, queues=())
    async with cluster.serving() as nodes:
        async with session_of(nodes[0]) as session:
            await session.create_queue("s1", "topic", routing_type=RoutingType.MULTICAST)
            await session.create_queue(
                "s2", "topic", routing_type=RoutingType.MULTICAST, selector="color = 'red'"
            )
            await session.create_queue("paused", "paused")
            await session.manage("queue.paused", "pause")
        await send(nodes[0], "topic", "a", properties={"color": "red"})
        await send(nodes[0], "topic", "b", properties={"color": "blue"})
        await send(nodes[0], "paused", "c")

        report = await scaled_down(cluster)

        assert report.messages == 4
        assert report.is_complete
        assert await take(nodes[1], "s1", 2) == ["a", "b"]
        assert await take(nodes[1], "s2", 1) == ["a"]
        assert await take(nodes[1], "paused", 1) == ["c"]


@asynchronous
async def test_duplicate_ids_go_too_whatever_bytes_they_are(tmp_path):
    cluster = mesh(2, tmp_path)
    ids = ("text", b"\xff\x00\xfe")
    async with cluster.serving() as nodes:
        for one in ids:
            await send(nodes[0], "q", "once", properties={"_AMQ_DUPL_ID": one})

        report = await scaled_down(cluster)

        assert report.duplicate_ids == 2
        for one in ids:
            await send(nodes[1], "q", "again", properties={"_AMQ_DUPL_ID": one})
        assert await take(nodes[1], "q", 2) == ["once", "once"]
        assert waiting(nodes[1], "q") == 0


@asynchronous
async def test_an_empty_queue_that_the_target_refuses_keeps_nothing_else_here(tmp_path, caplog):
    cluster = mesh(2, tmp_path, each={0: {"ha_policy": policy()}, 1: {"address_settings": STRICT}})
    async with cluster.serving() as nodes:
        async with session_of(nodes[0]) as session:
            await session.create_queue("e", "e", routing_type=RoutingType.ANYCAST)
        await send(nodes[0], "e", "once", properties={"_AMQ_DUPL_ID": "id"})
        assert await take(nodes[0], "e", 1) == ["once"]
        await send(nodes[0], "q", "1", "2")

        report = await scaled_down(cluster)

        assert report.is_complete, str(report)
        assert await take(nodes[1], "q", 2) == ["1", "2"]
        assert caplog.text.count("the target does not take queue e: ") == 1


@asynchronous
async def test_a_group_has_the_target_and_without_one_everything_stays(tmp_path):
    groups = {
        0: {"ha_policy": policy("a")},
        1: {"ha_policy": policy("b")},
        2: {"ha_policy": policy("a")},
    }
    cluster = mesh(3, tmp_path, each=groups)
    async with cluster.serving() as nodes:
        await send(nodes[0], "q", "1")
        report = await scaled_down(cluster)
        assert report.target == nodes[2].node_id
        assert waiting(nodes[2], "q") == 1

        # Of group a there is none left, nor of group b.
        chosen = nodes[1]._activation.scale_down()
        with pytest.raises(BrokerError, match="no node of group 'b'"):
            await chosen.choose(wait_s=0.1)
        node_id = await nodes[2].scale_down(is_forced=True)
        assert node_id == nodes[1].node_id
        await until(lambda: nodes[1] is not None and waiting(nodes[1], "q") == 1)
        await nodes[2].ended()
        assert nodes[2].scale_down_choice.report.is_complete


@asynchronous
async def test_a_node_that_does_not_scale_down_itself_is_of_its_group(tmp_path):
    groups = {0: {"ha_policy": policy("a")}, 2: {"ha_policy": policy("a", enabled=False)}}
    cluster = mesh(3, tmp_path, each=groups)
    async with cluster.serving() as nodes:
        await send(nodes[0], "q", "1")
        report = await scaled_down(cluster)
        assert report.target == nodes[2].node_id
        with pytest.raises(BrokerError, match="no node of group 'a'"):
            await nodes[2].scale_down()
        await cluster.stop(2)
        assert nodes[2] is None
        await cluster.start(2)
        assert waiting(nodes[2], "q") == 1


@asynchronous
async def test_prepared_transactions_are_decided_in_the_other_node(tmp_path):
    cluster = mesh(2, tmp_path, queues=(queue("q"), queue("r")))
    other = Xid(7, b"branch", b"other")
    async with cluster.serving() as nodes:
        await send(nodes[0], "q", "taken", "rolled back", "left")
        async with session_of(nodes[0], AckMode.XA) as session:
            consumer = await session.consumer("q")
            for xid, content in ((XID, "sent"), (other, "never")):
                await session.xa_start(xid)
                received = await consumer.receive(10)
                await received.acknowledge()
                await session.producer("r").send(content, durable=True)
                await session.xa_end(xid)
                await session.xa_prepare(xid)

        report = await scaled_down(cluster)

        assert (report.transactions, report.left_transactions, report.messages) == (2, 0, 1)
        assert report.is_complete
        assert waiting(nodes[1], "r") == 0
        async with session_of(nodes[1], AckMode.XA) as session:
            await session.xa_commit(XID)
            await session.xa_rollback(other)
        assert await take(nodes[1], "r", 1) == ["sent"]
        assert sorted(await take(nodes[1], "q", 2)) == ["left", "rolled back"]
        assert waiting(nodes[1], "q") == waiting(nodes[1], "r") == 0


async def killed_at(cluster, folder, point, monkeypatch):
    """Scale node 0 down, and have its folder as a kill at this answer of the target leaves it."""
    copy = folder / "killed"
    count = 0
    original = ScaleDownMessages._answered

    def answered(self, sent, error):
        nonlocal count
        count += 1
        if count == point:
            shutil.copytree(folder / "0", copy)
            self._told_to_end.set()
        if count < point:
            original(self, sent, error)

    with monkeypatch.context() as patched:
        patched.setattr(ScaleDownMessages, "_answered", answered)
        report = await scaled_down(cluster)
    assert not report.is_complete
    shutil.rmtree(folder / "0")
    copy.rename(folder / "0")


async def check_resumed(tmp_path, monkeypatch, points, count):
    cluster = mesh(2, tmp_path)
    async with cluster.serving() as nodes:
        await send(nodes[0], "q", *map(str, range(count)))
        for point in points:
            await killed_at(cluster, tmp_path, point, monkeypatch)
            await cluster.start(0)
            await cluster.joined()

        report = await scaled_down(cluster)

        assert report.is_complete
        assert await take(nodes[1], "q", count) == [str(one) for one in range(count)]
        assert waiting(nodes[1], "q") == 0


@asynchronous
async def test_killed_in_the_middle_it_goes_on_with_the_next_one(tmp_path, monkeypatch):
    await check_resumed(tmp_path, monkeypatch, (1, 7), 20)


@asynchronous
async def test_what_has_begun_goes_on_to_the_same_node_or_by_force(tmp_path, monkeypatch):
    cluster = mesh(3, tmp_path)
    async with cluster.serving() as nodes:
        await send(nodes[0], "q", *map(str, range(20)))
        await killed_at(cluster, tmp_path, 7, monkeypatch)
        (first,) = [one for one in (1, 2) if waiting(nodes[one], "q")]
        target = nodes[first].node_id
        await cluster.stop(first)
        await cluster.start(0)
        other = cluster.nodes[3 - first].node_id
        await until(lambda: other in peers_of(cluster.nodes[0]))

        chosen = cluster.nodes[0]._activation.scale_down()
        with pytest.raises(BrokerError, match=f"node {target} may have some of them"):
            await chosen.choose()
        assert waiting(cluster.nodes[0], "q") > 0
        await chosen.choose(is_forced=True)
        assert chosen.target_id == other
        await chosen._target.close()

        await cluster.start(first)
        await cluster.joined()
        report = await scaled_down(cluster)

        assert report.is_complete
        assert report.target == target
        assert waiting(cluster.nodes[3 - first], "q") == 0
        assert await take(cluster.nodes[first], "q", 20) == [str(one) for one in range(20)]


@contextlib.asynccontextmanager
async def backup_of(cluster, folder, *, failover=False):
    """Stop node 0 as if it had failed; a backup of it in this process, which scales down."""
    options = cluster.options(0)
    backup = SharedStoreBackup(scale_down=ScaleDown(discovery_group_ref=None))
    configuration = options.configuration
    made = Broker(
        replace(
            options,
            store=replace(options.store, lock_timeout_ms=-1),
            shares_store=True,
            is_backup=True,
            failover_on_shutdown=failover,
            configuration=replace(
                configuration, cluster=replace(configuration.cluster, ha_policy=backup)
            ),
        )
    )
    await cluster.stop(0)
    state = folder / "0/journal/server.lock"
    state.write_bytes(b"L" + state.read_bytes()[1:])
    starting = asyncio.ensure_future(made.start())
    try:
        yield made, state
    finally:
        await made.stop()
        with contextlib.suppress(JournalClosed):
            await starting


@pytest.mark.parametrize("failover", [True, False])
@asynchronous
async def test_a_backup_that_has_taken_over_hands_everything_on_and_waits(tmp_path, failover):
    cluster = mesh(2, tmp_path, each={})
    async with cluster.serving() as nodes:
        await send(nodes[0], "q", *map(str, range(20)))
        async with backup_of(cluster, tmp_path, failover=failover) as (backup, state):
            await until(lambda: waiting(nodes[1], "q") == 20)
            await until(lambda: backup.lifecycle.ha_state is HaState.WAITING)

            assert state.read_bytes()[:1] == b"P"
            assert backup.scale_down_choice.report.is_complete
        assert await take(nodes[1], "q", 20) == [str(one) for one in range(20)]
        # Waiting, activating, active, stopping, waiting, and the stop: once.
        assert backup.lifecycle.ha_transitions == 7


@asynchronous
async def test_a_backup_serves_what_the_other_node_does_not_take(tmp_path, monkeypatch):
    monkeypatch.setattr(scale_down, "RETRY_S", 0.1)
    monkeypatch.setattr(scale_down, "_RETRY_AGAIN_S", 0.05)
    cluster = mesh(2, tmp_path, each={1: {"address_settings": STRICT}})
    async with cluster.serving() as nodes:
        async with session_of(nodes[0]) as session:
            await session.create_queue("e", "e", routing_type=RoutingType.ANYCAST)
        await send(nodes[0], "e", "not taken")
        async with backup_of(cluster, tmp_path) as (backup, state):
            await until(lambda: backup.lifecycle.ha_transitions == 7)
            await until(lambda: backup.is_active)

            assert backup.scale_down_choice.report.left == {"e": 1}
            assert state.read_bytes()[:1] == b"L"
            assert await take(backup, "e", 1) == ["not taken"]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
@asynchronous
async def test_killed_at_random_points(tmp_path, monkeypatch, seed):
    import random

    chance = random.Random(seed)
    await check_resumed(tmp_path, monkeypatch, [chance.randrange(1, 60) for _ in range(5)], 400)


@asynchronous
async def test_what_waits_for_the_node_follows_to_the_one_that_has_its_messages(tmp_path):
    """A third node has messages for the one that goes: they wait in its store-and-forward queue."""
    cluster = mesh(3, tmp_path, mode="STRICT")
    async with cluster.serving() as nodes:
        left, target = nodes[0].node_id, nodes[1].node_id
        connector = "to" + str(cluster.ports[1])
        choice = nodes[0].scale_down_choice
        assert await choice.by_operator(nodes[0]._activation, connector) == target
        sf = nodes[2].cluster.connections["mesh"].queue_of(left)
        sf.pause()
        await send(nodes[2], "q", *map(str, range(30)))
        assert sf.message_count == 10

        report = await scaled_down(cluster)
        sf.resume()

        assert report.is_complete
        await until(lambda: sf.message_count == 0)
        await until(lambda: forwarding(nodes[2]) == 0)
        found = [await take(node, "q", waiting(node, "q")) for node in nodes[1:]]
        assert sorted(map(int, [*found[0], *found[1]])) == list(range(30))


@asynchronous
async def test_what_was_meant_for_a_third_node_goes_on_by_the_target(tmp_path):
    cluster = mesh(3, tmp_path, mode="STRICT")
    async with cluster.serving() as nodes:
        third = nodes[2].node_id
        sf = nodes[0].cluster.connections["mesh"].queue_of(third)
        sf.pause()
        await send(nodes[0], "q", *map(str, range(30)))
        assert sf.message_count == 10
        await cluster.stop(2)
        await until(lambda: not peers_of(nodes[0])[third].is_connected)
        await cluster.start(2)
        await cluster.joined()
        connector = "to" + str(cluster.ports[1])
        await nodes[0].scale_down_choice.by_operator(nodes[0]._activation, connector)

        report = await scaled_down(cluster)

        assert report.is_complete
        await until(lambda: forwarding(nodes[1]) == 0)
        found = [await take(node, "q", waiting(node, "q")) for node in nodes[1:]]
        assert sorted(map(int, [*found[0], *found[1]])) == list(range(30))


@asynchronous
async def test_what_was_meant_for_a_subscription_of_a_third_node_waits_for_that_alone(tmp_path):
    """The third node is not there, and comes back."""
    each = {
        number: {"queues": (queue(name, RoutingType.MULTICAST, "news"),)}
        for number, name in enumerate("abc")
    }
    each[0]["ha_policy"] = policy()
    cluster = mesh(3, tmp_path, each=each)
    async with cluster.serving() as nodes:
        third = nodes[2].node_id
        nodes[0].cluster.connections["mesh"].queue_of(third).pause()
        await send(nodes[0], "news", "x", "y")
        await until(lambda: waiting(nodes[1], "b") == 2)
        await cluster.stop(2)
        await until(lambda: not peers_of(nodes[0])[third].is_connected)
        connector = "to" + str(cluster.ports[1])
        await nodes[0].scale_down_choice.by_operator(nodes[0]._activation, connector)

        report = await scaled_down(cluster)

        assert report.is_complete
        assert (forwarding(nodes[1]), waiting(nodes[1], "a"), waiting(nodes[1], "b")) == (2, 2, 2)
        await cluster.start(2)
        await until(lambda: waiting(nodes[2], "c") == 2)
        await until(lambda: forwarding(nodes[1]) == 0)
        assert waiting(nodes[1], "a") == waiting(nodes[1], "b") == 2


@asynchronous
async def test_clients_are_sent_to_the_target(tmp_path):
    cluster = mesh(2, tmp_path)
    async with cluster.serving() as nodes, session_of(nodes[0]) as session:
        connection = session._calls._connection
        await cluster.stop(0)
        await until(lambda: connection.disconnect is not None)
        assert connection.disconnect.target_node_id == nodes[1].node_id


@asynchronous
async def test_an_operator_has_it_refused_without_another_node(tmp_path):
    cluster = mesh(2, tmp_path)
    async with cluster.serving() as nodes:
        async with session_of(nodes[0]) as session:
            with pytest.raises(BrokerRefused, match="no connector is called 'nowhere'"):
                await session.manage("broker", "scaleDown", "nowhere", timeout_s=60)
        assert nodes[0].is_active
        async with session_of(nodes[0]) as session:
            assert await session.manage("broker", "scaleDown", None, False) == nodes[1].node_id
        await nodes[0].ended()
        assert nodes[0].scale_down_choice.report.is_complete
