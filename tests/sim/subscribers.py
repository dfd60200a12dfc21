"""Durable subscriptions of a topic: created, left, taken up again by anybody, deleted.

A subscription is a queue of its address, as those of JMS are: one for a single consumer, or one
that many share. What it has to have got is in tests/broker/history/checker.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from broker.client import AckMode
from broker.model.routing_type import RoutingType
from tests.broker.history.consumers import take

if TYPE_CHECKING:
    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.session import AsyncSession
    from tests.broker.history.record import Subscription
    from tests.sim.workloads import SimWorld

# More than so many of one address are not created.
SUBSCRIPTIONS_MAX = 4


class Subscriptions:
    """Those of one node that are there, and how many consumers each has."""

    def __init__(self) -> None:
        self.known: list[Subscription] = []
        self.shared: set[str] = set()
        self.users: Counter[str] = Counter()

    def free(self) -> list[Subscription]:
        """Those that one more consumer may have."""
        return [one for one in self.known if one.queue in self.shared or not self.users[one.queue]]

    def unused(self) -> list[Subscription]:
        """Those without a consumer."""
        return [one for one in self.known if not self.users[one.queue]]


async def subscribing(world: SimWorld, address: str) -> None:
    """Take subscriptions up, acknowledge message by message, leave them, sometimes for good."""
    options = {"ack_batch_size": 0, "block_on_acknowledge": True}
    async with (
        world.client() as client,
        await client.session(AckMode.INDIVIDUAL, **options) as session,
    ):
        for _ in range(world.seeded.randrange(1, 8)):
            if world.is_over:
                return
            await _use(world, session, address)
            unused = world.subscriptions.unused()
            if unused and world.chance(0.1):
                await _delete(world, session, world.seeded.choice(unused))
            await asyncio.sleep(world.seeded.uniform(0, 0.5))


def _chosen(world: SimWorld) -> Subscription | None:
    """One that is there and that a consumer may have; None where a new one shall be created."""
    ours = world.subscriptions
    free = ours.free()
    if not free or (len(ours.known) < SUBSCRIPTIONS_MAX and world.chance(0.3)):
        return None
    return world.seeded.choice(free)


async def _resubscribe(
    world: SimWorld, session: AsyncSession, address: str, found: Subscription
) -> None:
    if found.queue in world.subscriptions.shared:
        # As each subscriber of JMS does, whether it is there or not.
        await session.create_shared_queue(found.queue, address)
    elif not (await session.query_queue(found.queue)).exists:
        world.history.problems.append(f"lost: the subscription {found.queue} of {address}")


async def _create(world: SimWorld, session: AsyncSession, address: str) -> Subscription:
    name = world.name("subscription")
    made = world.history.subscribing(name, address)
    is_shared = world.chance(0.5)
    if is_shared:
        await session.create_shared_queue(name, address)
        world.subscriptions.shared.add(name)
    else:
        kind = RoutingType.MULTICAST
        await session.create_queue(name, address, routing_type=kind, max_consumers=1)
    world.history.subscribed(made)
    world.subscriptions.known.append(made)
    world.queues = (*world.queues, name)
    return made


async def _use(world: SimWorld, session: AsyncSession, address: str) -> None:
    users = world.subscriptions.users
    subscription = _chosen(world)
    is_new = subscription is None
    if subscription is None:
        subscription = await _create(world, session, address)
    # Before anything is awaited: no other client chooses it meanwhile.
    users[subscription.queue] += 1
    try:
        if not is_new:
            await _resubscribe(world, session, address, subscription)
        async with await session.consumer(subscription.queue) as consumer:
            await _receive(world, consumer, subscription.queue)
    finally:
        users[subscription.queue] -= 1


async def _receive(world: SimWorld, consumer: AsyncConsumer, queue: str) -> None:
    for _ in range(world.seeded.randrange(1, 20)):
        unit = world.history.unit()
        received = await take(world, consumer, queue, unit)
        if received is None or world.is_over:
            return
        if world.chance(0.1):
            # It goes back with its consumer.
            world.history.undone(unit)
            return
        await world.count(unit, received.acknowledge)


async def _delete(world: SimWorld, session: AsyncSession, subscription: Subscription) -> None:
    """Unsubscribe; whether it is answered or not, nothing has to be in it any more."""
    world.history.unsubscribing(subscription)
    world.subscriptions.known.remove(subscription)
    world.queues = tuple(one for one in world.queues if one != subscription.queue)
    await session.delete_queue(subscription.queue)
