"""Fuzz targets of whole connections: all that a peer says at the one port, to a running broker.

    bytes ─▶ Connection ─▶ detection ─▶ handler of a protocol, or WebSocket ─▶ session ─▶ queues

Sockets are stand-ins. Whatever is said, the connection ends when it is told to, nothing of it is
left, the broker runs on, and no exception but a documented one ends the connection.
"""

import asyncio
import logging

from websockets.client import ClientProtocol
from websockets.uri import parse_uri

from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.fuzz.peers import pieces

# A broker keeps what was sent to it; so many connections have one.
CONNECTIONS = 200
# Of the loop, until what was said has been taken, and until the connection has gone.
TURNS = 20
TURNS_MAX = 1000
# A session of the Core protocol waits that long for its client to come back.
CORE_TTL_MS = 10
# What comes in one turn of the loop, where it comes byte by byte.
PARTS = 100
LOOP = asyncio.new_event_loop()


class Transport(asyncio.Transport):
    """A socket that keeps nothing of what is written to it."""

    def __init__(self, protocol):
        super().__init__({"peername": ("peer", 1), "sockname": ("here", 2)})
        self._protocol = protocol
        self._is_closing = False
        self._reads = True

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def write(self, data):
        pass

    def is_reading(self):
        return self._reads

    def pause_reading(self):
        self._reads = False

    def resume_reading(self):
        self._reads = True

    def is_closing(self):
        return self._is_closing

    def close(self):
        if not self._is_closing:
            self._is_closing = True
            LOOP.call_soon(self._protocol.connection_lost, None)

    abort = close


class Faults(logging.Handler):
    """Keeps exceptions that ended a connection, or worse, and that name no fault of the peer."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.found = []

    def emit(self, record):
        error = record.exc_info[1] if record.exc_info else None
        if record.levelno >= logging.ERROR or (type(error).__module__ == "builtins" and error):
            self.found.append((record.getMessage(), error))


class Served:
    """A broker, as long as it is not too full."""

    def __init__(self):
        self._broker = None
        self._count = 0

    async def broker(self):
        if self._broker is None or self._count == CONNECTIONS:
            if self._broker is not None:
                await self._broker.stop()
            self._count = 0
            # None of its own comes: the targets bring connections.
            self._broker = Broker(
                BrokerOptions(
                    acceptors=(AcceptorOptions(host="127.0.0.1", port=0),),
                    connection_ttl_override=CORE_TTL_MS,
                    connection_ttl_check_interval=CORE_TTL_MS,
                )
            )
            await self._broker.start()
        self._count += 1
        return self._broker


FAULTS = Faults()
SERVED = Served()
logging.getLogger("broker").addHandler(FAULTS)
logging.getLogger("broker").setLevel(logging.DEBUG)
logging.getLogger("broker").propagate = False


async def none_left(kept):
    """Wait until nothing of a client that has gone is left there."""
    for turn in range(TURNS_MAX):
        if not kept:
            return
        await asyncio.sleep(0 if turn < TURNS else CORE_TTL_MS / 1000)
    raise AssertionError(f"it does not end: {kept}")


async def said(parts):
    """Say this in one connection, and go."""
    broker = await SERVED.broker()
    acceptor = broker.acceptors[0]
    connection = acceptor._accept()
    transport = Transport(connection)
    connection.connection_made(transport)
    for number, part in enumerate(parts):
        if number % PARTS == 0:
            await asyncio.sleep(0)
        for _ in range(TURNS):
            if transport.is_reading():
                break
            await asyncio.sleep(0)
        if transport.is_closing() or not transport.is_reading():
            break
        connection.data_received(part)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    transport.close()
    await none_left(acceptor.connections)
    await none_left(broker.clients.connections)
    await none_left(broker.clients.sessions)
    assert broker.is_active
    if FAULTS.found:
        message, error = FAULTS.found[0]
        raise AssertionError(message) from error


def port(data):
    """A cut, and what a peer says from its first byte on."""
    if data:
        LOOP.run_until_complete(said(pieces(data[1:], data[0])))


def web_socket(data):
    """A cut, and frames behind the upgrade."""
    if data:
        client = ClientProtocol(parse_uri("ws://here/"))
        client.send_request(client.connect())
        upgrade = b"".join(client.data_to_send())
        LOOP.run_until_complete(said([upgrade, *pieces(data[1:], data[0])]))
