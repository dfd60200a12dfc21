"""Damaged packets, whole conversations of them: each is refused by name, and nothing stays of it.

A conversation is cut at each byte, is shuffled and changed by chance, or ends with one of those in
the tables. The broker is a running one; sockets are stand-ins, so that an exception comes to the
test.
"""

import asyncio
import contextlib
import gc
import itertools
import logging
import random
import weakref

import pytest

from broker.protocols.mqtt.encoding import encode
from broker.protocols.mqtt.factory import MQTT
from broker.protocols.mqtt.framing import Framing, Limits
from broker.protocols.mqtt.packets import (
    Acknowledgement,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Filter,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    Unsubscribe,
    Will,
)
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.protocol import MqttProtocol
from broker.protocols.mqtt.reason_codes import FAILURE, ReasonCode
from broker.protocols.registry import read_parameters
from tests.broker.protocols.mqtt.client import VERSIONS
from tests.broker.protocols.stomp.client import serving
from tests.interop.asynchronous import asynchronous

V3, V4, V5 = VERSIONS
MALFORMED, PROTOCOL = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR
NUMBERS = itertools.count(1)


class Socket:
    """A `Peer` that keeps what is written."""

    remote, local = "peer", "here"
    principal = None
    router = ""
    created_ms = 0
    handshake_timeout_s = 10
    is_paused = False
    silent_s = 0.0

    def __init__(self):
        self.connection_id = f"{next(NUMBERS):08x}"
        self.written = bytearray()
        self.is_open = True
        self.holds = 0

    def hold_reading(self):
        self.holds += 1

    def release_reading(self):
        self.holds -= 1

    def write(self, data):
        if self.is_open:
            self.written += data

    def close(self):
        self.is_open = False

    abort = close


class Room:
    """A broker whose MQTT is spoken to without sockets."""

    def __init__(self, broker):
        self.broker = broker
        self.protocol = MqttProtocol(broker.clients)
        self.parameters = read_parameters(MQTT, {"maximumPacketSize": "100000"})
        self._sockets = weakref.WeakSet()

    async def told(self, version, *pieces):
        """Likewise, and packets."""
        is_left, data = await self.said(*pieces)
        return is_left, packets(data, version)

    async def said(self, *pieces):
        """Whether a client that says this is left, before it goes; and the bytes it was told."""
        socket = Socket()
        self._sockets.add(socket)
        connection = self.protocol.connect(socket, self.parameters)
        for data in pieces:
            connection.receive(data)
            # What is durable is answered behind this turn.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        is_left = not socket.is_open
        connection.lost(None)
        return is_left, bytes(socket.written)

    def holds_nothing(self):
        """No connection, no session and no queue is left, nor an object of theirs."""
        clients = self.broker.clients
        assert not clients.connections
        assert not clients.sessions
        assert not len(self.protocol.states)
        # But for what was retained.
        queues = self.broker.parts.postoffice.addresses.queues
        assert all(name.startswith("$sys.mqtt.retain.") for name in queues), queues
        gc.collect()
        # A connection holds its socket.
        return not self._sockets


def packets(data, version):
    framing = Framing(Limits(2**28, -1))
    framing.version = version
    framing.feed(data)
    found = []
    while (one := framing.next()) is not None:
        found.append(one)
    assert not framing.has_partial
    return found


