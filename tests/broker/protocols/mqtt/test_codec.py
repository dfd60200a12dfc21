"""Packets: all of them, both ways, however they are cut; and what is refused, by which reason."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocols.mqtt.decoding import decode
from broker.protocols.mqtt.encoding import encode
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.framing import HEAD_MAX, Framing, Limits
from broker.protocols.mqtt.packets import (
    Acknowledgement,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Filter,
    PacketType,
    Part,
    Ping,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Will,
)
from broker.protocols.mqtt.properties import _KINDS, WILL, PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.versions import Version

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBERS = {0: 0xFF, 1: 0xFFFF, 2: 2**32 - 1, 3: 2**28 - 1}
IDS = st.integers(1, 0xFFFF)
VERSIONS = st.sampled_from(list(Version))


def values(which, packet):
    """Values of a property in a packet."""
    kind = _KINDS[which]
    if kind.type in NUMBERS:
        made = st.integers(kind.least, min(kind.most, NUMBERS[kind.type]))
        repeated = which == PropertyId.SUBSCRIPTION_IDENTIFIER and packet == PacketType.PUBLISH
        return st.lists(made, min_size=1, max_size=3) if repeated else made
    if kind.type == 4:
        return TEXTS
    if kind.type == 5:
        return st.binary(max_size=20)
    return st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3)


def properties(packet, version):
    if version is not Version.V5:
        return st.just({})
    found = [one for one in PropertyId if packet in _KINDS[one].packets]
    return st.fixed_dictionaries({}, optional={one: values(one, packet) for one in found})


@st.composite
def packets(draw, version):
    """Any packet of a version."""
    kind = draw(st.sampled_from(list(PacketType)))
    is_5 = version is Version.V5

    def of(packet=kind):
        return draw(properties(packet, version))

    if kind is PacketType.CONNECT:
        will = None
        if draw(st.booleans()):
            will = Will(
                draw(TEXTS),
                draw(st.binary(max_size=9)),
                draw(st.integers(0, 2)),
                draw(st.booleans()),
                of(WILL),
            )
        user = draw(st.none() | TEXTS)
        password = draw(st.none() | st.binary(max_size=9)) if user is not None or is_5 else None
        found = of()
        if PropertyId.AUTHENTICATION_DATA in found:
            found.setdefault(PropertyId.AUTHENTICATION_METHOD, "m")
        client_id = draw(TEXTS)
        if version is Version.V3_1:
            client_id = client_id or "c"
        keep_alive = draw(st.integers(0, 0xFFFF))
        clean = draw(st.booleans())
        return Connect(version, client_id, clean, keep_alive, will, user, password, found)
    if kind is PacketType.CONNACK:
        return Connack(draw(st.booleans()), draw(st.integers(0, 255)), of())
    if kind is PacketType.PUBLISH:
        qos = draw(st.integers(0, 2))
        return Publish(
            draw(TEXTS),
            draw(st.binary(max_size=300)),
            qos,
            draw(st.booleans()),
            draw(st.booleans()) if qos else False,
            draw(IDS) if qos else 0,
            of(),
        )
    if kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP):
        is_first = kind in (PacketType.PUBACK, PacketType.PUBREC)
        code = draw(st.sampled_from([0, 0x10, 0x87] if is_first else [0, 0x92])) if is_5 else 0
        return Acknowledgement(kind, draw(IDS), code, of())
    if kind is PacketType.SUBSCRIBE:
        option = st.booleans() if is_5 else st.just(False)
        handling = st.integers(0, 2) if is_5 else st.just(0)
        one = st.builds(Filter, TEXTS, st.integers(0, 2), option, option, handling)
        filters = draw(st.lists(one, min_size=1, max_size=4))
        return Subscribe(draw(IDS), tuple(filters), of())
    if kind in (PacketType.SUBACK, PacketType.UNSUBACK):
        codes = draw(st.lists(st.integers(0, 255), max_size=4))
        return Suback(kind, draw(IDS), tuple(codes), of())
    if kind is PacketType.UNSUBSCRIBE:
        return Unsubscribe(draw(IDS), tuple(draw(st.lists(TEXTS, min_size=1, max_size=4))), of())
    if kind in (PacketType.PINGREQ, PacketType.PINGRESP):
        return Ping(kind)
    if kind is PacketType.DISCONNECT:
        return Disconnect(draw(st.sampled_from([0, 4, 0x8E])) if is_5 else 0, of())
    return Auth(0x18, of()) if is_5 else Ping(PacketType.PINGREQ)


def found(data, version, cuts=(), stream=-1):
    """What a reader gives for bytes that come in pieces."""
    framing = Framing(Limits(2**28, stream))
    framing.version = version
    places = [0, *sorted(cuts), len(data)]
    given = []
    for start, end in itertools.pairwise(places):
        framing.feed(data[start:end])
        while (one := framing.next()) is not None:
            given.append(one)
    return given, framing


@settings(deadline=None)
@given(st.data())
def test_what_is_written_is_read_again_however_it_is_cut(data):
    version = data.draw(VERSIONS)
    sent = data.draw(st.lists(packets(version), min_size=1, max_size=4))
    stream = b"".join(encode(one, version) for one in sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))

    given, framing = found(stream, version, cuts)

    assert given == sent
    assert not framing.has_partial


@settings(deadline=None)
@given(st.data())
def test_byte_by_byte(data):
    version = data.draw(VERSIONS)
    packet = data.draw(packets(version))
    stream = encode(packet, version)

    assert found(stream, version, range(1, len(stream)))[0] == [packet]


@settings(deadline=None)
@given(st.data())
def test_a_large_publish_comes_in_parts(data):
    version = data.draw(VERSIONS)
    qos = data.draw(st.integers(0, 2))
    packet = Publish(
        data.draw(TEXTS),
        data.draw(st.binary(min_size=100, max_size=1000)),
        qos,
        packet_id=qos and 7,
        properties=data.draw(properties(PacketType.PUBLISH, version)),
    )
    stream = encode(packet, version) + encode(Ping(PacketType.PINGREQ), version)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=9))

    (head, *parts, ping), framing = found(stream, version, cuts, stream=100)

    assert head == packet._replace(payload=b"", is_streamed=True)
    assert b"".join(one.data for one in parts) == packet.payload
    assert [one.is_last for one in parts] == [False] * (len(parts) - 1) + [True]
    assert ping == Ping(PacketType.PINGREQ)
    assert not framing.has_partial


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_changed_bytes_are_a_packet_or_an_error_and_nothing_else(data):
    version = data.draw(VERSIONS)
    stream = bytearray(encode(data.draw(packets(version)), version))
    for _ in range(data.draw(st.integers(1, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    framing = Framing(Limits(2**28, data.draw(st.sampled_from([-1, 0, 20]))))
    framing.version = version
    framing.feed(bytes(stream))
    try:
        while framing.next() is not None:
            pass
    except MqttError as error:
        assert error.code >= 0x80  # noqa: PT017 - it may or may not be raised.


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=100), VERSIONS)
def test_any_bytes_are_a_packet_or_an_error(data, version):
    framing = Framing(Limits(2**28, 50))
    framing.version = version
    framing.feed(data)
    try:
        while framing.next() is not None:
            pass
    except MqttError as error:
        assert error.code >= 0x80  # noqa: PT017 - it may or may not be raised.


M, P = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR
V3, V4, V5 = Version
CONNECT = "00044d515454"


@pytest.mark.parametrize(
    ("data", "version", "code"),
    [
        ("0000", V5, M),  # type 0
        ("f000", V4, M),  # AUTH before 5
        ("36020000", V5, M),  # QoS 3
        ("38020000", V5, M),  # DUP of QoS 0
        ("320500016100 00", V5, M),  # packet id 0
        ("3003000100", V5, M),  # NUL in a topic
        ("30030001ff", V4, M),  # not UTF-8
        ("30050003eda080", V4, M),  # a surrogate
        ("3003000561", V4, M),  # a topic longer than the packet
        ("60020001", V4, M),  # PUBREL without its flag
        ("4103000100", V5, M),  # flags of PUBACK
        ("4003000177", V5, M),  # no such reason code
        ("40020000", V5, M),
        ("c001 00", V5, M),  # a body of PINGREQ
        ("e0 01 00", V4, M),  # a body of DISCONNECT
        ("82030001 00", V5, P),  # SUBSCRIBE of nothing
        ("a2030001 00", V5, P),
        ("8207000100 00016103", V5, M),  # QoS 3
        ("8207000100 000161c0", V5, M),  # reserved bits
        ("8207000100 00016130", V5, P),  # retain handling 3
        ("820600010001 6104", V4, M),  # options before 5
        ("8209000102 0b00 00016100", V5, P),  # subscription identifier 0
        ("820b000104 0b010b02 00016100", V5, P),  # twice
        ("3008000161 0401000101", V5, P),  # payload format twice
        ("3006000161 020102", V5, P),  # payload format 2
        ("3009000161 0511 00000001", V5, M),  # a property of CONNECT
        ("30050001 617f7f", V5, M),  # a property list longer than the packet
        ("c0ffffffff01", V5, M),  # a size of five bytes
        ("c08000", V5, M),  # longer than it has to be
        ("100c" + CONNECT + "0401003c0000", V4, M),  # reserved flag
        ("100c" + CONNECT + "0408003c0000", V4, M),  # will QoS without a will
        ("100c" + CONNECT + "0420003c0000", V4, M),  # will retain without a will
        ("100e" + CONNECT + "041e003c00000000", V4, M),  # will QoS 3
        ("100e" + CONNECT + "0442003c00000000", V4, M),  # password without user
        ("100d" + CONNECT + "0402003c000000", V4, M),  # a byte too many
        ("100c" + CONNECT + "0602003c0000", V4, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
        ("100c00044d515458 0402003c0000", V4, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
        ("1010" + CONNECT + "0502003c 0321 0000 0000", V5, P),  # receive maximum 0
        ("1012" + CONNECT + "0502003c 0527 00000000 0000", V5, P),  # maximum packet size 0
        ("1011" + CONNECT + "0502003c 0416 000161 0000", V5, P),  # data without a method
        ("1010" + CONNECT + "0502003c 0219 02 0000 00", V5, P),  # request response info 2
        ("100e00064d51497364700302003c0000", V3, ReasonCode.CLIENT_IDENTIFIER_NOT_VALID),
    ],
)
def test_what_is_not_a_packet_is_refused_with_its_reason(data, version, code):
    with pytest.raises(MqttError) as error:
        found(bytes.fromhex(data), version)

    assert error.value.code is code


def test_limits_hold_before_the_bytes_are_there():
    framing = Framing(Limits(100, -1))
    framing.feed(bytes.fromhex("307f"))
    with pytest.raises(MqttError) as error:
        framing.next()
    assert error.value.code is ReasonCode.PACKET_TOO_LARGE

    framing = Framing(Limits(2**28, 1000))
    framing.feed(bytes.fromhex("82ffffff7f"))
    with pytest.raises(MqttError) as error:
        framing.next()
    assert error.value.code is ReasonCode.PACKET_TOO_LARGE

    framing = Framing(Limits(2**28, 1000))
    framing.version = Version.V5
    framing.feed(bytes.fromhex("30ffffff7f000161ffffff7f"))
    with pytest.raises(MqttError) as error:
        framing.next()
    assert error.value.code is ReasonCode.PACKET_TOO_LARGE
    assert HEAD_MAX < 2**28


def test_a_packet_of_3_1_may_have_the_flags_that_it_had_there():
    assert decode(8, 0xA, bytes.fromhex("0001000161 00".replace(" ", "")), V3).packet_id == 1
    with pytest.raises(MqttError):
        decode(8, 0xA, bytes.fromhex("000100016100"), V4)


def test_a_part_says_whether_it_is_the_last():
    packet = Publish("t", b"x" * 50)
    given, _ = found(encode(packet, V4), V4, [30], stream=10)
    assert given[1:] == [Part(b"x" * 25, False), Part(b"x" * 25, True)]
