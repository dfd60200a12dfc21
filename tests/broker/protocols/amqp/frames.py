"""AMQP frame by frame: what a client says is written field by field, and read so."""

import asyncio
import contextlib
from typing import NamedTuple

from proton import Data, Described, symbol, ubyte, uint, ulong

__all__ = ["AMQP", "SASL", "Frame", "Wire", "accepted", "encoded", "of", "source", "target"]

WAIT_S = 30
AMQP, SASL = b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
ERROR, ACCEPTED, SOURCE, TARGET = 0x1D, 0x24, 0x28, 0x29
WINDOW = uint(2**20)


class Frame(NamedTuple):
    """One of the broker's; `fields` are None where it is empty."""

    channel: int
    code: int
    fields: list
    payload: bytes

    def field(self, index):
        """One that may be left out at the end."""
        return self.fields[index] if index < len(self.fields) else None

    @property
    def condition(self):
        """Of the error that detach, end and close may have, as their last field."""
        error = self.fields[-1] if self.fields else None
        return str(error.value[0]) if isinstance(error, Described) else None


def encoded(value):
    """A value of AMQP."""
    data = Data()
    data.put_object(value)
    return data.encode()


def of(code, *fields):
    """A type that the standard describes."""
    return Described(ulong(code), list(fields))


def _own(value):
    """A value that keeps its bytes: those of the engine are gone with what they were decoded in."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, Described):
        return Described(_own(value.descriptor), _own(value.value))
    if isinstance(value, list):
        return [_own(one) for one in value]
    if isinstance(value, dict):
        return {_own(key): _own(one) for key, one in value.items()}
    return value


def source(address=None, **named):
    """Of a link: its fields by name."""
    names = ("durable", "expiry", "timeout", "dynamic", "properties", "mode", "filter")
    rest = [named.get(name) for name in (*names, "default", "outcomes", "capabilities")]
    return of(SOURCE, address, *rest)


def target(address=None, capability="queue"):
    """Of a link."""
    return of(TARGET, address, None, None, None, None, None, capability and symbol(capability))


def accepted():
    """The outcome."""
    return of(ACCEPTED)


class Wire:
    """A connection that says what it is told to."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.empty_count = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def raw(cls, broker):
        """One that has said nothing."""
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.acceptors[0].port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, broker, *fields):
        """One with a session, after an open of these fields behind the container id."""
        async with cls.raw(broker) as made:
            made.write(AMQP)
            made.put(OPEN, "c", None, *fields)
            assert await made.header() == AMQP
            await made.get(OPEN)
            await made.begin()
            yield made

    def write(self, data):
        self.writer.write(data)

    def put(self, code, *fields, channel=0, payload=b""):
        """Send a performative."""
        self.frame(encoded(of(code, *fields)) + payload, channel=channel)

    def frame(self, body, *, channel=0, kind=0, extended=b""):
        """Send a frame."""
        size, start = 8 + len(extended) + len(body), 2 + len(extended) // 4
        head = size.to_bytes(4, "big") + bytes((start, kind)) + channel.to_bytes(2, "big")
        self.write(head + extended + body)

    async def header(self):
        """The protocol header of the broker."""
        async with asyncio.timeout(WAIT_S):
            return await self.reader.readexactly(8)

    async def next(self):
        """The next frame that is not empty; None where the broker has closed."""
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    head = await self.reader.readexactly(8)
                    body = await self.reader.readexactly(int.from_bytes(head[:4], "big") - 8)
                except (asyncio.IncompleteReadError, ConnectionResetError):
                    return None
                if body:
                    break
                self.empty_count += 1
        data = Data()
        size = data.decode(body)
        data.rewind()
        data.next()
        found = _own(data.get_object())
        channel = int.from_bytes(head[6:], "big")
        return Frame(channel, int(found.descriptor), found.value, body[size:])

    async def get(self, code):
        """The next frame of this kind; flows before it are passed over."""
        while True:
            found = await self.next()
            assert found is not None, f"closed instead of {code:#x}"
            if found.code == code:
                return found
            assert found.code == FLOW, (hex(found.code), found.fields)

    async def is_silent(self, patience_s=0.3):
        """Whether nothing comes but empty frames and flows."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while (found := await self.next()) is not None and found.code == FLOW:
                    pass
                return False
        return True

    async def begin(self, *, channel=0, window=WINDOW):
        """Begin a session; the broker's answer."""
        self.put(BEGIN, None, uint(0), window, WINDOW, channel=channel)
        return await self.get(BEGIN)

    async def receive(self, address, credit, *, handle=0, snd=None, made=None, **named):
        """Attach a link to receive on, and give credit; the broker's answer."""
        modes = (None if snd is None else ubyte(snd), None)
        where = made or source(address, **named)
        self.put(ATTACH, f"in-{handle}", uint(handle), True, *modes, where, of(TARGET))
        answer = await self.get(ATTACH)
        if credit:
            self.credit(credit, handle=handle)
        return answer

    def credit(self, count, *, handle=0, delivery_count=0, window=WINDOW, **more):
        """Give credit; `drain` and `echo` may be told, and how many transfers have come."""
        link = (uint(handle), uint(delivery_count), uint(count), None)
        flags = (more.get("drain", False), more.get("echo", False))
        self.put(FLOW, uint(more.get("came", 0)), window, uint(0), WINDOW, *link, *flags)

    async def attach_sender(self, where, *, handle=1, origin=None):
        """Attach a link to send on; the broker's answer."""
        own = origin or source("here")
        count = (None, None, uint(0))
        self.put(ATTACH, f"out-{handle}", uint(handle), False, None, None, own, where, *count)
        return await self.get(ATTACH)

    def transfer(self, payload, number, *, handle=1, tag=b"", **more):
        """Send a message, or a part of it: `settled`, `more`, `state`, `aborted`."""
        first = (uint(number), tag or b"tag-%d" % number, uint(0)) if number >= 0 else (None,) * 3
        flags = (more.get("settled", False), more.get("more", False))
        rest = (None, more.get("state"), None, more.get("aborted", False))
        self.put(TRANSFER, uint(handle), *first, *flags, *rest, payload=payload)

    def dispose(self, first, last, state, *, settled=True):
        """Say what became of messages that came."""
        self.put(DISPOSITION, True, uint(first), uint(last), settled, state)
