r"""The PROXY protocol, versions 1 and 2: what a proxy says of the client it connects for.

It comes before all else, TLS too. Exactly its bytes are read from the socket, so that what follows
is the connection's own. Specification: haproxy, doc/proxy-protocol.txt.

    v1: "PROXY TCP4 10.0.0.1 10.0.0.2 40000 61616\r\n", at most 107 bytes
    v2: 12 bytes of signature | version, command | family | size (2) | addresses and more
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, NamedTuple

__all__ = ["ProxiedFrom", "ProxyHeader", "ProxyHeaderError", "is_proxy_header"]

_V1: Final = b"PROXY "
_V2: Final = b"\r\n\r\n\0\r\nQUIT\n"
_V1_SIZE_MAX: Final = 107
_V1_UNKNOWN: Final = "UNKNOWN"
_V2_SIZE: Final = 16  # Without addresses.
_LOCAL, _PROXY = 0, 1
_TCP4, _TCP6 = 0x11, 0x21
_TCP4_SIZE, _TCP6_SIZE = 12, 36
_PORT_MAX: Final = 65535


class ProxyHeaderError(ValueError):
    """What came is not a header of the PROXY protocol."""


class ProxiedFrom(NamedTuple):
    """What a header says.

    Attributes:
        version: 1 or 2.
        source: `address:port` of the client; empty where the proxy connects for itself, or for
            something that is not TCP.
        destination: `address:port` that the client connected to; empty likewise.
    """

    version: int
    source: str = ""
    destination: str = ""


def is_proxy_header(first: bytes) -> bool:
    """Whether a connection begins with one, as Artemis tells: by four bytes."""
    return first[:4] in (_V1[:4], _V2[:4])


class ProxyHeader:
    """Reads one header, without I/O: never more bytes than it has.

    `wanted` is how many bytes are to be read next; 0 once the header is whole.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self.wanted = len(_V2)
        self.found: ProxiedFrom | None = None

    def feed(self, data: bytes) -> None:
        """Take at most `wanted` bytes; `found` is set at the last.

        Raises:
            ProxyHeaderError: they are not of a header.
        """
        self._data += data
        self.wanted -= len(data)
        if self._data.startswith(_V1[: len(self._data)]):
            if self.wanted == 0:
                self._line()
        elif self._data.startswith(_V2[: len(self._data)]):
            if self.wanted == 0:
                self._binary()
        else:
            raise ProxyHeaderError("no header of the PROXY protocol")

    def _line(self) -> None:
        data = bytes(self._data)
        if data.endswith(b"\r\n"):
            self.found = _from_line(data[:-2])
        elif len(data) == _V1_SIZE_MAX:
            raise ProxyHeaderError(f"a header of version 1 of more than {_V1_SIZE_MAX} bytes")
        else:
            # Its end is not known before it is there.
            self.wanted = 1

    def _binary(self) -> None:
        if len(self._data) < _V2_SIZE:
            self.wanted = _V2_SIZE - len(self._data)
            return
        command, family, size = struct.unpack_from(">BBH", self._data, len(_V2))
        if command >> 4 != 2 or command & 0xF not in (_LOCAL, _PROXY):
            raise ProxyHeaderError(f"a header of unknown version and command {command:#04x}")
        rest = bytes(self._data[_V2_SIZE:])
        if len(rest) < size:
            self.wanted = size - len(rest)
        else:
            self.found = ProxiedFrom(2) if command & 0xF == _LOCAL else _from_binary(family, rest)


def _from_line(line: bytes) -> ProxiedFrom:
    try:
        words = line.decode("ascii").split(" ")
    except UnicodeDecodeError:
        raise ProxyHeaderError("a header of version 1 that is not ASCII") from None
    if len(words) > 1 and words[1] == _V1_UNKNOWN:
        return ProxiedFrom(1)
    kinds = {"TCP4": ipaddress.IPv4Address, "TCP6": ipaddress.IPv6Address}
    if len(words) != 6 or words[1] not in kinds:
        raise ProxyHeaderError(f"a header of version 1 that reads {line!r}")
    _, kind, source, destination, *ports = words
    try:
        for address in (source, destination):
            kinds[kind](address)
    except ValueError as error:
        raise ProxyHeaderError(f"a header of version 1: {error}") from None
    if not all(port.isdigit() and int(port) <= _PORT_MAX for port in ports):
        raise ProxyHeaderError(f"a header of version 1 with the ports {ports}")
    return ProxiedFrom(1, f"{source}:{ports[0]}", f"{destination}:{ports[1]}")


def _from_binary(family: int, rest: bytes) -> ProxiedFrom:
    if family == _TCP4 and len(rest) >= _TCP4_SIZE:
        addresses, ports = (rest[:4], rest[4:8]), rest[8:12]
    elif family == _TCP6 and len(rest) >= _TCP6_SIZE:
        addresses, ports = (rest[:16], rest[16:32]), rest[32:36]
    elif family in (_TCP4, _TCP6):
        raise ProxyHeaderError(f"a header whose addresses have {len(rest)} bytes")
    else:
        return ProxiedFrom(2)
    source, destination = (str(ipaddress.ip_address(one)) for one in addresses)
    source_port, destination_port = struct.unpack(">HH", ports)
    return ProxiedFrom(2, f"{source}:{source_port}", f"{destination}:{destination_port}")
