"""SASL in front of AMQP: who a client says it is, before the engine sees a byte of it.

    header AMQP 3 1 0 0 ─▶ header, mechanisms ─▶ init ─▶ outcome ─▶ what follows is AMQP
    header AMQP 0 1 0 0 ─▶ no SASL: allowed where an anonymous client is

The engine's own SASL has no PLAIN on a server. What is kept of somebody unknown is one frame of at
most `FRAME_SIZE_MAX` bytes. OASIS AMQP 1.0, part 5.3.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.model.encoding import BodyReader, RecordFormatError
from broker.records.amqp_values import read_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["AMQP_HEADER", "FRAME_SIZE_MAX", "Sasl"]

FRAME_SIZE_MAX: Final = 4096
AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
_HEADER_SIZE: Final = len(SASL_HEADER)
_FRAME_HEADER_SIZE: Final = 8
_SASL_FRAME: Final = 1
_INIT: Final = 0x41
# Of outcomes.
_OK, _AUTH, _SYS = 0, 1, 2


class Sasl:
    """See the module's text.

    Args:
        mechanisms: offered, in this order; none of them means ANONYMOUS.
        authenticate: gives the user for a name and a password, or raises BrokerError.
        by_certificate: gives the user for the peer's certificate, likewise; None where it has shown
            none.
        write: sends bytes.

    Attributes:
        is_done: what follows is AMQP.
        is_refused: the connection is to be closed behind what was written.
        user: who was authenticated; None for an anonymous client.
        is_authenticated: it showed a password or a certificate.
        has_partial: a header or frame has begun.
    """

    __slots__ = (
        "_authenticate",
        "_by_certificate",
        "_data",
        "_has_header",
        "_has_outcome",
        "_mechanisms",
        "_write",
        "is_authenticated",
        "is_done",
        "is_refused",
        "user",
    )

    def __init__(
        self,
        mechanisms: Sequence[str],
        authenticate: Callable[[str | None, str | None], str | None],
        by_certificate: Callable[[], str | None] | None,
        write: Callable[[bytes], object],
    ) -> None:
        self._mechanisms = tuple(mechanisms) or ("ANONYMOUS",)
        self._authenticate = authenticate
        self._by_certificate = by_certificate
        self._write = write
        self._data = b""
        self._has_header = False
        self._has_outcome = False
        self.is_done = self.is_refused = self.is_authenticated = False
        self.user: str | None = None

    @property
    def has_partial(self) -> bool:
        """Whether something has begun that is not complete."""
        return bool(self._data)

    def receive(self, data: bytes) -> bytes:
        """Take bytes; those of AMQP among them are given, its header in front."""
        self._data += data
        while not (self.is_done or self.is_refused):
            if not (self._take_frame() if self._is_in_frames else self._take_header()):
                return b""
        left, self._data = self._data, b""
        return b"" if self.is_refused else left

    @property
    def _is_in_frames(self) -> bool:
        return self._has_header and not self._has_outcome

    def _take_header(self) -> bool:
        header = self._data[:_HEADER_SIZE]
        wanted = (AMQP_HEADER,) if self._has_header else (AMQP_HEADER, SASL_HEADER)
        if len(header) < _HEADER_SIZE:
            if not any(one.startswith(header) for one in wanted):
                self._refuse(AMQP_HEADER if self._has_header else SASL_HEADER)
                return True
            return False
        if header not in wanted:
            self._refuse(AMQP_HEADER if self._has_header else SASL_HEADER)
        elif header == AMQP_HEADER:
            self._begin_amqp()
        else:
            self._data = self._data[_HEADER_SIZE:]
            self._has_header = True
            self._write(SASL_HEADER + _mechanisms(self._mechanisms))
        return True

    def _begin_amqp(self) -> None:
        if not self._has_header:
            try:
                self._authenticate(None, None)
            except BrokerError:
                self._refuse(SASL_HEADER)
                return
        self.is_done = True

    def _refuse(self, answer: bytes) -> None:
        self._write(answer)
        self.is_refused = True

    def _take_frame(self) -> bool:
        data = self._data
        if len(data) < _FRAME_HEADER_SIZE:
            return False
        size = int.from_bytes(data[:4], "big")
        start = data[4] * 4
        is_valid = _FRAME_HEADER_SIZE <= start <= size <= FRAME_SIZE_MAX
        if not is_valid or data[5] != _SASL_FRAME:
            self.is_refused = True
            return True
        if len(data) < size:
            return False
        self._data = data[size:]
        try:
            self._init(data[start:size])
        except (RecordFormatError, ValueError, IndexError, TypeError, AttributeError):
            # No init: what else may come only answers a challenge, and there was none.
            self.is_refused = True
        return True

    def _init(self, body: bytes) -> None:
        """Look at sasl-init.

        Raises:
            RecordFormatError: not an AMQP value.
            ValueError: not an init; and what else comes of a value of another shape.
        """
        reader = BodyReader(body)
        described = read_value(reader)
        descriptor, fields = described.value
        if descriptor.value not in (_INIT, "amqp:sasl-init:list"):
            raise ValueError("not sasl-init")
        mechanism = fields.value[0].value
        response = fields.value[1].value if len(fields.value) > 1 else None
        if response is not None and not isinstance(response, bytes):
            raise ValueError("a response that is not binary")
        self._end(self._outcome(mechanism, response or b""))

    def _outcome(self, mechanism: str, response: bytes) -> int:
        if mechanism not in self._mechanisms:
            return _SYS
        if mechanism == "ANONYMOUS":
            # The login itself is refused, if it is, when the connection opens.
            return _OK
        if mechanism == "EXTERNAL":
            if self._by_certificate is None:
                return _SYS
            log_in = self._by_certificate
        else:
            found = _plain(response)
            if found is None:
                return _AUTH
            log_in = partial(self._authenticate, *found)
        try:
            self.user = log_in()
        except BrokerError:
            return _AUTH
        self.is_authenticated = True
        return _OK

    def _end(self, outcome: int) -> None:
        self._has_outcome = True
        self._write(_frame(0x44, b"\xc0\x03\x01\x50" + bytes([outcome])))
        if outcome != _OK:
            self.is_refused = True


def _plain(response: bytes) -> tuple[str, str] | None:
    """Give user and password by their places: authorization id, user, password (RFC 4616)."""
    try:
        parts = response.decode().split("\0")
    except UnicodeDecodeError:
        return None
    if len(parts) == 2:
        return parts[0], parts[1]
    return (parts[1], parts[2]) if len(parts) == 3 else None


def _frame(code: int, fields: bytes) -> bytes:
    body = b"\x00\x53" + bytes([code]) + fields
    size = _FRAME_HEADER_SIZE + len(body)
    return size.to_bytes(4, "big") + b"\x02\x01\x00\x00" + body


def _mechanisms(names: Sequence[str]) -> bytes:
    symbols = b"".join(bytes([len(name)]) + name.encode("ascii") for name in names)
    array = bytes([len(symbols) + 2, len(names), 0xA3]) + symbols
    content = b"\xe0" + array
    return _frame(0x40, b"\xc0" + bytes([len(content) + 1, 1]) + content)
