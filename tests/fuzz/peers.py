"""Fuzz targets of bytes that come from a peer, before and behind its login: one for each protocol.

The first byte says how the rest is cut on its way, which must make no difference. Every message is
read as those read it who route, select and deliver it.
"""

from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.protocols.amqp.sasl import Sasl
from broker.protocols.core.errors import PacketFormatError
from broker.protocols.core.frames import FrameReader as CoreFrames
from broker.protocols.core.packets import decode_packet
from broker.protocols.core.versions import COMPATIBLE_VERSIONS
from broker.protocols.mqtt.encoding import encode
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.framing import Framing
from broker.protocols.mqtt.framing import Limits as MqttLimits
from broker.protocols.mqtt.packets import Part as MqttPart
from broker.protocols.mqtt.packets import Publish
from broker.protocols.mqtt.published_message import message_of
from broker.protocols.mqtt.versions import Version as MqttVersion
from broker.protocols.openwire.body_content import body_of
from broker.protocols.openwire.commands import ActiveMQBlobMessage, ActiveMQMessage
from broker.protocols.openwire.decoding import LooseReader, TightReader
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.framing import FrameReader as OpenWireFrames
from broker.protocols.openwire.sent_message import properties_of
from broker.protocols.openwire.wire_format import WireFormatInfo
from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.frames import FrameReader as StompFrames
from broker.protocols.stomp.frames import Limits as StompLimits
from broker.protocols.stomp.frames import Part as StompPart
from broker.protocols.stomp.versions import Version as StompVersion
from broker.records.amqp_message import AmqpMessage
from broker.selector import SelectorError, parse
from broker.transport.proxy_protocol import ProxyHeader, ProxyHeaderError

NOW_MS = 1_700_000_000_000
SIZE_MAX = 1 << 20
MQTT_VERSIONS = tuple(MqttVersion)
STOMP_VERSIONS = (None, *StompVersion)
OPENWIRE_MAX = 12


def pieces(data, how):
    """The bytes as they may come: whole, byte by byte, or cut once."""
    if how == 0:
        return [data]
    if how == 1:
        return [data[at : at + 1] for at in range(len(data))]
    middle = how * len(data) // 256
    return [data[:middle], data[middle:]]


def look_at(message):
    """What a broker asks of a message that it has taken."""
    assert isinstance(dict(message.properties), dict)
    _ = message.group_id, message.group_sequence, message.scheduled_ms, message.duplicate_id
    _ = message.reply_to, message.correlation_id, message.memory_size
    assert len(message.body) >= 0
    assert isinstance(message.record(), bytes)


def core(data):
    """A version of the Core protocol, a cut, and frames."""
    if len(data) < 2:
        return
    version, reader = COMPATIBLE_VERSIONS[data[0] % len(COMPATIBLE_VERSIONS)], CoreFrames()
    reader.size_max = SIZE_MAX
    try:
        for piece in pieces(data[2:], data[1]):
            for kind, _, body in reader.feed(piece):
                packet = decode_packet(kind, bytes(body), version)
                if isinstance(getattr(packet, "message", None), Message):
                    look_at(packet.message)
    except PacketFormatError:
        return


def openwire(data):
    """A version, an encoding and a cut, and frames."""
    if len(data) < 3:
        return
    version, reader_of = 1 + data[0] % OPENWIRE_MAX, (LooseReader, TightReader)[data[1] & 1]
    frames = OpenWireFrames(SIZE_MAX)
    try:
        for piece in pieces(data[3:], data[2]):
            frames.feed(piece)
            while (frame := frames.next()) is not None:
                if frame[:1] == b"\1":
                    WireFormatInfo.decode(frame)
                    continue
                command = reader_of(frame, version, has_stack_traces=False).command()
                is_blob = isinstance(command, ActiveMQBlobMessage)
                if isinstance(command, ActiveMQMessage) and not is_blob:
                    body_of(command)
                    properties_of(command, client_id="c", sets_duplicate_id=True, now_ms=NOW_MS)
    except OpenWireError:
        return


