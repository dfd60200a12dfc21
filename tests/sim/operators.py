"""What operators do while clients work: queues are created, paused, emptied, deleted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.client import AckMode
from broker.client.errors import QueueMissing
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.session import AsyncSession
    from tests.sim.workloads import SimWorld

# Addresses of these queues begin so. What is in one when it is deleted is gone.
PASSING = "passing"
# So long nothing comes from a queue that is paused.
PAUSE_S = 0.5


async def operating(world: SimWorld, queue: str) -> None:
    """Create a queue, by a request or by management, send to it, delete it: nothing is left."""
    del queue
    async with world.client() as client, await client.session() as session:
        while not world.is_over:
            name = f"{PASSING}-{world.name('q')}"
            is_managed = world.chance(0.5)
            if is_managed:
                await session.manage("broker", "createQueue", name, name, "ANYCAST")
            else:
                await session.create_queue(name, name, routing_type=RoutingType.ANYCAST)
            producer = session.producer(name)
            for number in range(world.seeded.randrange(1, 4)):
                await producer.send(b"%d" % number)
            found = (await session.query_queue(name)).message_count
            if found == 0:
                world.history.problems.append(f"lost: what was sent to {name}, just now")
            if is_managed:
                await session.manage("broker", "destroyQueue", name)
            else:
                await session.delete_queue(name)
            await _expect_missing(world, session, name)
            await asyncio.sleep(world.seeded.uniform(0.1, 1))


async def _expect_missing(world: SimWorld, session: AsyncSession, name: str) -> None:
    try:
        found = await session.query_queue(name)
    except QueueMissing:
        return
    if found.exists and found.message_count:
        world.history.problems.append(f"unexpected: {name} was deleted, and has messages")


async def sending_to_what_comes_and_goes(world: SimWorld, queue: str) -> None:
    """Create a queue of an address again and again: what was confirmed meanwhile is in it."""
    del queue
    async with world.client() as client, await client.session() as session:
        while not world.is_over:
            name = f"{PASSING}-{world.name('q')}"
            for _ in range(2):
                await session.create_queue(name, PASSING, routing_type=RoutingType.MULTICAST)
                await session.producer(PASSING).send(b"x")
                if (await session.query_queue(name)).message_count == 0:
                    world.history.problems.append(f"lost: what was sent to {name}, a new queue")
                await session.delete_queue(name)
            await asyncio.sleep(world.seeded.uniform(0.1, 1))


async def pausing(world: SimWorld, queue: str) -> None:
    """Pause queues of its own: nothing comes until they are resumed, and then it does.

    The pause is persistent, so it holds after a restart.
    """
    del queue
    options = {"ack_batch_size": 0, "block_on_acknowledge": True}
    async with (
        world.client() as client,
        await client.session() as session,
        await client.session(AckMode.CLIENT, **options) as receiving,
    ):
        while not world.is_over:
            name = f"{PASSING}-{world.name('q')}"
            await session.create_queue(name, name, routing_type=RoutingType.ANYCAST)
            await session.manage(f"queue.{name}", "pause", True)
            await session.producer(name).send(b"x")
            async with await receiving.consumer(name) as consumer:
                await _pause_and_resume(world, session, consumer, name)
            await session.delete_queue(name)
            await asyncio.sleep(world.seeded.uniform(0.1, 1))


async def _pause_and_resume(
    world: SimWorld, session: AsyncSession, consumer: AsyncConsumer, name: str
) -> None:
    if await consumer.receive(world.seeded.uniform(0, PAUSE_S)) is not None:
        world.history.problems.append(f"unexpected: a message came from {name}, which is paused")
        return
    await session.manage(f"queue.{name}", "resume")
    received = await consumer.receive(world.patience_s)
    if received is not None:
        await received.acknowledge()
    elif not world.run.is_disturbed:
        world.history.problems.append(f"stranded: what was sent to {name}, which was resumed")


async def pausing_others(world: SimWorld, queue: str) -> None:
    """Pause the queues that others work with, each for a while."""
    del queue
    async with world.client() as client, await client.session() as session:
        while not world.is_over:
            name = world.seeded.choice(world.fixed_queues)
            world.paused.add(name)
            await session.manage(f"queue.{name}", "pause")
            await asyncio.sleep(world.seeded.uniform(0.05, 1))
            await session.manage(f"queue.{name}", "resume")
            world.paused.discard(name)
            await asyncio.sleep(world.seeded.uniform(0.1, 1))


async def resume_all(world: SimWorld) -> None:
    """Resume what an operator has left paused."""
    if not world.paused:
        return
    async with world.client() as client, await client.session() as session:
        for name in sorted(world.paused):
            await session.manage(f"queue.{name}", "resume")
    world.paused.clear()


STYLES = (operating, sending_to_what_comes_and_goes, pausing, pausing_others)
