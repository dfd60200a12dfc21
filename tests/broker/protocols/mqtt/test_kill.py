"""Kill -9 while MQTT clients publish and receive: what was confirmed comes, and nothing else."""

import asyncio
import contextlib
import random

import pytest

from broker.protocols.mqtt.packets import Acknowledgement, PacketType, Publish
from broker.protocols.mqtt.versions import Version
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.serve import BrokerProcess

KEPT = {"clean": False, "expiry": 0xFFFFFFFF}
IN_FLIGHT = 32
GONE = (OSError, EOFError, AssertionError)


class Ledger:
    """What was sent, confirmed, received and given up for good."""

    def __init__(self):
        self.tried = set()
        self.confirmed = set()
        self.received = set()
        # Acknowledged, and the broker has answered something that came behind that.
        self.done = set()
        self.doubled = []


async def publish(port, turn, ledger):
    """Publish with QoS 1 until the broker is gone."""
    with contextlib.suppress(*GONE):
        async with Mqtt.of(port, f"p{turn}", Version.V3_1_1) as client:
            flying = {}
            for number in range(1, 60_000):
                text = f"{turn}-{number}"
                flying[number] = text
                ledger.tried.add(text)
                client.put(Publish("t/x", text.encode(), 1, packet_id=number))
                if len(flying) == IN_FLIGHT:
                    packet = await client.get(Acknowledgement, type=PacketType.PUBACK)
                    ledger.confirmed.add(flying.pop(packet.packet_id))


async def receive(port, ledger, qos):
    """Take until the broker is gone, each message acknowledged to the end."""
    with contextlib.suppress(*GONE):
        async with Mqtt.of(port, f"s{qos}", **KEPT) as client:
            await client.subscribe("t/+", qos=qos)
            while True:
                batch = []
                for _ in range(8):
                    found = await client.message(acknowledges=qos == 1)
                    text = found.payload.decode()
                    if text in ledger.done:
                        ledger.doubled.append(text)
                    ledger.received.add(text)
                    batch.append(text)
                    if qos == 2:
                        client.answer(PacketType.PUBREC, found.packet_id)
                        await client.ack(PacketType.PUBREL, found.packet_id)
                        # From here on the broker has it no more.
                        ledger.done.add(text)
                        client.answer(PacketType.PUBCOMP, found.packet_id)


@pytest.mark.slow
@pytest.mark.parametrize("max_messages", [-1, 50], ids=["in memory", "paging"])
def test_kill_9_loses_and_invents_nothing(tmp_path, effort, max_messages):
    one, two = Ledger(), Ledger()
    seeded = random.Random(5)

    async def turn(number, port, broker):
        await receive_once(port)
        tasks = [
            asyncio.create_task(work)
            for work in (publish_both(port, number), receive(port, one, 1), receive(port, two, 2))
        ]
        await asyncio.sleep(seeded.uniform(0.3, 2))
        await asyncio.to_thread(broker.kill)
        await asyncio.gather(*tasks)

    async def publish_both(port, number):
        await publish(port, number, one)
        two.tried |= one.tried
        two.confirmed |= one.confirmed

    async def receive_once(port):
        """The sessions are there before anything is published."""
        for qos in (1, 2):
            async with Mqtt.of(port, f"s{qos}", **KEPT) as client:
                await client.subscribe("t/+", qos=qos)

    async def drain(port, ledger, qos):
        async with Mqtt.of(port, f"s{qos}", **KEPT) as client:
            while True:
                try:
                    found = await asyncio.wait_for(client.message(), 3)
                except TimeoutError:
                    return
                except AssertionError:
                    # A PUBREL of before the crash.
                    continue
                text = found.payload.decode()
                if text in ledger.done:
                    ledger.doubled.append(text)
                ledger.received.add(text)

    for number in range(effort(30, least=2)):
        broker = BrokerProcess(tmp_path, max_messages=max_messages)
        asyncio.run(turn(number, broker.port, broker))
    broker = BrokerProcess(tmp_path, max_messages=max_messages)
    for ledger, qos in ((one, 1), (two, 2)):
        asyncio.run(drain(broker.port, ledger, qos))
    assert broker.stop() == 0

    for ledger in (one, two):
        assert ledger.confirmed, "nothing was ever confirmed"
        assert not ledger.confirmed - ledger.received, "lost"
        assert not ledger.received - ledger.tried, "invented"
        assert not ledger.doubled, "came again after the broker had given it up"
