"""Clients that send: one at a time, many in flight, in local and in distributed transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.client import AckMode
from broker.client.errors import BrokerRefused, ClientError, DuplicateId
from broker.model.xid import Xid
from tests.broker.history.record import Outcome, Return
from tests.broker.history.world import is_unknown

if TYPE_CHECKING:
    import asyncio

    from broker.client.aio.producer import AsyncProducer
    from broker.client.aio.session import AsyncSession
    from tests.broker.history.record import Message, Unit
    from tests.broker.history.world import World

IN_FLIGHT = 32


class Sender:
    """A producer whose messages have numbers, in the order in which they are sent."""

    def __init__(self, world: World, session: AsyncSession, address: str) -> None:
        self._world = world
        self._producer: AsyncProducer = session.producer(address)
        self._address = address
        self._name = world.name("p")
        self._number = 0

    def new(self, unit: Unit, message: Message | None = None) -> Message:
        """A message, noted as sent by this one."""
        message = message or self._world.new_message(self._address)
        self._number += 1
        self._world.counts["sends"] += 1
        self._world.history.send(unit, message, self._name, self._number)
        return message

    async def send(self, message: Message) -> None:
        await self._producer.send(message.body, **headers(message))

    async def post(self, message: Message) -> asyncio.Future[object]:
        return await self._producer.post(message.body, **headers(message))


def headers(message: Message) -> dict[str, object]:
    has_id = message.has_duplicate_id
    return {"group_id": message.group, "duplicate_id": message.key if has_id else None}


async def send_again(world: World, session: AsyncSession, unit_of: Message) -> None:
    """Send a message without an answer once more."""
    unit = world.history.unit()
    sender = Sender(world, session, unit_of.address)
    sender.new(unit, unit_of)
    world.history.tried(unit)
    try:
        await sender.send(unit_of)
    except DuplicateId:
        # The broker says that it has one: then it must have it.
        world.history.undone(unit)
        world.history.done(unit_of.sends[0].unit)
        return
    world.history.done(unit)


async def one_at_a_time(world: World, address: str) -> None:
    history = world.history
    async with world.client() as client, await client.session() as session:
        while world.again:
            await send_again(world, session, world.again.pop())
        sender = Sender(world, session, address)
        for _ in range(world.seeded.randrange(1, 200)):
            await world.wait_for_room()
            if world.is_over:
                return
            unit = history.unit()
            message = sender.new(unit)
            try:
                await world.count(unit, lambda message=message: sender.send(message))
            finally:
                if unit.outcome is Outcome.TRIED and world.chance(0.5):
                    world.again.append(message)
            if message.has_duplicate_id and world.chance(0.1):
                await send_again(world, session, message)


async def many_in_flight(world: World, address: str) -> None:
    history = world.history
    async with world.client() as client, await client.session() as session:
        sender = Sender(world, session, address)
        flying: list[tuple[Unit, asyncio.Future[object]]] = []
        for _ in range(world.seeded.randrange(1, 1000)):
            await world.wait_for_room()
            if world.is_over:
                break
            unit = history.unit()
            message = sender.new(unit)
            history.tried(unit)
            history.count(unit)
            try:
                flying.append((unit, await sender.post(message)))
            except ClientError:
                break
            if len(flying) == IN_FLIGHT:
                await settle(world, *flying.pop(0))
        for one in flying:
            await settle(world, *one)


async def settle(world: World, unit: Unit, future: asyncio.Future[object]) -> None:
    """Wait for an answer; the next one is worth asking for even if this one is lost."""
    try:
        await future
    except BrokerRefused as refusal:
        world.refused(refusal)
        if not is_unknown(refusal):
            world.history.undone(unit)
    except ClientError:
        world.interrupted(unit)
    else:
        world.history.done(unit)


async def in_transactions(world: World, address: str) -> None:
    history = world.history
    async with world.client() as client, await client.session(AckMode.TRANSACTED) as session:
        sender = Sender(world, session, address)
        for _ in range(world.seeded.randrange(1, 50)):
            await world.wait_for_room()
            if world.is_over:
                return
            unit = history.unit()
            for _ in range(world.seeded.randrange(1, 8)):
                await sender.send(sender.new(unit))
            world.counts["transactions"] += 1
            if world.chance(0.05):
                world.lose(client, unit)
                return
            if world.chance(0.2):
                history.undone(unit, Return.ROLLBACK)
                await session.rollback()
            else:
                await world.count(unit, session.commit)


async def in_distributed_transactions(world: World, address: str) -> None:
    async with world.client() as client, await client.session(AckMode.XA) as session:
        sender = Sender(world, session, address)
        for _ in range(world.seeded.randrange(1, 30)):
            await world.wait_for_room()
            if world.is_over:
                return
            unit = world.history.unit()
            xid = new_xid(world)
            await session.xa_start(xid)
            for _ in range(world.seeded.randrange(1, 8)):
                await sender.send(sender.new(unit))
            await session.xa_end(xid)
            await end_distributed(world, session, xid, unit)


def new_xid(world: World) -> Xid:
    return Xid(4, b"history", world.name("x").encode())


async def end_distributed(world: World, session: AsyncSession, xid: Xid, unit: Unit) -> None:
    """One of the ways that there are; or leave it prepared."""
    history = world.history
    world.counts["transactions"] += 1
    way = world.seeded.choice(("one phase", "rollback", "commit", "commit", "undo", "leave"))
    if way == "one phase":
        await world.count(unit, lambda: session.xa_commit(xid, one_phase=True))
        return
    if way == "rollback":
        history.undone(unit, Return.ROLLBACK)
        await session.xa_rollback(xid)
        return
    world.undecided[xid] = unit
    await session.xa_prepare(xid)
    history.held(unit)
    if way == "commit":
        await world.count(unit, lambda: session.xa_commit(xid))
        if unit.outcome is not Outcome.TRIED:
            del world.undecided[xid]
    elif way == "undo":
        history.freed(unit)
        await session.xa_rollback(xid)
        history.undone(unit, Return.ROLLBACK)
        del world.undecided[xid]


STYLES = (one_at_a_time, many_in_flight, in_transactions, in_distributed_transactions)
