"""What hostile peers say, byte by byte, in each protocol but Core's."""

import struct
from typing import NamedTuple

from broker.protocols.mqtt.encoding import encode
from broker.protocols.mqtt.packets import Connect, PacketType, Ping, Version
from broker.protocols.openwire import commands as c
from broker.protocols.openwire.identifiers import ConnectionId, SessionId
from broker.protocols.openwire.wire_format import Agreement, own_wire_format

HUGE = 2**31 - 1


class Speech(NamedTuple):
    """What peers of one protocol say.

    Attributes:
        impossible: beginnings with a length that no frame has, by what is wrong.
        beginning: the first bytes of a login that never ends.
        login: of a client that is silent from then on, and said to be gone after a second.
        questions: what a client that has logged in is answered, again and again.
    """

    impossible: dict
    beginning: bytes
    login: bytes
    questions: bytes


def mqtt():
    connect = encode(Connect(Version.V5, "deaf", True, 1), Version.V5)
    variable = connect[2:]
    return Speech(
        {
            "all of a packet": b"\x10\xff\xff\xff\x7f" + variable,
            "five bytes": b"\x10\xff\xff\xff\xff\x7f" + variable,
            "a large packet": b"\x10\x80\x80\x80\x08" + variable,
        },
        connect[:-2],
        connect,
        encode(Ping(PacketType.PINGREQ), Version.V5),
    )


def amqp_frame(channel, performative):
    return struct.pack(">IBBH", 8 + len(performative), 2, 0, channel) + performative


def amqp():
    header, sasl = b"AMQP\0\1\0\0", b"AMQP\3\1\0\0"
    described = b"\0\x53"
    opened = amqp_frame(0, described + b"\x10\xc0\x07\x01\xa1\x04deaf")
    # remote-channel null, next-outgoing-id 0, windows of 100.
    begun = amqp_frame(0, described + b"\x11\xc0\x07\x04\x40\x43\x52\x64\x52\x64")
    ended = amqp_frame(0, described + b"\x17\x45")
    return Speech(
        {
            "all of a frame": header + struct.pack(">IBBH", HUGE, 2, 0, 0),
            "unsigned": header + struct.pack(">IBBH", 2**32 - 1, 2, 0, 0),
            "none": header + bytes(8),
            "of SASL": sasl + struct.pack(">IBBH", HUGE, 2, 1, 0),
        },
        header + opened[:-2],
        header + opened,
        begun + ended,
    )


def stomp():
    connect = b"CONNECT\naccept-version:1.2\nhost:h\nheart-beat:500,0\n"
    return Speech(
        {
            "a body": connect + b"content-length:%d\n\n" % HUGE,
            "below none": connect + b"content-length:-1\n\n",
            "a header": b"CONNECT\nname:",
        },
        connect,
        connect + b"\n\0",
        b"BEGIN\ntransaction:t\nreceipt:b\n\n\0ABORT\ntransaction:t\nreceipt:a\n\n\0",
    )


def openwire():
    ours = own_wire_format(max_inactivity_ms=1000, initial_delay_ms=0, max_frame_size=HUGE)
    agreed = Agreement(ours, ours)
    hello = ours.encode()
    name = ConnectionId("ID:deaf-1-2-3:1")
    login = c.ConnectionInfo(connection_id=name, client_id="deaf", command_id=1)
    question = c.SessionInfo(session_id=SessionId(name.value, 1), command_id=2)
    question.response_required = True
    return Speech(
        {
            "all of a frame": hello + struct.pack(">i", HUGE) + b"\3",
            "below none": hello + struct.pack(">i", -1) + b"\3",
            "none": hello + bytes(4),
            "a large frame": hello + struct.pack(">i", 1 << 20) + b"\3",
        },
        hello + agreed.write(login)[:-2],
        hello + agreed.write(login),
        agreed.write(question),
    )


SPEECHES = {"AMQP": amqp(), "MQTT": mqtt(), "OPENWIRE": openwire(), "STOMP": stomp()}
