"""Clients that receive: acknowledging together, one by one, and in transactions that also send."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from broker.client import AckMode
from tests.broker.history.producers import Sender, end_distributed, new_xid
from tests.broker.history.record import Return
from tests.broker.history.world import ORDERED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.received import AsyncReceived
    from broker.client.aio.session import AsyncSession
    from tests.broker.history.record import Unit
    from tests.broker.history.world import World

# Rounds of nothing while the broker says that there is something.
STUCK_ROUNDS = 200


@contextlib.asynccontextmanager
async def consumer_of(
    world: World, session: AsyncSession, queue: str
) -> AsyncIterator[AsyncConsumer]:
    """A consumer; the only one where the order shall be seen."""
    if queue in ORDERED:
        # The broker may not know yet that the last one has lost its connection.
        while (await session.query_queue(queue)).consumer_count:  # noqa: ASYNC110 -- the broker's
            await asyncio.sleep(0.02)
    async with await session.consumer(queue) as consumer:
        yield consumer


async def take(
    world: World, consumer: AsyncConsumer, queue: str, unit: Unit
) -> AsyncReceived | None:
    """The next message, noted; None where there is none for a while."""
    received = await consumer.receive(world.poll_s)
    if received is not None:
        world.took(unit, queue, received, await received.read())
    elif not unit.takes:
        # With some that are not acknowledged yet the broker may keep others in pages.
        world.waited(queue, consumer)
    return received


async def acknowledging(world: World, queue: str) -> None:
    """Some at a time, all up to the last; or one by one, in any order."""
    mode = world.seeded.choice((AckMode.CLIENT, AckMode.INDIVIDUAL))
    window = world.seeded.choice((0, 3000, 1024 * 1024))
    options = {"ack_batch_size": 0, "block_on_acknowledge": True, "consumer_window_size": window}
    history = world.history
    async with (
        world.client() as client,
        await client.session(mode, **options) as session,
        consumer_of(world, session, queue) as consumer,
    ):
        for _ in range(world.seeded.randrange(1, 100)):
            received: list[tuple[Unit, AsyncReceived]] = []
            unit = history.unit()
            for _ in range(world.seeded.randrange(1, 10)):
                if mode is AckMode.INDIVIDUAL and received:
                    unit = history.unit()
                found = await take(world, consumer, queue, unit)
                if world.is_over:
                    return
                if found is None:
                    break
                received.append((unit, found))
            if world.chance(0.03):
                world.lose(client, *(unit for unit, _ in received))
                return
            if world.chance(0.03):
                # They go back in peace; that is not counted as a delivery.
                for unit, _ in received:
                    history.undone(unit)
                return
            if mode is AckMode.INDIVIDUAL:
                world.seeded.shuffle(received)
            else:
                del received[:-1]
            for unit, one in received:
                await world.count(unit, one.acknowledge)


async def forwarding(world: World, queue: str) -> None:
    """Local transactions: what is taken is answered, both or neither."""
    history = world.history
    async with (
        world.client() as client,
        await client.session(AckMode.TRANSACTED) as session,
        consumer_of(world, session, queue) as consumer,
    ):
        sender = Sender(world, session, "out")
        for _ in range(world.seeded.randrange(1, 50)):
            unit = history.unit()
            await _take_and_send(world, consumer, queue, sender, unit)
            if world.is_over:
                return
            world.counts["transactions"] += 1
            if world.chance(0.03):
                world.lose(client, unit)
                return
            if world.chance(0.2):
                history.undone(unit, Return.ROLLBACK)
                await session.rollback()
            else:
                await world.count(unit, session.commit)


async def forwarding_in_distributed_transactions(world: World, queue: str) -> None:
    async with (
        world.client() as client,
        await client.session(AckMode.XA) as session,
        consumer_of(world, session, queue) as consumer,
    ):
        sender = Sender(world, session, "out")
        for _ in range(world.seeded.randrange(1, 30)):
            unit = world.history.unit()
            xid = new_xid(world)
            await session.xa_start(xid)
            await _take_and_send(world, consumer, queue, sender, unit)
            await session.xa_end(xid)
            await end_distributed(world, session, xid, unit)
            if world.is_over:
                return


async def _take_and_send(
    world: World, consumer: AsyncConsumer, queue: str, sender: Sender, unit: Unit
) -> None:
    for _ in range(world.seeded.randrange(1, 6)):
        if await take(world, consumer, queue, unit) is None:
            break
        if queue != "out" and world.chance(0.5):
            await sender.send(sender.new(unit))


STYLES = (acknowledging, acknowledging, forwarding, forwarding_in_distributed_transactions)


async def drain(world: World, session: AsyncSession) -> None:
    """Take and acknowledge all there is; `session` is one that the client acknowledges."""
    for queue in world.queues:
        if (await session.query_queue(queue)).message_count:
            async with await session.consumer(queue) as consumer:
                await _empty(world, session, consumer, queue)


async def _empty(world: World, session: AsyncSession, consumer: AsyncConsumer, queue: str) -> None:
    rounds = 0
    while count := (await session.query_queue(queue)).message_count:
        unit = world.history.unit()
        last = None
        for _ in range(min(count, 100)):
            received = await take(world, consumer, queue, unit)
            if received is None:
                break
            last = received
        if last is not None:
            rounds = 0
            await world.count(unit, last.acknowledge)
            continue
        rounds += 1
        if rounds == STUCK_ROUNDS:
            told = f"stranded: {count} stay in {queue}, not delivered"
            world.history.problems.append(told)
            return
