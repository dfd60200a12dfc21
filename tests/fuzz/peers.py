"""Fuzz targets of bytes that come from a peer, before and behind its login: one for each protocol.

In front of them stands how they are cut on their way, which must make no difference. Every message
is read as those read it who route, select and deliver it.
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
from tests.broker.selector.test_artemis_cases import message as selected_message

NOW_MS = 1_700_000_000_000
SIZE_MAX = 1 << 20
MQTT_VERSIONS = tuple(MqttVersion)
STOMP_VERSIONS = (None, *StompVersion)
OPENWIRE_MAX = 12
SELECTED = selected_message()


def pieces(data, how):
    """The bytes as they may come: whole, byte by byte, or cut once."""
    if how == 0:
        return [data]
    if how == 1:
        return [data[at : at + 1] for at in range(len(data))]
    middle = how * len(data) // 256
    return [data[:middle], data[middle:]]


def given(reader, data, how, error_type):
    """All that a reader gives of bytes, and its error."""
    found = []
    try:
        for piece in pieces(data, how):
            reader.feed(piece)
            while (one := reader.next()) is not None:
                found.append(one)
    except error_type as error:
        return found, error
    return found, None


def joined(found, part_type):
    """The same with the parts of a body put together, however many they are."""
    made = []
    for one in found:
        if not isinstance(one, part_type):
            made.append(one)
        elif isinstance(made[-1], bytes):
            made[-1] += one.data
        else:
            made.append(one.data)
    return made


def look_at(message):
    """Ask of a message what a broker does that has taken it."""
    _ = dict(message.properties), message.body, message.record()
    _ = message.group_id, message.group_sequence, message.scheduled_ms, message.duplicate_id
    _ = message.reply_to, message.correlation_id, message.memory_size


def core_frames(data, how):
    """Frames of the Core protocol; None where a length cannot be."""
    reader = CoreFrames(size_max=SIZE_MAX)
    try:
        return [
            (kind, channel, bytes(body))
            for piece in pieces(data, how)
            for kind, channel, body in reader.feed(piece)
        ]
    except PacketFormatError:
        return None


def core(data):
    """A version of the Core protocol, a cut, and frames."""
    if len(data) < 2:
        return
    version = COMPATIBLE_VERSIONS[data[0] % len(COMPATIBLE_VERSIONS)]
    frames = core_frames(data[2:], data[1])
    assert frames == core_frames(data[2:], 0)
    try:
        for kind, _, body in frames or ():
            packet = decode_packet(kind, body, version)
            if isinstance(getattr(packet, "message", None), Message):
                look_at(packet.message)
    except PacketFormatError:
        return


def openwire(data):
    """A version, an encoding and a cut, and frames."""
    if len(data) < 3:
        return
    version, reader_of = 1 + data[0] % OPENWIRE_MAX, (LooseReader, TightReader)[data[1] & 1]
    frames, _ = given(OpenWireFrames(SIZE_MAX), data[3:], data[2], OpenWireError)
    assert frames == given(OpenWireFrames(SIZE_MAX), data[3:], 0, OpenWireError)[0]
    try:
        for frame in frames:
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
    """Packets and payloads, and the code of the error."""
    framing = Framing(MqttLimits(SIZE_MAX, 100))
    framing.version = version
    found, error = given(framing, data, how, MqttError)
    return joined(found, MqttPart), None if error is None else error.code


def mqtt(data):
    """A version and a cut, and packets of either side."""
    if len(data) < 2:
        return
    version = MQTT_VERSIONS[data[0] % len(MQTT_VERSIONS)]
    found, code = mqtt_packets(data[2:], version, data[1])
    whole = mqtt_packets(data[2:], version, 0)
    assert code == whole[1]
    assert code is None or code >= 0x80
    # Before an error less of a payload may have been given than there is.
    assert code is not None or found == whole[0]
    for packet in found:
        if not isinstance(packet, bytes) and not getattr(packet, "is_streamed", False):
            assert mqtt_packets(encode(packet, version), version, 0) == ([packet], None)
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
    """Frames and bodies, and the text of the error."""
    reader = StompFrames(StompLimits(2000, 30, 4000, 500))
    reader.version = version
    found, error = given(reader, data, how, StompError)
    shown = [
        one if isinstance(one, bytes) else (one.command, one.headers, bytes(one.body))
        for one in joined(found, StompPart)
    ]
    return shown, None if error is None else error.text


def stomp(data):
    """A version and a cut, and frames of a client."""
    if len(data) < 2:
        return
    version = STOMP_VERSIONS[data[0] % len(STOMP_VERSIONS)]
    found, text = stomp_frames(data[2:], version, data[1])
    whole = stomp_frames(data[2:], version, 0)
    # What a text shows of the bytes is as much as was there.
    assert (text is None) == (whole[1] is None)
    assert text is not None or found == whole[0]


def amqp(data):
    """A message's sections, taken from a link, sent on, and read by clients of other protocols."""
    try:
        message = AmqpMessage.received(data, None, NOW_MS)
    except RecordFormatError:
        return
    look_at(message)
    # The least that goes on is nothing: delivery annotations are for the broker alone.
    message.to_deliver(0)
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
    try:
        found = parse(data.decode(errors="surrogateescape"))
    except SelectorError:
        return
    if found is not None:
        assert found.matches(SELECTED) in (True, False)


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