@contextlib.asynccontextmanager
async def room(caplog):
    """A broker; at the end it holds nothing, and has logged no exception."""
    async with serving() as broker:
        made = Room(broker)
        with caplog.at_level(logging.WARNING):
            yield made
        assert made.holds_nothing()
    wrong = [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
    assert wrong == []


def conversation(version):
    """A packet of each kind that a client sends; its session ends with it."""
    is_5 = version is V5

    def with_(**properties):
        return {PropertyId[name]: value for name, value in properties.items()} if is_5 else {}

    pairs = [("name", "value"), ("", "")]
    will = Will("w/t", b"gone", 1, False, with_(WILL_DELAY_INTERVAL=0, USER_PROPERTY=pairs))
    hello = with_(RECEIVE_MAXIMUM=9, MAXIMUM_PACKET_SIZE=5000, TOPIC_ALIAS_MAXIMUM=3)
    about = with_(PAYLOAD_FORMAT_INDICATOR=1, MESSAGE_EXPIRY_INTERVAL=100, CONTENT_TYPE="x")
    options = (True, True, 1) if is_5 else ()
    ours = with_(SUBSCRIPTION_IDENTIFIER=7)
    return [
        Connect(version, "client", True, 30, will, "user", b"secret", hello),
        Subscribe(1, (Filter("t/+", 2, *options), Filter("a/#", 1)), ours),
        Publish("t/a", b"text", 0, properties=with_(TOPIC_ALIAS=1)),
        Publish("t/a", b"text", 1, packet_id=2, properties={**about, **with_(RESPONSE_TOPIC="r")}),
        Publish("t/b", b"text", 2, retain=False, packet_id=3, properties=about),
        Acknowledgement(PacketType.PUBREL, 3),
        Acknowledgement(PacketType.PUBACK, 1, 0x10 if is_5 else 0, with_(REASON_STRING="why")),
        Acknowledgement(PacketType.PUBREC, 2),
        Acknowledgement(PacketType.PUBCOMP, 2),
        Ping(PacketType.PINGREQ),
        Unsubscribe(4, ("t/+", "a/#"), with_(USER_PROPERTY=pairs)),
        Disconnect(4 if is_5 else 0, with_(SESSION_EXPIRY_INTERVAL=0)),
    ]


def encoded(version):
    return [encode(one, version) for one in conversation(version)]


def is_valid(told, version):
    """Whether an end is told, if at all, last and by a code of the protocol."""
    ends = [one.code for one in told if isinstance(one, Disconnect)]
    if version is not V5 or not ends:
        return not ends
    return len(ends) == 1 and told[-1].code == ends[0] in range(FAILURE, 0xA3)


# --- what a damage is called --------------------------------------------------------------------

# Behind a CONNECT that was taken. Spaces are for the reader; a code is what MQTT 5 is told.
DAMAGED = {
    "a type that is none": ("00 00", VERSIONS, MALFORMED),
    "AUTH where there is none": ("f0 00", (V3, V4), MALFORMED),
    "AUTH that was not asked for": ("f0 00", (V5,), PROTOCOL),
    "a size without end": ("30 ff ff ff ff 01", VERSIONS, MALFORMED),
    "a size longer than need be": ("30 84 00 00 01 74 00", (V5,), MALFORMED),
    "more than the acceptor takes": (
        "30 a1 8d 06 00 01 74",
        VERSIONS,
        ReasonCode.PACKET_TOO_LARGE,
    ),
    "QoS 3": ("36 05 00 01 74 00 01", VERSIONS, MALFORMED),
    "DUP of QoS 0": ("38 03 00 01 74", (V4,), MALFORMED),
    "a packet id of 0": ("32 05 00 01 74 00 00", (V3, V4), MALFORMED),
    "a packet id that is cut": ("32 04 00 01 74 00", VERSIONS, MALFORMED),
    "a topic beyond the packet": ("30 03 00 05 61", VERSIONS, MALFORMED),
    "no topic": ("30 00", VERSIONS, MALFORMED),
    "an empty topic": ("30 02 00 00", (V3, V4), PROTOCOL),
    "an empty topic without an alias": ("30 03 00 00 00", (V5,), PROTOCOL),
    "a topic with a wildcard": ("30 03 00 01 23", (V3, V4), ReasonCode.TOPIC_NAME_INVALID),
    "NUL in a topic": ("30 03 00 01 00", (V3, V4), MALFORMED),
    "a topic that is not UTF-8": ("30 03 00 01 ff", (V3, V4), MALFORMED),
    "a surrogate in a topic": ("30 05 00 03 ed a0 80", (V3, V4), MALFORMED),
    "a longer form of / in a topic": ("30 04 00 02 c0 af", (V3, V4), MALFORMED),
    "properties beyond the packet": ("30 04 00 01 74 05", (V5,), MALFORMED),
    "a property of no number": ("30 06 00 01 74 02 7f 00", (V5,), MALFORMED),
    "a property of another packet": ("30 09 00 01 74 05 11 00 00 00 01", (V5,), MALFORMED),
    "a property twice": ("30 08 00 01 74 04 01 00 01 00", (V5,), PROTOCOL),
    "a property out of range": ("30 06 00 01 74 02 01 02", (V5,), PROTOCOL),
    "half a user property": ("30 08 00 01 74 04 26 00 01 61", (V5,), MALFORMED),
    "a topic alias of 0": ("30 07 00 01 74 03 23 00 00", (V5,), ReasonCode.TOPIC_ALIAS_INVALID),
    "an unknown topic alias": ("30 06 00 00 03 23 00 09", (V5,), ReasonCode.TOPIC_ALIAS_INVALID),
    "a subscription identifier of a client": ("30 06 00 01 74 02 0b 01", (V5,), PROTOCOL),
    "a response topic with a wildcard": ("30 08 00 01 74 04 08 00 01 23", (V5,), PROTOCOL),
    "flags of PUBACK": ("41 02 00 01", VERSIONS, MALFORMED),
    "a PUBACK without an id": ("40 00", VERSIONS, MALFORMED),
    "a PUBACK with an id of 0": ("40 02 00 00", VERSIONS, MALFORMED),
    "a PUBACK that is too long": ("40 03 00 01 00", (V3, V4), MALFORMED),
    "a PUBACK with a code of no meaning": ("40 03 00 01 77", (V5,), MALFORMED),
    "a PUBREL without its flag": ("60 02 00 01", VERSIONS, MALFORMED),
    "a SUBSCRIBE without its flag": ("80 06 00 01 00 01 74 00", VERSIONS, MALFORMED),
    "a SUBSCRIBE without a filter": ("82 02 00 01", (V3, V4), PROTOCOL),
    "a SUBSCRIBE without a filter, of 5": ("82 03 00 01 00", (V5,), PROTOCOL),
    "a SUBSCRIBE with an id of 0": ("82 06 00 00 00 01 74 00", VERSIONS, MALFORMED),
    "a SUBSCRIBE without options": ("82 05 00 01 00 01 74", (V3, V4), MALFORMED),
    "a SUBSCRIBE of QoS 3": ("82 06 00 01 00 01 74 03", (V3, V4), MALFORMED),
    "a SUBSCRIBE with reserved options": ("82 07 00 01 00 00 01 74 c0", (V5,), MALFORMED),
    "a SUBSCRIBE with retain handling 3": ("82 07 00 01 00 00 01 74 30", (V5,), PROTOCOL),
    "a subscription identifier of 0": ("82 09 00 01 02 0b 00 00 01 74 00", (V5,), PROTOCOL),
    "an UNSUBSCRIBE without a filter": ("a2 02 00 01", (V3, V4), PROTOCOL),
    "an UNSUBSCRIBE without its flag": ("a0 05 00 01 00 01 74", VERSIONS, MALFORMED),
    "a PINGREQ with a body": ("c0 01 00", VERSIONS, MALFORMED),
    "a DISCONNECT with a body": ("e0 01 00", (V3, V4), MALFORMED),
    "a DISCONNECT with a code of no meaning": ("e0 01 77", (V5,), MALFORMED),
    "a packet of servers: CONNACK": ("20 02 00 00", (V3, V4), PROTOCOL),
    "a packet of servers: SUBACK": ("90 03 00 01 00", (V3, V4), PROTOCOL),
    "a packet of servers: UNSUBACK": ("b0 02 00 01", (V3, V4), PROTOCOL),
    "a packet of servers: PINGRESP": ("d0 00", VERSIONS, PROTOCOL),
}

MQIsdp, MQTT4, MQTT5 = "0006 4d5149736470 03", "0004 4d515454 04", "0004 4d515454 05"
# The first packet: flags, keep-alive and what follows, behind the name; None: nothing is answered.
CONNECTS = {
    "it is cut": (MQTT4, "02 003c 0005 61", V4, None),
    "it is cut, of 5": (MQTT5, "02 003c 00 0005 61", V5, MALFORMED),
    "there is more": (MQTT4, "02 003c 0001 61 00", V4, None),
    "there is more, of 5": (MQTT5, "02 003c 00 0001 61 00", V5, MALFORMED),
    "the reserved flag": (MQTT4, "03 003c 0001 61", V4, None),
    "the reserved flag, of 5": (MQTT5, "03 003c 00 0001 61", V5, MALFORMED),
    "a will of QoS 3": (MQIsdp, "1e 003c 0001 61 0001 77 0000", V3, None),
    "flags of a will without one": (MQTT4, "22 003c 0001 61", V4, None),
    "a will that is cut": (MQTT5, "06 003c 00 0001 61 00 0001", V5, MALFORMED),
    "a will to a wildcard": (
        MQTT5,
        "06 003c 00 0001 61 00 0001 23 0000",
        V5,
        ReasonCode.TOPIC_NAME_INVALID,
    ),
    "a password without a user": (MQTT4, "42 003c 0001 61 0001 70", V4, None),
    "no user where there is a flag": (MQTT4, "82 003c 0001 61", V4, None),
    "a client id that is not UTF-8": (MQTT4, "02 003c 0001 ff", V4, None),
    "a client id that is not UTF-8, of 5": (MQTT5, "02 003c 00 0001 ff", V5, MALFORMED),
    "a client id too long for 3.1": (MQIsdp, "02 003c 0018" + "61" * 24, V3, 2),
    "no client id in 3.1": (MQIsdp, "02 003c 0000", V3, 2),
    "a session without a client id": (MQTT4, "00 003c 0000", V4, 2),
    "a receive maximum of 0": (MQTT5, "02 003c 03 210000 0001 61", V5, PROTOCOL),
    "a packet size of 0": (MQTT5, "02 003c 05 2700000000 0001 61", V5, PROTOCOL),
    "a property twice": (MQTT5, "02 003c 06 210001 210001 0001 61", V5, PROTOCOL),
    "data of no authentication": (MQTT5, "02 003c 04 16000161 0001 61", V5, PROTOCOL),
    "an authentication that is not known": (
        MQTT5,
        "02 003c 04 15000161 0001 61",
        V5,
        ReasonCode.BAD_AUTHENTICATION_METHOD,
    ),
    "level 2": ("0006 4d5149736470 02", "02 003c 0001 61", V4, 1),
    "level 6": ("0004 4d515454 06", "02 003c 0001 61", V5, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
    "another name": ("0004 4d515458 04", "02 003c 0001 61", V4, None),
}


@asynchronous
async def test_a_damaged_packet_ends_the_connection_with_its_reason(caplog):
    wrong = []
    async with room(caplog) as it:
        for what, (text, versions, code) in DAMAGED.items():
            for version in versions:
                hello, *_ = encoded(version)
                is_left, told = await it.told(version, hello, bytes.fromhex(text))
                codes = [one.code for one in told if isinstance(one, Disconnect)]
                if not is_left or codes != ([code] if version is V5 else []):
                    wrong.append((what, version.name, is_left, told))

    assert wrong == []


@asynchronous
async def test_a_damaged_connect_is_refused_with_its_reason(caplog):
    wrong = []
    async with room(caplog) as it:
        for what, (name, rest, version, code) in CONNECTS.items():
            body = bytes.fromhex(name + rest)
            is_left, told = await it.told(version, bytes((0x10, len(body))) + body)
            if not is_left or [one.code for one in told] != ([] if code is None else [code]):
                wrong.append((what, is_left, told))

    assert wrong == []


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_only_connect_comes_first(version, caplog):
    async with room(caplog) as it:
        for packet in [*conversation(version)[1:], Auth() if version is V5 else Disconnect()]:
            assert await it.said(encode(packet, version)) == (True, b"")
        is_left, told = await it.told(version, *encoded(version)[:1] * 2)

    # Of a second one the first is told.
    assert is_left
    assert [type(one) for one in told] == [Connack] + [Disconnect] * (version is V5)


@asynchronous
async def test_a_second_connect_of_a_version_that_there_is_not_is_a_protocol_error(caplog):
    async with room(caplog) as it:
        first = encoded(V5)[0]
        second = bytearray(first)
        second[first.index(b"MQTT") + 4] = 9
        is_left, told = await it.told(V5, first, bytes(second))

    assert is_left
    # 0x84 is for CONNACK alone.
    assert [one.code for one in told] == [0, ReasonCode.PROTOCOL_ERROR]


# --- whole conversations ------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_conversation_may_be_cut_anywhere(version, caplog):
    async with room(caplog) as it:
        sent = b"".join(encoded(version))
        for size in range(len(sent)):
            is_left, told = await it.told(version, sent[:size])

            assert not is_left
            assert not any(isinstance(one, Disconnect) for one in told)
        is_left, told = await it.told(version, *(bytes((one,)) for one in sent))
        assert is_left
        assert not any(isinstance(one, Disconnect) for one in told)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_what_is_shuffled_and_damaged_is_another_packet_or_refused(
    version, caplog, effort, figures
):
    seeded, count = random.Random(version), effort(100_000, least=300)
    async with room(caplog) as it:
        for number in range(count):
            hello, *parts = encoded(version)
            said = bytearray(b"".join(seeded.choices(parts[:-1], k=5)))
            for _ in range(seeded.randrange(1, 5)):
                at = seeded.randrange(len(said))
                kind = seeded.randrange(4)
                if kind == 0:
                    said[at] = seeded.randrange(256)
                elif kind == 1:
                    del said[at : at + seeded.randrange(1, 9)]
                elif kind == 2:
                    said[at:at] = seeded.randbytes(seeded.randrange(1, 9))
                else:
                    said[at:at] = said[at : at + seeded.randrange(1, 30)]
                said = said or bytearray(1)
            at = seeded.randrange(len(said) + 1)
            _, told = await it.told(version, hello, bytes(said[:at]), bytes(said[at:]))

            assert is_valid(told, version), (number, bytes(said), told)
    figures(f"damaged packets of MQTT {version.name}", conversations=count)


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_size_that_is_only_told_takes_no_memory(version, caplog):
    """As many bytes are kept as came, and no more than a packet may have."""
    async with room(caplog) as it:
        socket = Socket()
        connection = it.protocol.connect(socket, it.parameters)
        connection.receive(encoded(version)[0])
        await asyncio.sleep(0)
        # A PUBLISH of nearly all that the acceptor takes, and one byte a time of it.
        connection.receive(bytes.fromhex("30 90 8d 06 00 01 74"))
        connection.receive(b"x")
        assert len(connection._framing._buffer) == 8
        connection.lost(None)

        # Before anybody is known it is 1 MiB, however much is told.
        for told in ("10 80 80 80 7f", "10 ff ff ff 7f"):
            is_left, _ = await it.said(bytes.fromhex(told + "0004 4d515454 04"))
            assert is_left
        del connection, socket
