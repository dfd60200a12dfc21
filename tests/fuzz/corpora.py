"""What fuzzing begins with: bytes of real brokers and clients, by the names of the targets."""

from websockets.frames import Frame, Opcode

from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.protocols.mqtt.versions import Version
from broker.protocols.openwire.wire_format import own_wire_format
from broker.records.core_to_amqp import sections_of
from journal.reader import FileView
from tests.broker.protocols.amqp.test_frames import conversation as amqp_conversation
from tests.broker.protocols.core.test_captured import frames as core_frames
from tests.broker.protocols.mqtt.test_damaged_packets import DAMAGED, encoded
from tests.broker.protocols.openwire.test_codec import GOLDEN as OPENWIRE
from tests.broker.protocols.stomp.test_frames import CONVERSATION
from tests.broker.selector.test_artemis_cases import MATCHING
from tests.broker.test_proxy_protocol import HEADERS

NOW_MS = 1_700_000_000_000
# In front of bytes: the newest version, and that they come at once.
OPENWIRE_SAID = (
    *("ConnectionInfo", "SessionInfo", "ProducerInfo", "ActiveMQTextMessage", "ConsumerInfo"),
    *("TransactionInfo", "MessageAck", "RemoveInfo"),
)
CORE_136, MQTT_VERSIONS = bytes((15, 0)), tuple(Version)


def of_files(name, files):
    """Inputs of the targets of `disk`.

    Args:
        name: of the target.
        files: bytes of journal files.
    """
    if name in ("read", "load"):
        yield from (b"\x40\x00" * (name == "load") + file for file in files)
        return
    for file in files:
        try:
            records = list(FileView("x-1.amq", file))
        except Exception:  # noqa: BLE001 - some scenarios are refused: left out.
            continue
        for record in records:
            if record.body is None:
                continue
            if name == "record" and record.user_type is not None:
                yield bytes([record.user_type, record.kind.startswith("update")]) + record.body
            elif name == "control":
                yield record.body


def core():
    """Frames between Artemis's client and its broker, one by one and many."""
    sent = [data for side, data in core_frames() if side == "C"]
    return [CORE_136 + data for _, data in core_frames()] + [CORE_136 + b"".join(sent[:40])]


def openwire():
    """Commands of Classic's client in each version and encoding."""
    return [
        bytes((int(version) - 1, encoding == "tight", 0)) + bytes.fromhex(text)
        for version, encoding, _, text in OPENWIRE
    ]


def mqtt():
    """A conversation, its packets, and damaged ones."""
    made = []
    for number, version in enumerate(MQTT_VERSIONS):
        packets = encoded(version)
        damaged = [bytes.fromhex(text) for text, *_ in DAMAGED.values()]
        made += [bytes((number, 0)) + one for one in (*packets, b"".join(packets), *damaged)]
    return made


def stomp():
    """A conversation in each version, whole and cut."""
    return [bytes((version, how)) + CONVERSATION for version in range(4) for how in (0, 1, 100)]


def amqp():
    """Messages with all kinds of properties and bodies."""
    made = []
    for kind in (0, 2, 3, 4, 5, 6):
        message = Message(
            "queue://a",
            b"\0\0\0\0" * 8,
            type=kind,
            durable=bool(kind & 1),
            expiration=NOW_MS + 1000,
            timestamp=NOW_MS,
            properties=[
                Property("text", PropertyType.STRING, "x"),
                Property("number", PropertyType.INT, 7),
                Property("bytes", PropertyType.BYTES, b"\0\1"),
                Property("_AMQ_GROUP_ID", PropertyType.STRING, "g"),
                Property("JMSCorrelationID", PropertyType.STRING, "ID:c"),
            ],
        )
        made.append(sections_of(message, NOW_MS, 2))
    return made


def sasl():
    """Logins with and without a password, and none."""

    def frame(fields):
        body = b"\0\x53\x41\xc0" + bytes((len(fields) + 1, 3)) + fields
        return (8 + len(body)).to_bytes(4, "big") + b"\2\1\0\0" + body

    plain = frame(b"\xa3\5PLAIN\xa0\5\0me\0p\x40")
    anonymous = frame(b"\xa3\x09ANONYMOUS\x40\x40")
    header, amqp_header = b"AMQP\3\1\0\0", b"AMQP\0\1\0\0"
    logins = [header + plain + amqp_header, header + anonymous + amqp_header, amqp_header]
    return [bytes((how,)) + login for login in logins for how in (0, 1)]


def selector():
    """Artemis's own cases."""
    return [text.encode() for text in MATCHING]


def proxy():
    """Headers of both versions."""
    return [data for data, _ in HEADERS.values()]


OF_PEERS = {
    made.__name__: made for made in (core, openwire, mqtt, stomp, amqp, sasl, selector, proxy)
}
"""By the names of the targets of `peers`."""


def conversations():
    """What clients say from their first byte on, one of each protocol."""
    said = [data for side, data in core_frames() if side == "C"]
    openwire_said = [
        bytes.fromhex(text)
        for kind in OPENWIRE_SAID
        for version, encoding, name, text in OPENWIRE
        if (version, encoding, name) == ("12", "loose", kind)
    ]
    wire_format = own_wire_format(
        max_inactivity_ms=30_000, initial_delay_ms=10_000, max_frame_size=2**20
    )
    wire_format.properties["TightEncodingEnabled"] = False
    hello = b"CONNECT\naccept-version:1.0,1.1,1.2\nhost:h\n\n\0"
    return [
        b"ARTEMIS" + b"".join(said[:40]),
        amqp_conversation(),
        *(b"".join(encoded(version)) for version in MQTT_VERSIONS),
        hello + CONVERSATION,
        wire_format.encode() + b"".join(openwire_said),
    ]


def port():
    """Conversations, and an upgrade to a WebSocket."""
    upgrade = b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    upgrade += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    made = [*conversations(), *(upgrade + one for one in web_socket_frames())]
    return [bytes((how,)) + one for one in made for how in (0, 128)]


def web_socket_frames():
    """Conversations as messages, whole and in two frames."""
    made = []
    for one in conversations():
        middle = len(one) // 2
        whole = Frame(Opcode.BINARY, one).serialize(mask=True)
        first = Frame(Opcode.TEXT, one[:middle], fin=False).serialize(mask=True)
        rest = Frame(Opcode.CONT, one[middle:]).serialize(mask=True)
        ping, end = Frame(Opcode.PING, b"p"), Frame(Opcode.CLOSE, b"\x03\xe8")
        made += [
            whole + ping.serialize(mask=True) + end.serialize(mask=True),
            first + rest,
        ]
    return made


def web_socket():
    """Frames, whole and cut."""
    return [bytes((how,)) + one for one in web_socket_frames() for how in (0, 128)]


OF_CONNECTIONS = {made.__name__: made for made in (port, web_socket)}
"""By the names of the targets of `connections`."""
