"""Message groups and exclusive queues over a mesh of brokers: one owner, and who follows."""

import asyncio
import contextlib
import dataclasses

import pytest

from broker.config.cluster import GroupingHandler, GroupingType
from broker.records.binding_records import GroupBinding
from tests.broker.bench import message
from tests.broker.bridges.two_brokers import send, session_of
from tests.broker.cluster.mesh import Mesh, demand, forwarding, queue, until, waiting
from tests.interop.asynchronous import asynchronous

Q = (queue("q"),)
EXCLUSIVE = (queue("q", exclusive=True),)
GROUPS = ("red", "blue", "green", "black", "white")
COUNT = 8


class Handled(Mesh):
    """A mesh whose node 0 decides about groups, and all others ask it."""

    def options(self, number):
        made = super().options(number)
        kind = GroupingType.REMOTE if number else GroupingType.LOCAL
        handler = GroupingHandler(name="g", type=kind, timeout_ms=2000)
        configuration = made.configuration
        cluster = dataclasses.replace(configuration.cluster, grouping_handler=handler)
        return dataclasses.replace(
            made, configuration=dataclasses.replace(configuration, cluster=cluster)
        )


@contextlib.asynccontextmanager
async def consuming(node, received, name="q"):
    """A consumer that adds what it receives to the list."""

    async def listen(one):
        await one.read()
        received.append(one.content)

    async with session_of(node) as session:
        await session.consumer(name, listener=listen)
        yield


def groups_of(received):
    """The numbers of each group, in their order."""
    found = {}
    for content in received:
        group, number = content.split()
        found.setdefault(group, []).append(int(number))
    return found


async def send_groups(nodes, numbers, groups=GROUPS):
    """Each message of a group by another node, one behind the other."""
    for number in numbers:
        node = nodes[number % len(nodes)]
        for group in groups:
            await send(node, "q", f"{group} {number}", properties={"_AMQ_GROUP_ID": group})


def settled(nodes):
    return all(one.parts.postoffice.grouping.settling.is_settled for one in nodes)


def quiet(nodes):
    return all(forwarding(one) == waiting(one, "q") == 0 for one in nodes)


def check(receivers, count, groups=GROUPS, sources=1):
    """Each group is with one of them; what came by one node is in order."""
    by_receiver = [groups_of(one) for one in receivers]
    for group in groups:
        found = [one[group] for one in by_receiver if group in one]
        assert len(found) == 1, (group, found)
        assert sorted(found[0]) == list(range(count)), (group, found)
        for source in range(sources):
            numbers = [one for one in found[0] if one % sources == source]
            assert numbers == sorted(numbers), (group, found)


def check_told(nodes, receivers):
    """Each node says which other one has a group; the one that has it names none."""
    for group in GROUPS:
        has = next(node for node, received in receivers if group in groups_of(received))
        for node in nodes:
            q, grouping = (
                node.parts.postoffice.addresses.queues["q"],
                node.parts.postoffice.grouping,
            )
            told = grouping.owner_elsewhere(q, message(_AMQ_GROUP_ID=group))
            assert told == (None if node is has else has.node_id)


@asynchronous
async def test_a_group_has_one_consumer_whichever_node_a_message_comes_to():
    mesh = Mesh(3, queues=Q)
    one, two = [], []
    async with (
        mesh.serving() as nodes,
        consuming(nodes[1], one),
        consuming(nodes[2], two),
    ):
        await until(lambda: settled(nodes) and demand(nodes[0], "q") == 2)
        await until(lambda: demand(nodes[1], "q") == demand(nodes[2], "q") == 1)
        await send_groups(nodes, range(COUNT))
        await until(lambda: len(one) + len(two) == COUNT * len(GROUPS))
        check([one, two], COUNT, sources=3)
        assert quiet(nodes)
        check_told(nodes, [(nodes[1], one), (nodes[2], two)])


@pytest.mark.slow
@asynchronous
async def test_groups_of_a_node_that_stops_go_to_another_one_and_do_not_come_back():
    mesh = Mesh(3, queues=Q)
    one, two = [], []
    async with mesh.serving() as nodes, consuming(nodes[2], two):
        async with consuming(nodes[1], one):
            await until(lambda: settled(nodes) and demand(nodes[0], "q") == 2)
            await until(lambda: demand(nodes[2], "q") == 1)
            await send_groups([nodes[0]], range(COUNT))
            await until(lambda: len(one) + len(two) == COUNT * len(GROUPS))
            check([one, two], COUNT)
        await mesh.stop(1)
        await until(lambda: demand(nodes[0], "q") == 1)
        await send_groups([nodes[0], nodes[2]], range(COUNT, 2 * COUNT))
        await until(lambda: len(one) + len(two) == 2 * COUNT * len(GROUPS))

        await mesh.start(1)
        await mesh.joined()
        async with consuming(nodes[1], one):
            await until(lambda: settled(nodes) and demand(nodes[0], "q") == 2)
            before = len(one)
            await send_groups(nodes, range(2 * COUNT, 3 * COUNT))
            await until(lambda: len(one) + len(two) == 3 * COUNT * len(GROUPS))
            assert len(one) == before
        for numbers in groups_of(two).values():
            assert len(set(numbers)) == len(numbers)


