"""Kill -9 while clients of a protocol send and receive; the history checker says whether it may be.

A protocol's test has what its clients do: `work` gives a task for each of them, which ends when the
broker is gone, `drain` takes all that is left in a queue.
"""

import asyncio
import itertools
import random

from tests.broker.history.checker import problems
from tests.broker.history.record import History, Outcome
from tests.broker.serve import BrokerProcess

QUEUES = ("plain", "single")
"""The second one has one consumer at a time."""
IN_FLIGHT = 20
LARGE = 150_000


class Clients:
    """What all clients of all runs of a broker share.

    Args:
        seed: of what is left to chance.

    Attributes:
        run: number of the broker's run.
        port: of the broker.
    """

    def __init__(self, seed=22):
        self.seeded = random.Random(seed)
        self.history = History()
        self.names = itertools.count()
        self.run = 0
        self.port = 0

    def new_producer(self):
        return f"p{next(self.names)}"

    def new_message(self, queue, producer, number, unit):
        """A message that is about to be sent, and noted."""
        size = self.seeded.choice((0, 30, 300, 3000))
        if self.seeded.random() < 0.02:
            size = LARGE
        message = self.history.message(f"m{next(self.names)}", size, (queue,))
        self.history.send(unit, message, producer, number)
        return message

    def give_up(self, *units):
        """What was not asked for when the broker went does not count."""
        for unit in units:
            if unit is not None and unit.outcome is Outcome.OPEN:
                self.history.undone(unit)


async def first_of(*works):
    """Wait until one of them has ended, and end the others; what it raised is raised."""
    tasks = [asyncio.ensure_future(one) for one in works]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for one in done:
        one.result()


async def kill_and_check(
    clients, folder, rounds, max_messages, work, drain, *, least_s=0.3, is_working=None
):
    """Let clients work until the broker is killed, so often; then drain its queues and check.

    Args:
        clients: that work.
        folder: of the broker.
        rounds: how often it is killed.
        max_messages: of an address, in memory; -1 is no limit.
        work: gives the tasks of one run.
        drain: awaited with each queue at the end.
        least_s: seconds that a run takes at least.
        is_working: awaited, unless the tasks end, before these seconds begin.
    """
    for clients.run in range(rounds):
        broker = await asyncio.to_thread(BrokerProcess, folder, max_messages=max_messages)
        clients.port = broker.port
        running = work()
        if is_working is not None:
            begun = asyncio.ensure_future(is_working())
            await asyncio.wait([begun, *running], return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
        await asyncio.sleep(clients.seeded.uniform(least_s, 2))
        await asyncio.to_thread(broker.kill)
        for one in running:
            await one

    clients.run += 1
    broker = await asyncio.to_thread(BrokerProcess, folder, max_messages=max_messages)
    clients.port = broker.port
    for queue in QUEUES:
        await drain(queue)
    assert await asyncio.to_thread(broker.stop) == 0

    done = [unit for unit in clients.history.units if unit.outcome is Outcome.DONE]
    assert any(unit.sends for unit in done)
    assert any(unit.takes for unit in done)
    wrong = problems(clients.history, frozenset({"single"}))
    # No assertion of pytest's: this is no test module.
    assert wrong == [], "\n".join(map(str, wrong[:10]))
