"""A broker that scales down is killed at chosen frames, and started again: it goes on."""

import asyncio
import signal

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.model.xid import Xid
from broker.protocols.core.packet_cluster import ClusterConnect, ScaleDownAnnouncement
from broker.protocols.core.packet_message import Send, SendContinuation
from broker.protocols.core.packet_xa import XaResponse
from tests.broker.bridges.jms.cutting import DOWN, UP, CuttingProxy
from tests.broker.cluster.mesh import CLUSTER_PASSWORD, CLUSTER_USER, until
from tests.interop.our_broker import OurBroker
from tests.servers import free_port

pytestmark = pytest.mark.slow

WAIT_S = 60
COUNT = 100
LARGE = "x" * 300_000
XID = Xid(7, b"branch", b"global")
CLIENT = {"user": OurBroker.USER, "password": OurBroker.PASSWORD}
CLUSTER = ("--cluster-user", CLUSTER_USER, "--cluster-password", CLUSTER_PASSWORD)
SCALES_DOWN = "<scale-down>true</scale-down>\n<cluster-user>"
# In the order of a scale-down: packet, which of them, whether it arrives before the kill.
PLACES = {
    "before anything is sent": (UP, ClusterConnect, 1, False),
    "among the messages": (UP, Send, COUNT // 2, True),
    "within a large one": (UP, SendContinuation, 2, True),
    "the target has prepared": (DOWN, XaResponse, 3, False),
    "all has gone": (UP, ScaleDownAnnouncement, 1, False),
}


async def start(broker):
    """Start it, and wait for its link to the other node."""
    before = len(broker.log())
    await asyncio.to_thread(broker.start)
    await until(lambda: "AMQ221027" in broker.log()[before:], WAIT_S)


async def fill(uri):
    """What is to be moved: messages, a duplicate id, and a prepared transaction."""
    async with AsyncClient(uri, **CLIENT) as client:
        session = await client.session()
        await session.create_queue("r", "r")
        producer = session.producer("q")
        contents = ["taken", *map(str, range(COUNT)), LARGE]
        answers = [await producer.post(one, durable=True) for one in contents]
        await asyncio.gather(*answers)
        await producer.send("once", durable=True, properties={"_AMQ_DUPL_ID": "id"})
        session = await client.session(AckMode.XA)
        consumer = await session.consumer("q")
        await session.xa_start(XID)
        received = await consumer.receive(WAIT_S)
        await received.acknowledge()
        await session.producer("r").send("sent", durable=True)
        await session.xa_end(XID)
        await session.xa_prepare(XID)
    return [*contents[1:], "once"]


async def check_once(uri, contents):
    """All of it is there, once and in order."""
    async with AsyncClient(uri, **CLIENT) as client:
        session = await client.session()
        await session.producer("q").send("again", durable=True, properties={"_AMQ_DUPL_ID": "id"})
        decided = await client.session(AckMode.XA)
        await decided.xa_commit(XID)
        for queue, wanted in (("q", contents), ("r", ["sent"])):
            assert await session.attribute(f"queue.{queue}", "messageCount") == len(wanted)
            async with await session.consumer(queue) as consumer:
                found = []
                while len(found) < len(wanted):
                    received = await consumer.receive(WAIT_S)
                    await received.read()
                    found.append(received.content)
                assert found == wanted


def broker(folder, port, other, change):
    """One of the two, whose static connector leads to the other."""
    folder.mkdir()
    options = ("--port", port, "--static-cluster", f"tcp://127.0.0.1:{other}", *CLUSTER)
    return OurBroker(folder, change, options=(*options, "--queues", "q:anycast"), starts=False)


async def killed_at_each_place(folder):
    source_port, target_port = free_port(), free_port()
    async with CuttingProxy(target_port) as proxy:
        own = '<connector name="artemis">tcp://127.0.0.1:'
        announced = (f"{own}{target_port}<", f"{own}{proxy.port}<")
        target = await asyncio.to_thread(
            broker, folder / "target", target_port, source_port, announced
        )
        source = await asyncio.to_thread(
            broker, folder / "source", source_port, proxy.port, ("<cluster-user>", SCALES_DOWN)
        )
        try:
            await asyncio.to_thread(target.start)
            await start(source)
            contents = await fill(source.uri)
            for place, (direction, kind, number, is_passed) in PLACES.items():
                proxy.cut_at(
                    direction,
                    number,
                    is_passed=is_passed,
                    kind=kind.types[0][1],
                    on_cut=source.process.kill,
                )
                status = await asyncio.to_thread(source.end)
                assert proxy.has_cut, f"{place}: {source.log()}"
                assert status == -signal.SIGKILL
                await start(source)
            before = len(source.log())
            assert await asyncio.to_thread(source.end) == 0, source.log()
            assert "AMQ221063: scale-down is complete" in source.log()[before:]
            await check_once(target.uri, contents)
        finally:
            source.ensure_ended()
            target.ensure_ended()


def test_killed_at_each_place_it_goes_on_with_the_next_one(tmp_path):
    # Each wait has a limit of its own.
    asyncio.run(killed_at_each_place(tmp_path))