def mqtt_packets(data, version, how):
    """What a framing gives, parts of a payload put together, and the code of its error."""
    framing = Framing(MqttLimits(SIZE_MAX, 100))
    framing.version = version
    found = []
    try:
        for piece in pieces(data, how):
            framing.feed(piece)
            while (packet := framing.next()) is not None:
                if not isinstance(packet, MqttPart):
                    found.append(packet)
                elif isinstance(found[-1], bytes):
                    found[-1] += packet.data
                else:
                    found.append(packet.data)
    except MqttError as error:
        return found, error.code
    return found, None


def mqtt(data):
    """A version and a cut, and packets of either side."""
    if len(data) < 2:
        return
    version = MQTT_VERSIONS[data[0] % len(MQTT_VERSIONS)]
    found, code = mqtt_packets(data[2:], version, data[1])
    assert code is None or code >= 0x80
    whole = mqtt_packets(data[2:], version, 0)
    assert code == whole[1]
    assert code is not None or found == whole[0]
    for packet in found:
        if not isinstance(packet, bytes) and not getattr(packet, "is_streamed", False):
            again, _ = mqtt_packets(encode(packet, version), version, 0)
            assert again == [packet]
        if isinstance(packet, Publish):
            look_at(
                message_of(
                    "a",
                    packet.payload,
                    qos=packet.qos,
                    retain=packet.retain,
                    properties=packet.properties,
                    client_id="c",
                    routing_type=None,
                    now_ms=NOW_MS,
                )
            )


def stomp_frames(data, version, how):
    """What a reader gives, parts of a body put together, and the text of its error."""
    reader = StompFrames(StompLimits(2000, 30, 4000, 500))
    reader.version = version
    found = []
    try:
        for piece in pieces(data, how):
            reader.feed(piece)
            while (frame := reader.next()) is not None:
                if isinstance(frame, StompPart):
                    found[-1][2] += frame.data
                else:
                    found.append([frame.command, frame.headers, bytes(frame.body)])
    except StompError as error:
        return found, error.text
    return found, None


def stomp(data):
    """A version and a cut, and frames of a client."""
    if len(data) < 2:
        return
    version = STOMP_VERSIONS[data[0] % len(STOMP_VERSIONS)]
    found, text = stomp_frames(data[2:], version, data[1])
    whole = stomp_frames(data[2:], version, 0)
    assert (text is None) == (whole[1] is None)
    assert text is not None or found == whole[0]


def amqp(data):
    """A message's sections, taken from a link, sent on, and read by clients of other protocols."""
    try:
        message = AmqpMessage.received(data, None, NOW_MS)
    except RecordFormatError:
        return
    assert message.to_deliver(0) or not data
    look_at(message)
    again = AmqpMessage.received(message.to_deliver(3), None, NOW_MS)
    assert bytes(again.body) == bytes(message.body)


def sasl(data):
    """A cut, and what comes before AMQP."""
    if not data:
        return
    written = []
    whole, cut = (
        Sasl(("PLAIN", "ANONYMOUS"), lambda user, _: user, None, written.append) for _ in range(2)
    )
    wanted, found = whole.receive(data[1:]), b""
    for piece in pieces(data[1:], data[0]):
        found += piece if cut.is_done else cut.receive(piece)
    assert found == wanted
    assert (cut.is_done, cut.is_refused, cut.user) == (whole.is_done, whole.is_refused, whole.user)


def selector(data):
    """The text of a selector, asked of a message."""
    message = Message("a", b"", durable=True)
    try:
        found = parse(data.decode(errors="surrogateescape"))
    except SelectorError:
        return
    if found is not None:
        assert found.matches(message) in (True, False)


def proxy(data):
    """The header of the PROXY protocol."""
    header, at = ProxyHeader(), 0
    try:
        while header.wanted and at < len(data) and header.found is None:
            part = data[at : at + header.wanted]
            at += len(part)
            header.feed(part)
    except ProxyHeaderError:
        return


TARGETS = {
    "core": core,
    "openwire": openwire,
    "mqtt": mqtt,
    "stomp": stomp,
    "amqp": amqp,
    "sasl": sasl,
    "selector": selector,
    "proxy": proxy,
}
