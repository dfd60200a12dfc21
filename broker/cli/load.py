"""Load generator for `broker perf`: producers and consumers in one event loop, with measurements.

Latency of a send is from the moment it was due, with a rate, or began to the broker's confirmation;
of a transaction's messages to the commit's. Transfer time is from a message's property `time`,
microseconds since 1970, to its receipt: of two machines it is as right as their clocks are alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker.cli.latencies import Latencies
from broker.client import AckMode, make_message
from broker.client.errors import QueueExists
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cli.connect import Destination
    from broker.client.aio import AsyncClient, AsyncProducer, AsyncSession
    from broker.model.message import Message
    from broker.protocols.core.packet import Packet

__all__ = ["ConsumerLoad", "Load", "Measured", "ProducerLoad"]

TIME_PROPERTY: Final = "time"
# How long a consumer waits before it looks whether all is over.
IDLE_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class ProducerLoad:
    """What producers do.

    Attributes:
        count: of producers, for each destination.
        message_size: bytes of a body.
        durable: sent as durable messages.
        rate: messages a second of all together; 0 as fast as it goes.
        max_pending: of a producer, messages that wait for their confirmation.
        commit_interval: messages of a transaction; 0 is none.
        time_to_live_ms: 0 for ever.
        group_id: of all messages.
    """

    count: int = 1
    message_size: int = 1024
    durable: bool = False
    rate: float = 0
    max_pending: int = 1
    commit_interval: int = 0
    time_to_live_ms: int = 0
    group_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerLoad:
    """What consumers do.

    Attributes:
        count: of consumers, for each destination.
        commit_interval: messages of a transaction; 0 is none.
    """

    count: int = 1
    commit_interval: int = 0


@dataclass(slots=True)
class Measured:
    """What was counted in one interval, or in all.

    Attributes:
        sent: messages handed to the broker.
        completed: those that it confirmed.
        received: by consumers.
        sending: from due to confirmed.
        transfer: from sent to received.
        elapsed_s: how long it took.
    """

    sent: int = 0
    completed: int = 0
    received: int = 0
    sending: Latencies = field(default_factory=Latencies)
    transfer: Latencies = field(default_factory=Latencies)
    elapsed_s: float = 0.0

    def merge(self, other: Measured) -> None:
        """Count what another interval had too."""
        self.sent += other.sent
        self.completed += other.completed
        self.received += other.received
        self.sending.merge(other.sending)
        self.transfer.merge(other.transfer)
        self.elapsed_s += other.elapsed_s


class Load:
    """One run. Belongs to one event loop.

    Args:
        destinations: where messages go.
        producers: None for none.
        consumers: None for none.
        message_count: of all together, after which it ends; 0 for no limit.
    """

    def __init__(
        self,
        destinations: list[Destination],
        producers: ProducerLoad | None,
        consumers: ConsumerLoad | None,
        message_count: int = 0,
    ) -> None:
        self._destinations = destinations
        self._producers = producers
        self._consumers = consumers
        self._message_count = message_count
        self._begun = 0
        # What consumers will have got when all is through, as far as it was sent.
        self._expected = message_count if producers is None else 0
        self._are_all_sent = producers is None
        self._received = 0
        self._is_stopped = False
        self._interval = Measured()
        self._interval_began_s = time.perf_counter()

    def stop(self) -> None:
        """End soon: wait for confirmations of what was sent, leave what was not received."""
        self._is_stopped = True

    def take_interval(self) -> Measured:
        """Give what was measured since the last call."""
        now_s = time.perf_counter()
        found, self._interval = self._interval, Measured()
        found.elapsed_s, self._interval_began_s = now_s - self._interval_began_s, now_s
        return found

    async def run(self, producing: AsyncClient, consuming: AsyncClient) -> None:
        """Run until it is stopped or all messages are through.

        Raises:
            ClientError: the broker refuses, or is lost.
        """
        ready: list[asyncio.Future[None]] = []
        async with asyncio.TaskGroup() as consumers:
            for destination in self._destinations if self._consumers is not None else ():
                for _ in range(self._consumers.count if self._consumers is not None else 0):
                    is_ready = asyncio.get_running_loop().create_future()
                    ready.append(is_ready)
                    consumers.create_task(self._consume(consuming, destination, is_ready))
            # A topic gives a consumer what comes after it is there.
            if ready:
                await asyncio.wait(ready, return_when=asyncio.FIRST_EXCEPTION)
            self._interval_began_s = time.perf_counter()
            async with asyncio.TaskGroup() as producers:
                for destination in self._destinations if self._producers is not None else ():
                    for _ in range(self._producers.count if self._producers is not None else 0):
                        producers.create_task(self._produce(producing, destination))
            self._are_all_sent = True

    # Producers.

    async def _produce(self, client: AsyncClient, destination: Destination) -> None:
        load = self._producers
        assert load is not None, "the caller looked"
        mode = AckMode.TRANSACTED if load.commit_interval else AckMode.AUTO
        connection = await client.connect()
        session = await connection.session(mode)
        async with session, session.producer(destination.name) as producer:
            send = self._send_in_transactions if load.commit_interval else self._send_each
            await send(session, producer, destination, load)
        await connection.close()

    def _may_begin(self) -> bool:
        if self._is_stopped or (self._message_count and self._begun >= self._message_count):
            return False
        self._begun += 1
        return True

    async def _send_each(
        self,
        session: AsyncSession,
        producer: AsyncProducer,
        destination: Destination,
        load: ProducerLoad,
    ) -> None:
        del session
        pending = asyncio.Semaphore(load.max_pending)
        confirmations: set[asyncio.Future[Packet]] = set()
        limiter = _RateLimiter(load, len(self._destinations))
        failed: list[BaseException] = []

        def confirm(due_ns: int) -> Callable[[asyncio.Future[Packet]], None]:
            def confirmed(answer: asyncio.Future[Packet]) -> None:
                confirmations.discard(answer)
                pending.release()
                if answer.cancelled():
                    return
                error = answer.exception()
                if error is not None:
                    failed.append(error)
                    return
                self._interval.completed += 1
                self._interval.sending.add(time.perf_counter_ns() - due_ns)

            return confirmed

        while self._may_begin():
            due_ns = await limiter.next()
            await pending.acquire()
            if failed:
                break
            answer = await producer.post(self._made(load, destination))
            self._sent(destination)
            confirmations.add(answer)
            answer.add_done_callback(confirm(due_ns))
        if confirmations:
            await asyncio.wait(confirmations)
        if failed:
            raise failed[0]

    async def _send_in_transactions(
        self,
        session: AsyncSession,
        producer: AsyncProducer,
        destination: Destination,
        load: ProducerLoad,
    ) -> None:
        limiter = _RateLimiter(load, len(self._destinations))
        due: list[int] = []
        while True:
            is_more = self._may_begin()
            if is_more:
                due.append(await limiter.next())
                await producer.send(self._made(load, destination))
                self._sent(destination)
            if due and (not is_more or len(due) >= load.commit_interval):
                await session.commit()
                now_ns = time.perf_counter_ns()
                self._interval.completed += len(due)
                for due_ns in due:
                    self._interval.sending.add(now_ns - due_ns)
                due.clear()
            if not is_more:
                return

    def _sent(self, destination: Destination) -> None:
        self._interval.sent += 1
        if self._consumers is not None:
            self._expected += self._consumers.count if destination.is_topic else 1

    @staticmethod
    def _made(load: ProducerLoad, destination: Destination) -> Message:
        message = make_message(
            bytes(load.message_size),
            durable=load.durable,
            time_to_live_ms=load.time_to_live_ms,
            group_id=load.group_id,
        )
        message.routing_type = (
            RoutingType.MULTICAST if destination.is_topic else RoutingType.ANYCAST
        )
        message.set(TIME_PROPERTY, PropertyType.LONG, time.time_ns() // 1000)
        return message

    # Consumers.

    async def _consume(
        self, client: AsyncClient, destination: Destination, is_ready: asyncio.Future[None]
    ) -> None:
        load = self._consumers
        assert load is not None, "the caller looked"
        mode = AckMode.TRANSACTED if load.commit_interval else AckMode.AUTO
        connection = await client.connect()
        session = await connection.session(mode)
        async with session:
            queue = await _subscribed(session, destination)
            async with await session.consumer(queue) as consumer:
                is_ready.set_result(None)
                uncommitted = 0
                while not self._is_over():
                    received = await consumer.receive(IDLE_S)
                    if received is not None:
                        self._took(received.message.get(TIME_PROPERTY))
                        uncommitted += 1
                    if (
                        load.commit_interval
                        and uncommitted
                        and (received is None or uncommitted >= load.commit_interval)
                    ):
                        await session.commit()
                        uncommitted = 0
                if load.commit_interval and uncommitted:
                    await session.commit()
        await connection.close()

    def _is_over(self) -> bool:
        is_limited = self._message_count > 0 and self._are_all_sent
        return self._is_stopped or (is_limited and self._received >= self._expected)

    def _took(self, sent_us: object) -> None:
        self._received += 1
        self._interval.received += 1
        if isinstance(sent_us, int):
            self._interval.transfer.add(time.time_ns() - sent_us * 1000)


class _RateLimiter:
    """When the next message of one producer is due."""

    def __init__(self, load: ProducerLoad, destination_count: int) -> None:
        producers = load.count * destination_count
        self._interval_ns = int(1e9 * producers / load.rate) if load.rate else 0
        self._due_ns = time.perf_counter_ns()

    async def next(self) -> int:
        """Wait until it is due; when that was, in nanoseconds of time.perf_counter_ns."""
        now_ns = time.perf_counter_ns()
        if not self._interval_ns:
            return now_ns
        due_ns = self._due_ns
        self._due_ns += self._interval_ns
        if due_ns > now_ns:
            await asyncio.sleep((due_ns - now_ns) / 1e9)
        return due_ns


async def _subscribed(session: AsyncSession, destination: Destination) -> str:
    """Give the queue to consume from: the destination's own, or a new subscription."""
    if not destination.is_topic:
        with contextlib.suppress(QueueExists):
            await session.create_queue(destination.name, auto_created=True)
        return destination.name
    queue = f"{destination.name}.{time.time_ns()}"
    await session.create_queue(
        queue,
        destination.name,
        routing_type=RoutingType.MULTICAST,
        durable=False,
        temporary=True,
    )
    return queue
