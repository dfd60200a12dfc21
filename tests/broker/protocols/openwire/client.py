"""A client of OpenWire that says what it is told to, and no more."""

import asyncio
import contextlib
import struct

from broker.protocols.openwire import commands as c
from broker.protocols.openwire.identifiers import (
    ConnectionId,
    ConsumerId,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
)
from broker.protocols.openwire.wire_format import Agreement, WireFormatInfo, own_wire_format

WAIT_S = 30
CONNECTION = "ID:test-1-2-3:1"
SIZE = struct.Struct(">i")


class OpenWire:
    """One connection.

    Args:
        reader: of its socket.
        writer: of its socket.
        version: of OpenWire.
        tight: the encoding.
        name: of the connection; no other one has it.
    """

    def __init__(self, reader, writer, version, tight, name=CONNECTION):
        self.reader, self.writer = reader, writer
        self.name, self.producer = name, ProducerId(name, 1, 1)
        ours = own_wire_format(
            max_inactivity_ms=30_000, initial_delay_ms=10_000, max_frame_size=2**30
        )
        ours.properties["TightEncodingEnabled"] = tight
        self.ours = WireFormatInfo(version, ours.properties)
        self.agreed = None
        self.number = self.sequence = 0
        self.messages = []

    @classmethod
    @contextlib.asynccontextmanager
    async def raw(cls, broker, version=12, tight=True, name=CONNECTION):
        """One that has said nothing."""
        port = broker if isinstance(broker, int) else broker.acceptors[0].port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield cls(reader, writer, version, tight, name)
        finally:
            writer.close()

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, broker, client_id="test", version=12, tight=True, name=CONNECTION, **info):
        """One that has logged in, with a session and a producer."""
        async with cls.raw(broker, version, tight, name) as made:
            await made.negotiate()
            await made.ask(made.login(client_id, **info))
            await made.ask(c.SessionInfo(session_id=SessionId(name, 1)))
            await made.ask(c.ProducerInfo(producer_id=made.producer))
            yield made

    def login(self, client_id, **info):
        return c.ConnectionInfo(connection_id=ConnectionId(self.name), client_id=client_id, **info)

    async def negotiate(self):
        """Say what each side can do; the broker's BrokerInfo."""
        self.writer.write(self.ours.encode())
        theirs = WireFormatInfo.decode(await self.frame())
        self.agreed = Agreement(self.ours, theirs)
        return await self.next()

    async def frame(self):
        size = SIZE.unpack(await asyncio.wait_for(self.reader.readexactly(4), WAIT_S))[0]
        return await asyncio.wait_for(self.reader.readexactly(size), WAIT_S)

    async def next(self):
        """The next command of the broker, which may say meanwhile that it is there."""
        while True:
            found = self.agreed.reader(await self.frame()).command()
            if not isinstance(found, c.KeepAliveInfo):
                return found

    def put(self, command, wants=False):
        """Send a command."""
        self.number += 1
        command.command_id = self.number
        command.response_required = wants
        self.writer.write(self.agreed.write(command))
        return command.command_id

    async def ask(self, command):
        """Send a command, and give its answer, which is not a refusal."""
        answer = await self.refused(command)
        assert not isinstance(answer, c.ExceptionResponse), answer.exception
        return answer

    async def refused(self, command):
        """Send a command, and give its answer; messages before it wait for message()."""
        number = self.put(command, True)
        while True:
            got = await self.next()
            if isinstance(got, c.Response) and got.correlation_id == number:
                return got
            self.messages.append(got)

    async def message(self):
        """The next command that is not an answer."""
        return self.messages.pop(0) if self.messages else await self.next()

    def text(self, destination, text, **fields):
        """A text message."""
        data = text.encode()
        content = SIZE.pack(len(data)) + data
        return self.sent(c.ActiveMQTextMessage, destination, content, **fields)

    def sent(self, kind, destination, content, **fields):
        """A durable message of a kind."""
        self.sequence += 1
        return kind(
            producer_id=self.producer,
            message_id=MessageId(producer_id=self.producer, producer_sequence_id=self.sequence),
            destination=destination,
            content=content,
            persistent=True,
            priority=4,
            **fields,
        )

    async def consume(self, destination, number=1, prefetch=100, **fields):
        """A consumer."""
        id = ConsumerId(self.name, 1, number)
        info = c.ConsumerInfo(
            consumer_id=id, destination=destination, prefetch_size=prefetch, **fields
        )
        await self.ask(info)
        return id

    def ack(self, consumer, dispatch, kind=2, count=1, **fields):
        """An acknowledgement."""
        last = dispatch.message.message_id
        return c.MessageAck(
            destination=dispatch.destination,
            consumer_id=consumer,
            ack_type=kind,
            first_message_id=last,
            last_message_id=last,
            message_count=count,
            **fields,
        )

    def transaction(self, number, kind):
        """A step of a local transaction."""
        of = ConnectionId(self.name)
        id = LocalTransactionId(number, of)
        return c.TransactionInfo(connection_id=of, transaction_id=id, type=kind)


def text_of(dispatch):
    """The text of a message."""
    return dispatch.message.content[4:].decode()
