"""A client of STOMP that says what it is told to, byte by byte, and a broker to say it to."""

import asyncio
import contextlib
import re
from typing import NamedTuple

from broker.client import AsyncClient
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions

WAIT_S = 30
READ_MAX = 64 * 1024 * 1024
UNESCAPED = {"\\n": "\n", "\\r": "\r", "\\c": ":", "\\\\": "\\"}


class Reply(NamedTuple):
    """A frame of the broker."""

    command: str
    headers: dict
    body: bytes
    names: list
    """Of the headers, in order, repeated ones as often."""


@contextlib.asynccontextmanager
async def serving(folder=None, *, match="#", address=None, options=None, security=None, **acceptor):
    """A broker on a folder, or one that keeps nothing: all protocols on one port."""
    settings = SettingsRepository()
    defaults = {"dead_letter_address": "DLQ", "expiry_address": "EXPIRED"}
    settings.add(match, AddressSettings(**{**defaults, **(address or {})}))
    store = None
    if folder is not None:
        store = FileStoreOptions(
            bindings=bindings_options(folder / "bindings"),
            messages=messages_options(folder / "journal", journal_type="NIO"),
            large_messages=folder / "large",
        )
    acceptors = (AcceptorOptions(host="127.0.0.1", port=0, **acceptor),)
    broker = Broker(
        BrokerOptions(store=store, acceptors=acceptors, settings=settings, **(options or {})),
        security=security,
    )
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


@contextlib.asynccontextmanager
async def core(broker):
    """A session of a Core client."""
    uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}"
    async with AsyncClient(uri) as client, await client.session() as session:
        yield session


async def until(holds):
    """Wait for what only has to happen at all."""
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - it is found out by looking alone.
            await asyncio.sleep(0.01)


def unescaped(text, version):
    """What a header of the broker means."""
    if version == "1.0":
        return text
    return re.sub(r"\\.", lambda found: UNESCAPED[found[0]], text)


class Stomp:
    """One connection."""

    def __init__(self, reader, writer, version):
        self.reader, self.writer, self.version = reader, writer, version
        self.receipts = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def raw(cls, broker, version="1.2"):
        """One that has said nothing."""
        port = broker if isinstance(broker, int) else broker.acceptors[0].port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=READ_MAX)
        try:
            yield cls(reader, writer, version)
        finally:
            writer.close()

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, broker, version="1.2", **headers):
        """One that has connected."""
        async with cls.raw(broker, version) as made:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            made.put("CONNECT", {"accept-version": version, "host": "h", **named})
            reply = await made.get("CONNECTED")
            assert reply.headers["version"] == version
            yield made

    def write(self, data):
        """Send bytes as they are."""
        self.writer.write(data)

    def put(self, command, headers=(), body=b""):
        """Send a frame; headers are written as they are."""
        lines = [command, *(f"{name}:{value}" for name, value in dict(headers).items())]
        self.write("\n".join(lines).encode() + b"\n\n" + body + b"\0")

    async def next(self):
        """The next frame of the broker."""
        return await asyncio.wait_for(self._next(), WAIT_S)

    async def _next(self):
        first = b"\n"
        while first in (b"\n", b"\r"):
            first = await self.reader.readexactly(1)
        head = first + await self.reader.readuntil(b"\n\n")
        command, *lines = head.decode()[:-2].split("\n")
        names, headers = [], {}
        for line in lines:
            name, _, value = line.partition(":")
            name = unescaped(name, self.version)
            names.append(name)
            headers.setdefault(name, unescaped(value, self.version))
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
            assert await self.reader.readexactly(1) == b"\0"
        else:
            body = (await self.reader.readuntil(b"\0"))[:-1]
        return Reply(command, headers, body, names)

    async def get(self, command):
        """The next frame, which has to be one of this command."""
        reply = await self.next()
        assert reply.command == command, reply
        return reply

    async def do(self, command, headers=(), body=b""):
        """Send a frame and wait for its receipt."""
        self.receipts += 1
        receipt = f"r{self.receipts}"
        self.put(command, {**dict(headers), "receipt": receipt}, body)
        assert (await self.get("RECEIPT")).headers == {"receipt-id": receipt}

    async def refused(self, command, headers=(), body=b""):
        """Send a frame; the ERROR that comes."""
        self.put(command, headers, body)
        return await self.get("ERROR")

    async def send(self, destination, body=b"text", **headers):
        """A message, durable and with a receipt."""
        await self.do("SEND", {"destination": destination, "persistent": "true", **headers}, body)

    async def subscribe(self, destination, id="s", ack="auto", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.do("SUBSCRIBE", {"destination": destination, "id": id, "ack": ack, **named})

    async def ack(self, message, command="ACK"):
        """Acknowledge a MESSAGE as its version does, and wait for the receipt."""
        await self.do(command, self.of_message(message))

    def of_message(self, message):
        """The headers of an ACK."""
        if self.version == "1.2":
            return {"id": message.headers["ack"]}
        headers = {"message-id": message.headers["message-id"]}
        if self.version == "1.1":
            headers["subscription"] = message.headers["subscription"]
        return headers

    async def bodies(self, count):
        """Bodies of the next messages."""
        return [(await self.get("MESSAGE")).body.decode() for _ in range(count)]

    async def is_silent(self, seconds=0.2):
        """Whether nothing comes; a line end is a beat."""
        with contextlib.suppress(TimeoutError):
            data = await asyncio.wait_for(self.reader.read(1), seconds)
            return data == b"\n" and await self.is_silent(seconds)
        return True

    async def is_closed(self):
        """Wait until the broker has closed the connection, and see that it said nothing more."""
        with contextlib.suppress(ConnectionError):
            rest = await asyncio.wait_for(self.reader.read(), WAIT_S)
            assert not rest.strip(b"\n"), rest
        return True
