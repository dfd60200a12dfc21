"""After a full read the loop has a turn before the next: of the broker, and of clients."""

import asyncio
import socket
import threading
import time

import pytest

from broker.bridges.jms.providers import Credentials
from broker.client.aio.transport import Driver
from broker.client.replies import Reply
from broker.environment import FULL_READ
from broker.transport.connection import Connection

uvloop = pytest.importorskip("uvloop", reason="uvloop has no wheel here")

SIZE = 64 << 20


class Taking:
    """A handler that counts reads in each turn of the loop, and lets the socket fill up."""

    # What a driver asks of its link at the end.
    ready = Reply.of(None)

    def __init__(self, loop):
        self.loop = loop
        self.taken = self.reads = 0
        self.of_turns = []
        self.largest = 0
        self.ended = asyncio.Event()

    def receive(self, data):
        self.taken += len(data)
        self.largest = max(self.largest, len(data))
        if not self.reads:
            self.loop.call_soon(self.turn)
        self.reads += 1
        time.sleep(0.001)

    receive_data = receive

    def turn(self):
        self.of_turns.append(self.reads)
        self.reads = 0

    def lost(self, error):
        self.ended.set()


def of_the_broker(loop, handler):
    return Connection(
        lambda connection, first: (handler, 0),
        lambda connection: None,
        handshake_timeout_s=0,
        loop=loop,
        connection_id="00000001",
        created_ms=0,
    )


def of_the_client(loop, handler):
    made = Driver(handler.lost, is_secured=False)
    made.link = handler
    return made


def of_an_amqp_bridge(loop, handler):
    from broker.bridges.jms.amqp import wire

    class Fed(wire.Wire):
        def _take(self, data):
            handler.receive(data)

        def connection_lost(self, error):
            super().connection_lost(error)
            handler.lost(error)

    return Fed("", "test", Credentials())


@pytest.mark.parametrize("protocol", [of_the_broker, of_the_client, of_an_amqp_bridge])
def test_one_full_read_a_turn(protocol):
    # Not by the factory: a skip within the loop is not seen.
    if protocol is of_an_amqp_bridge:
        pytest.importorskip("proton", reason="python-qpid-proton is not installed")

    async def take():
        loop = asyncio.get_running_loop()
        handler = Taking(loop)
        server = await loop.create_server(lambda: protocol(loop, handler), "127.0.0.1", 0)
        address = server.sockets[0].getsockname()

        def send():
            with socket.create_connection(address) as peer:
                peer.sendall(bytes(SIZE))
                # What is closed with unread bytes, those of an engine, would be reset.
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(FULL_READ):
                    pass

        sender = threading.Thread(target=send)
        sender.start()
        await handler.ended.wait()
        await asyncio.to_thread(sender.join)
        server.close()
        await server.wait_closed()
        return handler

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        handler = runner.run(take())

    assert handler.taken == SIZE
    if handler.largest < FULL_READ:
        pytest.skip("this kernel keeps less of what came than a full read: uvloop stops by itself")
    assert set(handler.of_turns) == {1}
