"""Kill -9 while messages come and go: what was confirmed is there, what was acknowledged is not."""

import contextlib
import random
import threading
import time

import pytest

from tests.broker.serve import BrokerProcess
from tests.broker.wire_client import WireClient

IN_FLIGHT = 64
# Acknowledged together; less than what a queue reads ahead of its pages.
BATCH = 8


class Ledger:
    """What was tried, confirmed, delivered and acknowledged, kept outside of the broker."""

    def __init__(self):
        self.tried = set()
        self.confirmed = set()
        # Acknowledged, and the broker said that this is durable.
        self.done = set()
        # Acknowledged, with no answer: durable or not.
        self.perhaps_done = set()
        self.doubled = []


def produce(port, round_number, ledger):
    """Send until the broker is gone."""
    with contextlib.suppress(OSError), WireClient(port, f"producer-{round_number}") as client:
        flying = {}
        for number in range(1, 1_000_000):
            text = f"{round_number}-{number}"
            flying[number] = text
            ledger.tried.add(text)
            client.send("q", text, number)
            if len(flying) == IN_FLIGHT:
                ledger.confirmed.add(flying.pop(client.confirmed()))


def consume(port, round_number, ledger):
    """Take until the broker is gone, each second batch acknowledged."""
    with contextlib.suppress(OSError), WireClient(port, f"consumer-{round_number}") as client:
        client.consume("q")
        while True:
            batch = [client.receive() for _ in range(BATCH)]
            ledger.doubled += [text for text, _, _ in batch if text in ledger.done]
            texts = {text for text, _, _ in batch}
            ledger.perhaps_done |= texts
            client.acknowledge(batch[-1][1])
            ledger.perhaps_done -= texts
            ledger.done |= texts


def drain(port, ledger):
    """Everything that is left."""
    found = []
    client = WireClient(port, "last")
    client.queue("q")
    client.consume("q")
    while count := client.count("q"):
        batch = [client.receive() for _ in range(min(count, BATCH))]
        texts = [text for text, _, _ in batch]
        found += texts
        ledger.doubled += [text for text in texts if text in ledger.done]
        client.acknowledge(batch[-1][1])
    client.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("max_messages", [-1, 50], ids=["in memory", "paging"])
def test_kill_9_loses_and_doubles_nothing(tmp_path, effort, max_messages):
    ledger = Ledger()
    seeded = random.Random(4)
    for round_number in range(effort(100, least=3)):
        broker = BrokerProcess(tmp_path, max_messages=max_messages)
        with WireClient(broker.port, f"maker-{round_number}") as client:
            client.queue("q")
        workers = [
            threading.Thread(target=work, args=(broker.port, round_number, ledger))
            for work in (produce, consume)
        ]
        for worker in workers:
            worker.start()
        time.sleep(seeded.uniform(0.1, 2))
        broker.kill()
        for worker in workers:
            worker.join(60)

    broker = BrokerProcess(tmp_path, max_messages=max_messages)
    left = drain(broker.port, ledger)
    status = broker.stop()

    assert status == 0
    assert ledger.confirmed, "nothing was ever confirmed"
    assert ledger.done, "nothing was ever acknowledged"
    lost = ledger.confirmed - ledger.done - ledger.perhaps_done - set(left)
    assert not lost
    assert not set(left) - ledger.tried
    assert len(left) == len(set(left))
    assert not ledger.doubled
