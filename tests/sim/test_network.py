"""TCP and datagrams in memory behave as sockets do, and their faults as networks' do."""

import asyncio
import random

import pytest

from tests.sim.loop import SimLoop
from tests.sim.network import GIVE_UP_S, Network


class World:
    """Two hosts, a server on one and a client on the other."""

    def __init__(self, seed=1):
        self.loop = SimLoop(random.Random(seed))
        self.network = Network(self.loop)
        self.near, self.far = self.network.host("near"), self.network.host("far")
        self.streams = []
        self.client = self.loop.process("client", self.near)
        self.server = self.loop.process("server", self.far)

    def run(self, work):
        return self.loop.run_until_complete(self.client.spawn(work))

    async def connect(self, host, port):
        pair = await asyncio.open_connection(host, port)
        # A stream that is freed while it is open complains.
        self.streams.append(pair)
        return pair

    def serve(self, handle, port=80):
        async def listen():
            await asyncio.start_server(handle, "far", port)

        self.loop.run_until_complete(self.server.spawn(listen()))


@pytest.fixture
def world():
    made = World()
    yield made
    made.loop.close()


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def test_bytes_come_back_in_order_and_take_time(world):
    world.serve(echo)
    data = random.Random(3).randbytes(1_000_000)

    async def talk():
        reader, writer = await world.connect("far", 80)
        began = world.loop.time()
        reading = asyncio.ensure_future(reader.readexactly(len(data)))
        for start in range(0, len(data), 7000):
            writer.write(data[start : start + 7000])
            await writer.drain()
        found = await reading
        writer.close()
        await writer.wait_closed()
        return found, world.loop.time() - began

    found, seconds = world.run(talk())

    assert found == data
    assert 0.001 < seconds < 5


def test_one_seed_has_one_trace_and_another_has_another():
    def trace(seed):
        world = World(seed)
        world.serve(echo)

        async def talk():
            for _ in range(10):
                reader, writer = await world.connect("far", 80)
                writer.write(b"x" * 5000)
                await reader.readexactly(5000)
                writer.close()

        world.run(talk())
        world.loop.close()
        return world.loop.trace_hash

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)


def test_connections_overtake_each_other():
    def order(seed):
        world = World(seed)
        seen = []

        async def note(reader, writer):
            seen.append(await reader.read(10))
            writer.close()

        world.serve(note)

        async def talk():
            pairs = [await world.connect("far", 80) for _ in range(4)]
            for number, (_, writer) in enumerate(pairs):
                writer.write(b"%d" % number)
            await asyncio.sleep(1)

        world.run(talk())
        world.loop.close()
        return b"".join(seen)

    assert len({order(seed) for seed in range(20)}) > 5


def test_nobody_listens_or_the_name_is_unknown(world):
    with pytest.raises(ConnectionRefusedError):
        world.run(world.connect("far", 81))
    with pytest.raises(OSError, match="not known"):
        world.run(world.connect("nowhere", 80))


def test_a_name_stands_for_several_hosts(world):
    world.serve(echo)
    world.network.name("balancer", world.near, world.far)

    async def talk():
        _, writer = await world.connect("balancer", 80)
        return writer.get_extra_info("peername")

    assert world.run(talk()) == (world.far.address, 80)


def test_who_does_not_read_holds_the_sender_up(world):
    async def sleeper(reader, writer):
        reader._transport.pause_reading()
        await asyncio.sleep(100)
        reader._transport.resume_reading()
        assert len(await reader.read(-1)) == 1_000_000
        writer.write(b"all")
        writer.close()

    world.serve(sleeper)

    async def talk():
        reader, writer = await world.connect("far", 80)
        began = world.loop.time()
        writer.write(b"x" * 1_000_000)
        await writer.drain()
        waited = world.loop.time() - began
        writer.write_eof()
        return waited, await reader.read(10)

    waited, answer = world.run(talk())

    assert waited > 99
    assert answer == b"all"


def test_what_is_sent_over_a_cut_arrives_when_it_is_healed(world):
    world.serve(echo)

    async def talk():
        reader, writer = await world.connect("far", 80)
        world.network.cut(world.near, world.far, both=False)
        writer.write(b"hello")
        world.loop.call_later(30, world.network.heal)
        began = world.loop.time()
        found = await reader.readexactly(5)
        return found, world.loop.time() - began

    found, seconds = world.run(talk())

    assert found == b"hello"
    assert 30 <= seconds < 32


def test_a_cut_that_stays_ends_who_sends(world):
    world.serve(echo)

    async def talk():
        reader, writer = await world.connect("far", 80)
        world.network.cut(world.near, world.far)
        writer.write(b"hello")
        began = world.loop.time()
        with pytest.raises(TimeoutError):
            await reader.read(5)
        return world.loop.time() - began

    assert world.run(talk()) == pytest.approx(GIVE_UP_S, rel=0.1)


def test_a_host_without_power_leaves_half_open_connections_that_a_write_finds_out(world):
    world.serve(echo)

    async def talk():
        reader, writer = await world.connect("far", 80)
        world.server.kill()
        world.network.power_off(world.far)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await reader.read(5)
        world.network.power_on(world.far)
        writer.write(b"hello")
        with pytest.raises(ConnectionResetError):
            await reader.read(5)

    world.run(talk())


def test_a_killed_process_closes_its_connections(world):
    world.serve(echo)

    async def talk():
        reader, _ = await world.connect("far", 80)
        world.server.kill()
        world.network.process_ended(world.server)
        try:
            return await reader.read(5)
        except ConnectionResetError:
            return b""

    assert world.run(talk()) == b""
    with pytest.raises(ConnectionRefusedError):
        world.run(world.connect("far", 80))


def test_a_port_is_taken_once(world):
    world.serve(echo)

    with pytest.raises(OSError, match="is taken"):
        world.serve(echo)


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self):
        self.found = []

    def datagram_received(self, data, addr):
        self.found.append(int(data))


@pytest.mark.parametrize("target", ["far", "231.7.7.7"])
def test_datagrams_are_lost_doubled_and_come_in_any_order(world, target):
    link = world.network.link(world.near, world.far)
    link.loss = link.duplicates = 0.2

    async def listen():
        _, protocol = await world.loop.create_datagram_endpoint(
            Datagrams, local_addr=("0.0.0.0", 9876)
        )
        return protocol

    protocol = world.loop.run_until_complete(world.server.spawn(listen()))

    async def talk():
        transport, _ = await world.loop.create_datagram_endpoint(asyncio.DatagramProtocol)
        for number in range(200):
            transport.sendto(b"%d" % number, (target, 9876))
        await asyncio.sleep(1)
        transport.close()

    world.run(talk())
    found = protocol.found

    assert found != sorted(found)
    assert 100 < len(set(found)) < 200 < len(found) + 60
    assert len(found) > len(set(found))