@asynchronous
async def test_a_node_that_stops_delivers_no_groups_once_it_has_left_the_others():
    mesh = Mesh(2, queues=Q)
    here, there = [], []
    red = {"properties": {"_AMQ_GROUP_ID": "red"}}
    async with mesh.serving() as nodes, consuming(nodes[1], there):
        await until(lambda: settled(nodes) and demand(nodes[0], "q") == 1)
        await send(nodes[0], "q", "red 0", **red)
        await until(lambda: there == ["red 0"])
        async with consuming(nodes[0], here):
            # Its clients are connected still: that is later in a stop.
            await nodes[0]._activation.active.leave_cluster()
            await send(nodes[0], "q", "red 1", **red)
            await send(nodes[0], "q", "none 2")
            await until(lambda: here)
        assert here == ["none 2"]
        assert waiting(nodes[0], "q") == 1


@asynchronous
async def test_groups_of_a_node_without_consumers_are_handed_over_in_order():
    mesh = Mesh(2, queues=Q)
    received = []
    async with mesh.serving() as nodes:
        await until(lambda: settled(nodes))
        await send_groups([nodes[0]], range(COUNT))
        assert waiting(nodes[0], "q") == COUNT * len(GROUPS)
        async with consuming(nodes[1], received):
            await until(lambda: len(received) == COUNT * len(GROUPS))
            await send_groups([nodes[0]], range(COUNT, 2 * COUNT))
            await until(lambda: len(received) == 2 * COUNT * len(GROUPS))
            check([received], 2 * COUNT)
            assert quiet(nodes)


@asynchronous
async def test_an_exclusive_queue_has_one_consumer_in_the_mesh():
    mesh = Mesh(3, queues=EXCLUSIVE)
    lists = [], [], []
    async with mesh.serving() as nodes:
        async with contextlib.AsyncExitStack() as stack:
            for node, received in zip(nodes, lists, strict=True):
                await stack.enter_async_context(consuming(node, received))
            await until(lambda: settled(nodes) and all(demand(one, "q") == 2 for one in nodes))
            for number in range(12):
                await send(nodes[number % 3], "q", str(number))
            await until(lambda: sum(map(len, lists)) == 12)
            assert sorted(map(len, lists)) == [0, 0, 12]
            assert set(max(lists, key=len)) == {str(number) for number in range(12)}
        # Its node has no consumer any more: another one follows.
        owner = max(range(3), key=lambda one: len(lists[one]))
        other = (owner + 1) % 3
        await until(lambda: not any(demand(one, "q") for one in nodes))
        async with consuming(nodes[other], lists[other]):
            await until(lambda: demand(nodes[owner], "q") == 1)
            await send(nodes[owner], "q", "more")
            await until(lambda: lists[other][-1:] == ["more"])


@asynchronous
async def test_with_a_grouping_handler_the_local_one_decides_and_records(tmp_path):
    mesh = Handled(3, queues=Q, folder=tmp_path)
    one, two = [], []
    async with mesh.serving() as nodes:
        async with consuming(nodes[1], one), consuming(nodes[2], two):
            await until(lambda: settled(nodes) and demand(nodes[0], "q") == 2)
            await until(lambda: demand(nodes[1], "q") == demand(nodes[2], "q") == 1)
            # First at those that have to ask.
            await send_groups([nodes[1], nodes[2], nodes[0]], range(COUNT))
            await until(lambda: len(one) + len(two) == COUNT * len(GROUPS))
            check([one, two], COUNT, sources=3)
            check_told(nodes, [(nodes[1], one), (nodes[2], two)])
        owners = nodes[0].parts.postoffice.grouping.handler.owners
        assert sorted(owners) == sorted(f"{group}.q" for group in GROUPS)
        await mesh.stop(0)
        node = await mesh.start(0)
        assert node.parts.postoffice.grouping.handler.owners == owners
        recorded = [one for _, one in node._activation.active._recorded]
        found = {one.group_id for one in recorded if isinstance(one, GroupBinding)}
        assert found == set(owners)


@pytest.mark.slow
@asynchronous
async def test_without_a_local_handler_messages_of_groups_are_delivered_after_all():
    class Alone(Handled):
        def options(self, number):
            made = super().options(number)
            configuration = made.configuration
            handler = GroupingHandler(name="g", type=GroupingType.REMOTE, timeout_ms=20)
            cluster = dataclasses.replace(configuration.cluster, grouping_handler=handler)
            return dataclasses.replace(
                made, configuration=dataclasses.replace(configuration, cluster=cluster)
            )

    mesh = Alone(2, queues=Q)
    received = []
    async with mesh.serving() as nodes, consuming(nodes[0], received):
        await until(lambda: demand(nodes[1], "q") == 1)
        await send_groups([nodes[0]], range(COUNT), ["red"])
        await until(lambda: len(received) == COUNT)
        check([received], COUNT, ["red"])


@asynchronous
async def test_a_mode_that_distributes_nothing_has_no_owners():
    mesh = Mesh(2, queues=Q, mode="OFF")
    received = []
    async with mesh.serving() as nodes, consuming(nodes[1], received):
        await until(lambda: demand(nodes[0], "q") == 1)
        await send_groups([nodes[0]], range(2))
        assert waiting(nodes[0], "q") == 2 * len(GROUPS)
        await send_groups([nodes[1]], range(2))
        await until(lambda: len(received) == 2 * len(GROUPS))
        await asyncio.sleep(0)
