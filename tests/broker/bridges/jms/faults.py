"""A bridge between two brokers in the test's event loop, cut at every frame in turn.

A fault point is: which connection, which direction, which frame, and what becomes of it: it is cut
before it (False), behind it (True), or everything stands still from it on for a while (seconds). At
each of them a batch is moved; then the bridge goes on until the source is empty.
"""

import asyncio
import contextlib
import uuid
from collections import Counter
from dataclasses import dataclass

from broker.bridges.jms.blocking.own_thread import call_in_own_thread
from broker.bridges.jms.blocking.providers import adapted
from broker.bridges.jms.connecting import Factories
from broker.bridges.jms.coordinator import Coordinator
from broker.bridges.jms.core.factory import CoreConnectionFactory
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.engine import Engine
from broker.bridges.jms.options import ExactlyOnce, JMSBridgeOptions, QualityOfService
from broker.bridges.jms.providers import Destination
from broker.client import AsyncClient
from broker.embedded import EmbeddedBroker
from broker.environment import Environment
from broker.storage.open import transaction_log_store
from tests.broker.bridges.jms.cutting import DOWN, UP, CuttingProxy

QUICK, WHOLE = 8, 36  # Messages of a run; two batches.
WAIT_S = 20
# How long a side that answers late takes.
LATE_S = 0.1
QUEUE = "q"

WAYS = {
    "AT_MOST_ONCE": (QualityOfService.AT_MOST_ONCE, ExactlyOnce.AUTO),
    "DUPLICATES_OK": (QualityOfService.DUPLICATES_OK, ExactlyOnce.AUTO),
    "ONCE_AND_ONLY_ONCE by duplicate ids": (
        QualityOfService.ONCE_AND_ONLY_ONCE,
        ExactlyOnce.DUPLICATE_IDS,
    ),
    "ONCE_AND_ONLY_ONCE by two phases": (
        QualityOfService.ONCE_AND_ONLY_ONCE,
        ExactlyOnce.TWO_PHASE,
    ),
}
MAY_LOSE = {"AT_MOST_ONCE"}
MAY_DOUBLE = {"DUPLICATES_OK"}


@dataclass
class Outcome:
    """What a run at one fault point came to."""

    point: tuple
    lost: list
    doubled: list
    has_cut: bool

    def is_wrong(self, way):
        return (self.lost and way not in MAY_LOSE) or (self.doubled and way not in MAY_DOUBLE)


class World:
    """Two brokers, a proxy before each, and a bridge that is started for each run.

    Args:
        way: of WAYS.
        folder: for the log of two-phase commits.
        size: messages of a run.
        given: by side, a broker that runs already: its `uri`, USER and PASSWORD. The others are
            ours, in this process.
    """

    def __init__(self, way, folder, size=QUICK, given=None):
        self.given = given or {}
        self.queue = f"{QUEUE}.{uuid.uuid4()}" if given else QUEUE
        self.size = size
        self.quality, self.exactly_once = WAYS[way]
        self.folder = folder
        self.run_count = 0

    @contextlib.asynccontextmanager
    async def opened(self):
        async with contextlib.AsyncExitStack() as stack:
            self.proxies, self.users, self.sessions = {}, {}, {}
            for side in ("source", "target"):
                if (broker := self.given.get(side)) is None:
                    broker = await stack.enter_async_context(EmbeddedBroker())
                    port, user = broker.port, {}
                else:
                    port = int(broker.uri.rpartition(":")[2])
                    user = {"user": broker.USER, "password": broker.PASSWORD}
                self.users[side] = user
                self.proxies[side] = await stack.enter_async_context(CuttingProxy(port))
                client = await stack.enter_async_context(
                    AsyncClient(f"tcp://127.0.0.1:{port}", **user)
                )
                self.sessions[side] = await client.session()
                await self.sessions[side].create_queue(self.queue)
            self.coordinator = None
            if self.exactly_once is ExactlyOnce.TWO_PHASE:
                decisions = DecisionLog(transaction_log_store(self.folder), Environment().ids)
                decisions.open()
                stack.callback(decisions.close)
                self.coordinator = Coordinator(decisions, "faults", Environment().clock)
            yield self

    def engine(self):
        def factory(side):
            made = CoreConnectionFactory(f"tcp://127.0.0.1:{self.proxies[side].port}")
            return lambda: made

        users = {
            f"{side}_{'user_name' if name == 'user' else name}": value
            for side, user in self.users.items()
            for name, value in user.items()
        }
        options = JMSBridgeOptions(
            **users,
            name="faults",
            quality_of_service=self.quality,
            exactly_once=self.exactly_once,
            max_batch_size=self.size // 2,
            max_batch_time=10,
            failure_retry_interval=1,
            # Both batches on their way, with every quality.
            max_in_flight=self.size,
        )
        return Engine(
            options,
            Factories(
                source=factory("source"),
                target=factory("target"),
                source_destination=lambda: Destination.queue(self.queue),
                target_destination=lambda: Destination.queue(self.queue),
            ),
            clock=Environment().clock,
            call=call_in_own_thread,
            adapt=adapted,
            receive_s=0.01,
            transactions=self.coordinator,
        )

    async def left(self, side):
        return (await self.sessions[side].query_queue(self.queue)).message_count

    async def run(self, point):
        """Move a batch with one fault; give what became of it."""
        side, direction, number, kind = point
        self.run_count += 1
        sent = [f"{self.run_count}-{index}" for index in range(self.size)]
        producer = self.sessions["source"].producer(self.queue)
        for text in sent:
            await producer.send(text)
        late_s = 0.0 if isinstance(kind, bool) else kind
        if late_s:
            self.proxies[side].late_at(direction, number, late_s)
        else:
            self.proxies[side].cut_at(direction, number, is_passed=kind)
        engine = self.engine()
        engine.start()
        async with asyncio.timeout(WAIT_S + 2 * late_s):
            while await self.left("source") or engine.counters.in_doubt:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            await engine.stop()
        counted = Counter(await self.taken())
        return Outcome(
            point,
            lost=[text for text in sent if not counted[text]],
            doubled=[text for text in sent if counted[text] > 1],
            has_cut=self.proxies[side].has_cut,
        )

    async def taken(self):
        """Take everything that is in the target's queue."""
        found = []
        async with await self.sessions["target"].consumer(self.queue) as consumer:
            while (one := await consumer.receive_now()) is not None:
                found.append(one.content)
        return found

    async def frames(self):
        """Frames of a run without a fault, by connection and direction."""
        counts = {}
        for side in ("source", "target"):
            outcome = await self.run((side, UP, 10**9, False))
            assert not outcome.lost
            assert not outcome.doubled
            for direction in (UP, DOWN):
                counts[side, direction] = self.proxies[side].counts[direction]
        return counts


async def every_point(
    way,
    folder,
    step=1,
    size=QUICK,
    until=lambda outcome: False,
    kinds=(False, True),
    given=None,
):
    """Run at every `step`-th fault point, up to an outcome if it comes; give the outcomes."""
    outcomes = []
    async with World(way, folder, size, given).opened() as world:
        points = [
            (side, direction, number, kind)
            for (side, direction), count in (await world.frames()).items()
            for number in range(1, count + 1)
            for kind in kinds
        ]
        for point in points[::step]:
            outcomes.append(await world.run(point))
            if until(outcomes[-1]):
                break
    return outcomes
