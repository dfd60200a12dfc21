"""As much of a client of MQTT 3.1.1 as the loads need: packets, a login and a subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.peers.load import connect, received

if TYPE_CHECKING:
    import socket

_CONNECT, _CONNACK, _PUBLISH, _SUBSCRIBE, _SUBACK = 0x10, 0x20, 0x30, 0x82, 0x90
_CLEAN, _HAS_ACCOUNT = 0x02, 0xC0
_REFUSED = 0x80
QOS_1 = 0x02


def _text(value: str) -> bytes:
    data = value.encode()
    return len(data).to_bytes(2, "big") + data


def _packet(head: int, body: bytes) -> bytes:
    """A head, the length of what follows in groups of seven bits, and what follows."""
    length, groups = len(body), [head]
    while length > 127:
        groups.append(length & 127 | 128)
        length >>= 7
    return bytes([*groups, length]) + body


def connect_packet(client: str, user: str, password: str, *, is_clean: bool = True) -> bytes:
    """CONNECT, without pings."""
    flags = _HAS_ACCOUNT | (_CLEAN if is_clean else 0)
    head = _text("MQTT") + bytes([4, flags, 0, 0])
    return _packet(_CONNECT, head + _text(client) + _text(user) + _text(password))


def publish_packet(topic: str, body: bytes, identifier: int = 0) -> bytes:
    """PUBLISH at QoS 1 with an identifier, at QoS 0 without."""
    kept = identifier.to_bytes(2, "big") if identifier else b""
    return _packet(_PUBLISH | (QOS_1 if identifier else 0), _text(topic) + kept + body)


def log_in(
    port: int, user: str, password: str, client: str, *, is_clean: bool = True
) -> socket.socket:
    """A connection that has logged in."""
    made = connect(port)
    made.sendall(connect_packet(client, user, password, is_clean=is_clean))
    answer = _answer(made, 4)
    if answer[0] != _CONNACK or answer[3]:
        raise SystemExit(f"not connected: {answer.hex()}")
    return made


def subscribe(connection: socket.socket, topic: str, qos: int) -> None:
    """Subscribe to a topic; nothing may come before the answer."""
    connection.sendall(_packet(_SUBSCRIBE, b"\0\1" + _text(topic) + bytes([qos])))
    answer = _answer(connection, 5)
    if answer[0] != _SUBACK or answer[4] >= _REFUSED:
        raise SystemExit(f"not subscribed: {answer.hex()}")


def _answer(connection: socket.socket, size: int) -> bytes:
    answer = b""
    while len(answer) < size:
        answer += received(connection)
    return answer
