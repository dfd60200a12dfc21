"""Kill -9 while MQTT clients publish and receive; the history checker says whether it may be.

The queue `plain` is a shared subscription with two members, `single` a subscription of one client.
"""

import asyncio
import contextlib
import itertools
import zlib

import pytest

from broker.protocols.mqtt.packets import Acknowledgement, PacketType, Ping, Publish
from broker.protocols.mqtt.versions import Version
from tests.broker.protocols.killing import IN_FLIGHT, Clients, kill_and_check
from tests.broker.protocols.mqtt.client import Mqtt
from tests.interop.asynchronous import asynchronous

GONE = (ConnectionError, EOFError)
ID_MAX = 60_000
FILTERS = {"plain": "$share/g/plain", "single": "single"}
# Each has one session for good, which waits for its client.
MEMBERS = {
    "a": ("plain", Version.V5),
    "b": ("plain", Version.V3_1_1),
    "c": ("single", Version.V5),
}


class MqttClients(Clients):
    """Producers of MQTT.

    Attributes:
        is_confirmed: a message was, in this run of the broker.
    """

    def __init__(self):
        super().__init__()
        self.is_confirmed = asyncio.Event()

    def session(self, member):
        """The session of a consumer, taken up or new."""
        _, version = MEMBERS[member]
        expiry = {"expiry": 0xFFFFFFFF} if version is Version.V5 else {}
        return Mqtt.of(self.port, member, version, clean=False, **expiry)

    async def produce(self, queue, version, qos):
        """Many in flight, each with its answer."""
        history, flying = self.history, {}
        producer = self.new_producer()
        with contextlib.suppress(*GONE):
            async with Mqtt.of(self.port, producer, version) as client:
                for number in itertools.count(1):
                    unit = history.unit()
                    message = self.new_message(queue, producer, number, unit)
                    history.tried(unit)
                    packet_id = number % ID_MAX + 1
                    flying[packet_id] = unit
                    client.put(Publish(queue, message.body, qos, packet_id=packet_id))
                    await client.writer.drain()
                    while len(flying) >= IN_FLIGHT:
                        self.confirmed(await client.get(Acknowledgement), client, flying)

    def confirmed(self, packet, client, flying):
        """A message is the broker's by PUBACK or PUBREC."""
        if packet.type is PacketType.PUBCOMP:
            return
        self.history.done(flying.pop(packet.packet_id))
        self.is_confirmed.set()
        if packet.type is PacketType.PUBREC:
            client.answer(PacketType.PUBREL, packet.packet_id)


def take_up(client, packet):
    """A packet that was not waited for: a message, or a PUBREL of before the crash."""
    if isinstance(packet, Publish):
        client.waiting.append(packet)
    else:
        assert (type(packet), packet.type) == (Acknowledgement, PacketType.PUBREL), packet
        client.answer(PacketType.PUBCOMP, packet.packet_id)


async def exchange(client):
    """The broker has answered: what a taken up session begins with has come before."""
    client.put(Ping(PacketType.PINGREQ))
    while not isinstance(packet := await client.next(), Ping):
        take_up(client, packet)


async def begin(clients):
    """All sessions are there before anything is published; whether the broker is."""
    for member, (queue, _) in MEMBERS.items():
        try:
            async with clients.session(member) as client:
                await exchange(client)
                await client.subscribe(FILTERS[queue], qos=2)
        except GONE:
            return False
    return True


async def consume(clients, member, *, patience_s=0.5, rounds=None, batch=5):
    """Up to `batch` messages at a time; with `rounds` until so often nothing comes."""
    queue, _ = MEMBERS[member]
    taken, empty = [], 0
    with contextlib.suppress(*GONE):
        async with clients.session(member) as client:
            await exchange(client)
            await client.subscribe(FILTERS[queue], qos=clients.seeded.choice((1, 2)))
            while rounds is None or empty < rounds:
                got = []
                for _ in range(clients.seeded.randrange(1, batch + 1)):
                    packet = await next_message(client, patience_s)
                    if packet is None:
                        break
                    unit = clients.history.unit()
                    taken.append(unit)
                    note(clients, unit, queue, packet)
                    got.append((packet, unit))
                empty = 0 if got or client.waiting else empty + 1
                await acknowledge(clients.history, client, got)
    clients.give_up(*taken)


async def next_message(client, patience_s):
    """The next message; None where there is none for a while."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while not client.waiting:
                take_up(client, await client.next())
    if not client.waiting:
        # A broker that is slow is waited for.
        await exchange(client)
    return client.waiting.pop(0) if client.waiting else None


def note(clients, unit, queue, packet):
    """What came has no number of the broker's: its body says which it is."""
    copy = zlib.crc32(packet.payload)
    count = 2 if packet.dup else 1
    clients.history.take(unit, queue, copy, count, clients.run, packet.payload)


async def acknowledge(history, client, got):
    """Each message to its end."""
    for packet, unit in got:
        history.tried(unit)
        if packet.qos == 2:
            client.answer(PacketType.PUBREC, packet.packet_id)
            # From here on the broker has it no more.
            await client.ack(PacketType.PUBREL, packet.packet_id)
            history.done(unit)
            client.answer(PacketType.PUBCOMP, packet.packet_id)
        else:
            client.answer(PacketType.PUBACK, packet.packet_id)
    if any(packet.qos == 1 for packet, _ in got):
        # A PUBACK has no answer: what is answered behind it is durable, and so is that.
        await client.publish("behind", b"", 1)
        for packet, unit in got:
            if packet.qos == 1:
                history.done(unit)


@pytest.mark.slow
@pytest.mark.parametrize("max_messages", [-1, 50], ids=["in memory", "paging"])
@asynchronous
async def test_kill_9_loses_and_doubles_nothing(tmp_path, effort, max_messages):
    clients = MqttClients()

    async def all_of_them():
        versions = [clients.seeded.choice(list(Version)) for _ in range(3)]
        if await begin(clients):
            await asyncio.gather(
                clients.produce("plain", versions[0], 1),
                clients.produce("plain", versions[1], 2),
                clients.produce("single", versions[2], 1),
                *(consume(clients, member) for member in MEMBERS),
            )

    def working():
        clients.is_confirmed.clear()
        return [asyncio.ensure_future(all_of_them())]

    async def drain(queue):
        member = {"plain": "a", "single": "c"}[queue]
        await consume(clients, member, patience_s=1, rounds=3, batch=100)

    rounds = effort(20, least=3)
    await kill_and_check(
        clients,
        tmp_path,
        rounds,
        max_messages,
        working,
        drain,
        is_working=clients.is_confirmed.wait,
    )
