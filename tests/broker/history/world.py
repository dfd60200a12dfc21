"""What all clients of one random run share: where the broker is, what they did, what is left to do.

One seed decides what is tried; when a kill comes in between, the clock does.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING

from broker.client.aio import AsyncClient
from broker.client.errors import BrokerRefused, ClientError, QueueExists, XaRefused
from broker.errors import ErrorCode
from broker.model.routing_type import RoutingType
from broker.transactions.xa import XaCode
from tests.broker.history.record import History, Outcome, Return

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Awaitable, Callable

    from broker.client.aio.session import AsyncSession
    from broker.model.xid import Xid
    from tests.broker.history.record import Message, Take, Unit

# Address, to the queues that get what is sent there.
ADDRESSES = {
    "plain": ("plain",),
    "single": ("single",),
    "grouped": ("grouped",),
    "paged": ("paged",),
    "fan": ("fan.a", "fan.b"),
    "out": ("out",),
}
QUEUES = tuple(itertools.chain.from_iterable(ADDRESSES.values()))
# They have one consumer at a time, so the order of deliveries is that of the queue.
ORDERED = frozenset({"single", "paged", "fan.a", "fan.b"})
GROUPS = ("red", "green", "blue")
# Producers wait while so many messages do.
WAITING_MAX = 1500
# A machine that stalls for a minute is not a fault of the broker.
CALL_TIMEOUT_MS = 240_000
LARGE = 150_000


def is_unknown(refusal: BrokerRefused) -> bool:
    """Whether the broker says that it does not know: its store has failed."""
    if isinstance(refusal, XaRefused):
        return refusal.code in (XaCode.RESOURCE_MANAGER_FAILED, XaCode.RESOURCE_MANAGER_ERROR)
    return refusal.code == ErrorCode.IO_ERROR


class World:
    """See the module's text.

    Args:
        seeded: where every choice comes from.
        has_large: large messages are sent too.
        addresses: each with the queues that get what is sent there.

    Attributes:
        broker_run: number of the broker's run.
        is_over: the broker is about to end, or has: no client begins anything.
        may_refuse: its store is away, or it is about to end, while clients work on.
        undecided: XA transactions that were, or may have been, prepared.
        again: messages whose send got no answer, to be sent once more.
        refusals: what the broker refused, by its words.
        poll_s: a consumer looks up so often, when nothing comes.
    """

    poll_s = 0.2

    def __init__(
        self,
        seeded: random.Random,
        *,
        has_large: bool,
        addresses: dict[str, tuple[str, ...]] = ADDRESSES,
    ) -> None:
        self.seeded = seeded
        self.addresses = addresses
        self.queues = tuple(itertools.chain.from_iterable(addresses.values()))
        self.has_large = has_large
        self.broker_run = 0
        self.is_over = False
        self.may_refuse = False
        self.uri = self.user = self.password = ""
        self._names = itertools.count()
        self.occupied = {queue: asyncio.Lock() for queue in ORDERED}
        self.counts = dict.fromkeys(("sends", "deliveries", "transactions", "lost_connections"), 0)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything: the broker has, too."""
        self.history = History()
        # So many units are known to have ended.
        self._ended = 0
        self.undecided: dict[Xid, Unit] = {}
        self.again: list[Message] = []

    def chance(self, share: float) -> bool:
        return self.seeded.random() < share

    def name(self, what: str) -> str:
        return f"{what}-{self.broker_run}.{next(self._names)}"

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncClient]:
        made = AsyncClient(
            self.uri, user=self.user, password=self.password, call_timeout=CALL_TIMEOUT_MS
        )
        try:
            yield made
        finally:
            await made.close()

    def new_message(self, address: str) -> Message:
        """A message that is not sent yet."""
        size = self.seeded.choice((0, 20, 200, 2000))
        if self.has_large and self.chance(0.01):
            size = LARGE
        return self.history.message(
            self.name("m"),
            size,
            self.addresses[address],
            group=self.seeded.choice(GROUPS) if address == "grouped" else None,
            has_duplicate_id=self.chance(0.3),
            address=address,
        )

    async def count(self, unit: Unit, call: Callable[[], Awaitable[object]]) -> bool:
        """Ask for what makes a unit count; False where the broker refused it, or does not know."""
        self.history.tried(unit)
        self.history.count(unit)
        try:
            await call()
        except BrokerRefused as refusal:
            self.refused(refusal)
            if not is_unknown(refusal):
                self.history.undone(unit, Return.ROLLBACK)
            return False
        self.history.done(unit)
        return True

    def refused(self, refusal: BrokerRefused) -> None:
        """A broker that is not about to end has no reason to."""
        if not (self.is_over or self.may_refuse):
            self.history.problems.append(f"refused: {type(refusal).__name__}: {refusal}")

    def interrupted(self, unit: Unit) -> None:
        """Note that the answer to a unit was lost with its connection."""

    def lose(self, client: AsyncClient, *units: Unit) -> None:
        """Reset the connection, with units that were not asked for yet."""
        for unit in units:
            self.history.undone(unit, Return.LOSS)
        self.counts["lost_connections"] += 1
        client.connections[0].fail(ClientError("lost on purpose"))

    async def keep(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again and again, whatever becomes of the connection, until the broker ends."""
        while not self.is_over:
            try:
                await work()
            except BrokerRefused as refusal:
                self.refused(refusal)
            except (ClientError, OSError):
                pass
            await asyncio.sleep(0.01)

    async def wait_for_room(self) -> None:
        while self.history.waiting > WAITING_MAX and not self.is_over:  # noqa: ASYNC110 -- many may
            await asyncio.sleep(0.02)

    def end_run(self) -> None:
        """What was not asked for does not count; what was tried once may be tried again."""
        undecided = set(self.undecided.values())
        for unit in itertools.islice(self.history.units, self._ended, None):
            if unit.outcome is Outcome.OPEN and unit not in undecided:
                self.history.undone(unit)
        self._ended = len(self.history.units)

    async def make_queues(self) -> None:
        async with self.client() as client, await client.session() as session:
            for address, queues in self.addresses.items():
                kind = RoutingType.ANYCAST if queues == (address,) else RoutingType.MULTICAST
                # Where the broker ended meanwhile, some are there.
                if not (await session.query_address(address)).exists:
                    await session.create_address(address, kind)
                for queue in queues:
                    with contextlib.suppress(QueueExists):
                        await session.create_queue(queue, address, routing_type=kind)

    async def decide(self, session: AsyncSession) -> None:
        """Commit or roll back all that is prepared; after it nothing is undecided."""
        history = self.history
        found = set(await session.xa_recover())
        for xid in found - set(self.undecided):
            history.problems.append(f"unexpected: {xid} is prepared, and was decided or never was")
            await session.xa_rollback(xid)
        for xid, unit in self.undecided.items():
            if xid in found:
                await self._decide_one(session, xid, unit)
            elif unit.outcome is Outcome.TRIED:
                history.done(unit)
            elif unit.held_at is None or unit.freed_at is not None:
                history.undone(unit)
            elif not unit.takes and not any(send.message.queues for send in unit.sends):
                # One without work is not recorded, so a restart has no memory of it. What is sent
                # to a topic may have reached no queue.
                history.undone(unit)
            else:
                history.problems.append(f"lost: {xid} was prepared, and is not any more")
                history.undone(unit)
        self.undecided.clear()

    async def _decide_one(self, session: AsyncSession, xid: Xid, unit: Unit) -> None:
        history = self.history
        if unit.held_at is None:
            history.held(unit)
        unit.is_late = True
        if self.chance(0.5):
            history.tried(unit)
            await session.xa_commit(xid)
            history.done(unit)
        else:
            history.freed(unit)
            await session.xa_rollback(xid)
            history.undone(unit)

    def waited(self, queue: str, consumer: object) -> None:
        """Note that a consumer got nothing for a while: no rule says how long that may be."""

    def took(self, unit: Unit, queue: str, received: object, body: bytes) -> Take:
        """Note a delivery."""
        self.counts["deliveries"] += 1
        return self.history.take(
            unit,
            queue,
            received.message_id,  # type: ignore[attr-defined] # of AsyncReceived
            received.delivery_count,  # type: ignore[attr-defined]
            self.broker_run,
            body,
        )
