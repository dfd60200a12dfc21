"""A client of MQTT that says what it is told to, packet by packet or byte by byte."""

import asyncio
import contextlib

from broker.protocols.mqtt.encoding import encode
from broker.protocols.mqtt.framing import Framing, Limits
from broker.protocols.mqtt.packets import (
    Acknowledgement,
    Connack,
    Connect,
    Disconnect,
    Filter,
    PacketType,
    Ping,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Version,
)
from broker.protocols.mqtt.properties import PropertyId

WAIT_S = 30
VERSIONS = [Version.V3_1, Version.V3_1_1, Version.V5]


class Mqtt:
    """One connection."""

    def __init__(self, reader, writer, version):
        self.reader, self.writer, self.version = reader, writer, version
        self.framing = Framing(Limits(300_000_000, -1))
        self.framing.version = version
        self.last_id = 0
        self.connack = None
        # Messages that came while something else was waited for.
        self.waiting = []

    @classmethod
    @contextlib.asynccontextmanager
    async def raw(cls, broker, version=Version.V5, **options):
        """One that has said nothing."""
        port = broker if isinstance(broker, int) else broker.acceptors[0].port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, **options)
        try:
            yield cls(reader, writer, version)
        finally:
            writer.close()

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, broker, client_id="c", version=Version.V5, *, clean=True, **named):
        """One that has connected."""
        async with cls.raw(broker, version) as made:
            await made.connect(client_id, clean=clean, **named)
            yield made

    async def connect(self, client_id="c", *, clean=True, keep_alive_s=0, code=0, **named):
        """Send CONNECT; `expiry` and the like are properties, the rest are its fields."""
        properties = named.pop("properties", {})
        if "expiry" in named:
            properties = {**properties, PropertyId.SESSION_EXPIRY_INTERVAL: named.pop("expiry")}
        self.put(
            Connect(self.version, client_id, clean, keep_alive_s, properties=properties, **named)
        )
        self.connack = await self.get(Connack)
        assert self.connack.code == code, self.connack
        return self.connack

    def write(self, data):
        """Send bytes as they are."""
        self.writer.write(data)

    def put(self, packet):
        """Send a packet."""
        self.write(encode(packet, self.version))

    def new_id(self):
        self.last_id += 1
        return self.last_id

    async def next(self):
        """The next packet of the broker."""
        return await asyncio.wait_for(self._next(), WAIT_S)

    async def _next(self):
        while (found := self.framing.next()) is None:
            data = await self.reader.read(65536)
            if not data:
                raise EOFError
            self.framing.feed(data)
        return found

    async def get(self, kind, **fields):
        """The next packet, which has to be one of this kind with these fields."""
        packet = self.waiting.pop(0) if self.waiting else await self.next()
        assert isinstance(packet, kind), repr(packet)[:200]
        for name, value in fields.items():
            assert getattr(packet, name) == value, repr(packet)[:200]
        return packet

    async def answered(self, kind, **fields):
        """As get(), but for messages, which wait."""
        while isinstance(found := await self.next(), Publish):
            self.waiting.append(found)
        self.waiting, waiting = [found], self.waiting
        try:
            return await self.get(kind, **fields)
        finally:
            self.waiting = waiting

    async def ack(self, kind, packet_id, code=0):
        """The next packet but for messages: an acknowledgement."""
        return await self.answered(Acknowledgement, type=kind, packet_id=packet_id, code=code)

    def answer(self, kind, packet_id, code=0):
        self.put(Acknowledgement(kind, packet_id, code))

    async def publish(self, topic, payload=b"text", qos=1, *, code=0, properties=(), **fields):
        """Publish, and wait for what its QoS has."""
        packet_id = self.new_id() if qos else 0
        self.put(
            Publish(topic, payload, qos, packet_id=packet_id, properties=dict(properties), **fields)
        )
        if qos == 1:
            await self.ack(PacketType.PUBACK, packet_id, code)
        elif qos == 2:
            await self.ack(PacketType.PUBREC, packet_id, code)
            if code < 0x80:
                self.answer(PacketType.PUBREL, packet_id)
                await self.ack(PacketType.PUBCOMP, packet_id)
        return packet_id

    async def subscribe(self, *filters, qos=1, identifier=None, code=None, **options):
        """Subscribe to filters with the same options; the codes."""
        packet_id = self.new_id()
        properties = {}
        if identifier is not None:
            properties = {PropertyId.SUBSCRIPTION_IDENTIFIER: identifier}
        wanted = tuple(Filter(one, qos, **options) for one in filters)
        self.put(Subscribe(packet_id, wanted, properties))
        suback = await self.answered(Suback, type=PacketType.SUBACK, packet_id=packet_id)
        expected = qos if code is None else code
        assert suback.codes == (expected,) * len(filters), suback
        return suback

    async def unsubscribe(self, *filters):
        packet_id = self.new_id()
        self.put(Unsubscribe(packet_id, filters))
        return await self.answered(Suback, type=PacketType.UNSUBACK, packet_id=packet_id)

    async def message(self, *, acknowledges=True, **fields):
        """The next message, acknowledged to the end unless told otherwise."""
        found = await self.get(Publish, **fields)
        if acknowledges and found.qos == 1:
            self.answer(PacketType.PUBACK, found.packet_id)
        elif acknowledges and found.qos == 2:
            self.answer(PacketType.PUBREC, found.packet_id)
            await self.ack(PacketType.PUBREL, found.packet_id)
            self.answer(PacketType.PUBCOMP, found.packet_id)
        return found

    async def payloads(self, count):
        return [(await self.message()).payload for _ in range(count)]

    async def settle(self):
        """All that was sent has been looked at."""
        self.put(Ping(PacketType.PINGREQ))
        await self.get(Ping, type=PacketType.PINGRESP)

    async def disconnect(self, code=0, **properties):
        self.put(Disconnect(code, dict(properties.pop("properties", {}))))
        assert await self.is_closed()

    async def is_silent(self, seconds=0.2):
        """Whether nothing comes."""
        with contextlib.suppress(TimeoutError):
            data = await asyncio.wait_for(self.reader.read(1), seconds)
            raise AssertionError(f"{data!r} came")
        return True

    async def is_closed(self, code=None):
        """Wait until the broker closes the connection; with DISCONNECT if a code is named."""
        if code is not None:
            await self.get(Disconnect, code=code)
        with contextlib.suppress(ConnectionError, EOFError):
            rest = await self.next()
            raise AssertionError(f"{rest} came")
        return True
