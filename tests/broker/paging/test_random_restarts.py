"""Random work on a paged address over restarts and crashes, against a ledger kept outside."""

import asyncio
import random

import pytest

from broker.model.routing_type import RoutingType
from tests.broker.bench import message
from tests.broker.paging.runs import BrokerRun, copy_of, durable

QUEUES = ("a", "b")


class Work:
    """What was sent, and what each queue has acknowledged, as far as it was confirmed."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.sent = set()
        self.acknowledged = {queue: set() for queue in QUEUES}
        self._next = 0

    def left(self, queue):
        return self.sent - self.acknowledged[queue]

    def numbers(self, most):
        first = self._next
        self._next += self.chance.randint(1, most)
        return range(first, self._next)

    async def send(self, run):
        numbers = self.numbers(60)
        await run.send_numbers(numbers, "t")
        self.sent.update(numbers)

    async def send_in_a_transaction(self, run):
        numbers = self.numbers(30)
        session = run.session(auto_commit_sends=False)
        for number in numbers:
            session.send(message(str(number), "t"), lambda error: None)
        if self.chance.random() < 0.6:
            await durable(session.commit)
            self.sent.update(numbers)
        else:
            await durable(session.rollback)
        session.close(has_failed=False)

    async def take(self, run):
        """Some of what comes is acknowledged, in any order, alone or in a transaction."""
        queue = self.chance.choice(QUEUES)
        alone = self.chance.random() < 0.6
        session = run.session(auto_commit_acks=alone, auto_commit_sends=alone)
        sink = run.consume(queue, session)
        for _ in range(self.chance.randint(1, 6)):
            await asyncio.sleep(0.002)
        got = list(zip(sink.ids, map(int, sink.bodies), strict=True))
        numbers = {number for _, number in got}
        assert len(numbers) == len(got)
        assert numbers <= self.left(queue)
        share = self.chance.choice([0.3, 0.9, 1])
        picked = [one for one in got if self.chance.random() < share]
        self.chance.shuffle(picked)
        for message_id, _ in picked:
            session.acknowledge(0, message_id, lambda error: None, is_individual=True)
        if alone:
            await durable(session.context.after)
        elif self.chance.random() < 0.7:
            await durable(session.commit)
        else:
            await durable(session.rollback)
            picked = []
        self.acknowledged[queue].update(number for _, number in picked)
        session.close(has_failed=False)


async def live_through(base, seed):
    work = Work(seed)
    folder = base / "data"
    for turn in range(5):
        window = {
            "max_read_page_messages": work.chance.choice([3, 20, -1]),
            "max_read_page_bytes": work.chance.choice([2000, 1 << 20]),
        }
        async with BrokerRun(folder, {"page_size_bytes": 2048, **window}) as run:
            if turn == 0:
                for queue in QUEUES:
                    await run.queue(queue, address="t", routing_type=RoutingType.MULTICAST)
            for queue in QUEUES:
                assert run.queue_of(queue).message_count == len(work.left(queue))
            for _ in range(work.chance.randint(5, 25)):
                does = work.chance.choice([work.send, work.send_in_a_transaction, work.take])
                await does(run)
            if work.chance.random() < 0.5:
                await run.until(run.is_quiet)
                folder = copy_of(folder, base / f"crash{turn}")
    async with BrokerRun(folder, {"page_size_bytes": 2048}) as run:
        for queue in QUEUES:
            left = work.left(queue)
            assert set(await run.drain(len(left), queue)) == left
        await run.until(lambda: not run.pages("t"))
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_invented(tmp_path, effort):
    for seed in range(effort(200, least=3)):
        asyncio.run(live_through(tmp_path / str(seed), seed))
