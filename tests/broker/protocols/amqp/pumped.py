"""The client's side of the engine, over whatever carries its bytes: a WebSocket, TLS."""

import asyncio

from proton import Connection, Transport

WAIT_S = 30
AMQP = b"AMQP\x00\x01\x00\x00"


class Pumped:
    """A connection that opens.

    Args:
        send: awaited with bytes.
        receive: awaited for bytes; none where the other side has closed.
    """

    def __init__(self, send, receive):
        self._send, self._receive = send, receive
        self._transport = Transport()
        self.connection = Connection()
        self.connection.container = "pumped"
        self._transport.bind(self.connection)
        self.connection.open()

    async def until(self, holds):
        """Send and receive until it is so."""
        transport = self._transport
        async with asyncio.timeout(WAIT_S):
            while True:
                if (size := transport.pending()) > 0:
                    data = bytes(transport.peek(size))
                    transport.pop(len(data))
                    await self._send(data)
                if holds():
                    return
                data = await self._receive()
                assert data, "the other side has closed"
                transport.push(data)

    async def sender(self, address):
        """A link to an address, answered."""
        session = self.connection.session()
        session.open()
        link = session.sender("s")
        link.target.address = address
        link.open()
        await self.until(lambda: link.remote_condition or link.credit > 0)
        return link
