"""What waits here for a group's owner elsewhere gets there in order, whenever that is known."""

import asyncio

from broker.cluster import settling
from broker.cluster.group_moves import Elsewhere, GroupMoves
from broker.cluster.group_owners import Owner, bucket_of
from broker.cluster.told import GroupEvent, ToldGroup
from broker.model.load_balancing import MessageLoadBalancing
from broker.queues.counters import Counters
from broker.queues.reference import Reference
from broker.queues.reference_lists import PriorityList
from broker.routing.remote_bindings import RemoteQueueBinding
from tests.broker.bench import message
from tests.broker.bridges.two_brokers import send
from tests.broker.cluster.mesh import Mesh, queue, until, waiting
from tests.interop.asynchronous import asynchronous

PEER = "1" * 36
RED = {"_AMQ_GROUP_ID": "red"}


def bodies(one):
    """Of what waits in a queue."""
    return [bytes(reference.message.body).decode() for reference in one.waiting]


def owner_of(group):
    """What a peer tells: the group is with the queue of another one."""
    return ToldGroup(
        GroupEvent.GROUP_OWNER, "q", bucket=bucket_of(group), owner=Owner(1, "q" + PEER)
    )


def queue_there(node):
    """The queue of that other one; what is for it waits in `there`."""
    return RemoteQueueBinding(
        address="q",
        cluster_name="q" + PEER,
        routing_name="q",
        binding_id=1_000_000,
        remote_id=1,
        filter=None,
        distance=1,
        forwarding=node.parts.postoffice.addresses.queues["there"],
        mode=MessageLoadBalancing.ON_DEMAND,
    )


@asynchronous
async def test_what_came_before_the_owners_queue_was_known_goes_first(monkeypatch):
    monkeypatch.setattr(settling, "SETTLES_S", 3600.0)
    # The other one does not run, so this node is not told all that there is.
    mesh = Mesh(2, queues=(queue("q"), queue("there")))
    node = await mesh.start(0)
    try:
        grouping = node.parts.postoffice.grouping
        grouping.told(owner_of("red"))
        await send(node, "q", b"1", b"2", properties=RED)
        assert waiting(node, "q") == 2

        node.parts.postoffice.addresses.remote.add(queue_there(node))
        await send(node, "q", b"3", properties=RED)

        await until(lambda: waiting(node, "there") == 3)
        assert bodies(node.parts.postoffice.addresses.queues["there"]) == ["1", "2", "3"]
    finally:
        await mesh.stop(0)


class Waiting:
    """A queue in which numbered messages wait, each of a group."""

    name = "q"
    is_deleted = False
    pages = None
    undecided_count = 0

    def __init__(self, *groups):
        self.waiting = PriorityList()
        for number, group in enumerate(groups):
            self.waiting.add_tail(Reference(message(str(number), _AMQ_GROUP_ID=group), self))


class There:
    """Takes what is moved, but the numbers in `refused`, each once."""

    is_reached = True

    def __init__(self, *refused):
        self.came = []
        self._refused = set(refused)

    def redistribute(self, reference, target):
        number = int(bytes(reference.message.body))
        if number in self._refused:
            self._refused.remove(number)
            return False
        self.came.append(number)
        reference.queue.waiting.remove(reference)
        return True
        yield


def group_of(one):
    return one.get("_AMQ_GROUP_ID")


@asynchronous
async def test_what_is_behind_a_message_that_stays_does_not_go_before_it():
    queue, there = Waiting("red", "red", "blue"), There(0)
    moves = GroupMoves(lambda queue, one: Elsewhere(group_of(one), there), there, Counters())

    moves.look(queue)
    await until(lambda: not moves.is_moving(queue))

    assert there.came == [2, 0, 1]


@asynchronous
async def test_an_owner_that_changes_meanwhile_gets_all_in_order():
    queue, there = Waiting(*["red"] * 250), There()
    is_here = True
    moves = GroupMoves(
        lambda queue, one: None if is_here else Elsewhere(group_of(one), there), there, Counters()
    )

    moves.look(queue)
    # It has looked at some, and gives others their turn.
    await asyncio.sleep(0)
    is_here = False
    moves.look_again(queue)
    await until(lambda: not moves.is_moving(queue))

    assert there.came == list(range(250))
