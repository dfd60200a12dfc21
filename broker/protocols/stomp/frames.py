"""Frames of a client from bytes, however these are cut, and frames to it. Without I/O.

    COMMAND
    name:value          any number, each on a line
                        an empty line
    body^@              `content-length` bytes, or all up to the first NUL; NUL behind it

    reader.feed(bytes)
    reader.next() ─▶ Frame, or None until more bytes come
                 ─▶ Frame with `is_streamed`, then a Part for each piece of its body

The first frame has the rules of version 1.0, as in Artemis; a client that ends its lines by CR LF
there may always do so. Line ends between frames say that a client is alive, and nothing else.

Bytes that are not a frame raise a `StompError` that closes the connection; the reader gives nothing
behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.escapes import escape, escape_name, unescape
from broker.protocols.stomp.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Frame", "FrameReader", "Limits", "Part", "encode_frame", "encode_head"]

COMMANDS: Final = frozenset(
    {
        *("CONNECT", "STOMP", "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK"),
        *("BEGIN", "COMMIT", "ABORT", "DISCONNECT"),
    }
)
_LINE_ENDS: Final = b"\r\n"
# Of bytes that have been read already, kept in front of others at most.
_READ_MAX: Final = 64 * 1024
# A part of a body that is streamed.
_PART_MAX: Final = 128 * 1024
# Of what is shown of a frame that cannot be read.
_SHOWN_MAX: Final = 60
# Digits of the largest number of 64 bits.
_DIGITS_MAX: Final = 19


class Limits(NamedTuple):
    """What a client may have the broker keep. More ends its connection.

    Attributes:
        head_size: bytes of the command and the headers of one frame.
        header_count: headers of one frame.
        body_size: bytes of a body that is not streamed.
        stream_size: bytes from which the body of a SEND is streamed; -1 never.
    """

    head_size: int
    header_count: int
    body_size: int
    stream_size: int


class Frame:
    """One frame of a client.

    Attributes:
        command: one of COMMANDS.
        headers: by name.
        body: empty where it is streamed.
        content_length: as the client says; -1 where it says nothing.
        is_streamed: its body follows as parts.
    """

    __slots__ = ("body", "command", "content_length", "headers", "is_streamed")

    def __init__(self, command: str, headers: dict[str, str], content_length: int) -> None:
        self.command = command
        self.headers = headers
        self.content_length = content_length
        self.body = b""
        self.is_streamed = False


class Part(NamedTuple):
    """Some bytes of a body that is streamed."""

    data: bytes
    is_last: bool


class FrameReader:
    """See the module's text.

    Args:
        limits: that hold now.

    Attributes:
        limits: may be changed between frames.
        version: of what comes; None is before the first frame, whose rules are those of 1.0.
    """

    __slots__ = (
        "_at",
        "_data",
        "_failed",
        "_frame",
        "_has_cr_lf",
        "_left",
        "_searched",
        "limits",
        "version",
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.version: Version | None = None
        # Bytes of one call, as long as they hold whole frames; else what was gathered of several.
        self._data: bytes | bytearray = b""
        self._at = 0
        # Up to here no end of what is looked for was found.
        self._searched = 0
        self._has_cr_lf = False
        # Whose body is not complete.
        self._frame: Frame | None = None
        # Bytes of a body that are still to be streamed; None where none is.
        self._left: int | None = None
        self._failed = False

    @property
    def has_partial(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return self._frame is not None or self._left is not None or self._at < len(self._data)

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._at == len(self._data):
            self._data = data
            self._at = self._searched = 0
            return
        if isinstance(self._data, bytes):
            self._data = bytearray(memoryview(self._data)[self._at :])
            self._forget_read()
        elif self._at > _READ_MAX:
            del self._data[: self._at]
            self._forget_read()
        self._data += data

    def _forget_read(self) -> None:
        self._searched = max(0, self._searched - self._at)
        self._at = 0

    def next(self) -> Frame | Part | None:
        """Give what comes next; None until more bytes come.

        Raises:
            StompError: these bytes are not a frame, or more than a limit says.
        """
        if self._failed:
            return None
        try:
            if self._left is not None:
                return self._next_part()
            frame = self._frame
            if frame is None:
                frame = self._read_head()
                if frame is None:
                    return None
                self._begin_body(frame)
                if frame.is_streamed:
                    return frame
            return self._read_body(frame)
        except StompError:
            self._failed = True
            raise

    # --- command and headers ------------------------------------------------------------------

    def _read_head(self) -> Frame | None:
        self._skip_line_ends()
        data, start = self._data, self._at
        end, body_at = self._find_empty_line(start)
        if end < 0:
            self._check_partial(start)
            self._searched = max(start, len(data) - 2)
            return None
        if end - start > self.limits.head_size:
            raise self._too_large("its headers", self.limits.head_size)
        if data.find(b"\0", start, end) >= 0:
            raise self._not_a_frame(start, "a NUL among its headers")
        frame = self._parse_head(start, end)
        self._at = self._searched = body_at
        return frame

    def _skip_line_ends(self) -> None:
        """Pass over the line ends between frames; a CR whose LF has not come yet stays."""
        data, at = self._data, self._at
        size = len(data)
        while at < size and data[at] in _LINE_ENDS:
            if data[at] == 0x0D:
                if not self._takes_cr_lf:
                    break
                if at + 1 == size:
                    break
                if data[at + 1] != 0x0A:
                    raise StompError(
                        "AMQ339020: Invalid char sequence: There is a CR not followed by an LF",
                        closes=True,
                    )
                at += 1
            at += 1
        if at != self._at:
            self._at = at
            self._searched = max(self._searched, at)

    @property
    def _takes_cr_lf(self) -> bool:
        return self._has_cr_lf or self.version in (None, Version.V1_2)

    def _find_empty_line(self, start: int) -> tuple[int, int]:
        """Give where the headers end, their last line end not included, and the body begins."""
        data = self._data
        searched = max(start, self._searched - 2)
        end = data.find(b"\n\n", searched)
        if self._takes_cr_lf:
            other = data.find(b"\n\r\n", searched, len(data) if end < 0 else end + 1)
            if other >= 0:
                return other, other + 3
        return end, end + 2

    def _check_partial(self, start: int) -> None:
        """See that what has come of a head may still become one.

        Raises:
            StompError: it may not.
        """
        data = self._data
        if len(data) - start > self.limits.head_size:
            raise self._too_large("its headers", self.limits.head_size)
        if data.find(b"\0", max(start, self._searched - 1)) >= 0:
            raise self._not_a_frame(start, "no empty line behind its headers")
        line_end = data.find(b"\n", start, start + 16)
        if line_end >= 0:
            self._command_of(bytes(data[start:line_end]), start)
        elif len(data) - start >= 16:
            raise self._not_a_frame(start, "no such command")

    def _command_of(self, line: bytes, start: int) -> str:
        if line.endswith(b"\r") and self._takes_cr_lf:
            line = line[:-1]
        command = line.decode("latin-1")
        if command not in COMMANDS:
            raise self._not_a_frame(start, "no such command")
        return command

    def _parse_head(self, start: int, end: int) -> Frame:
        head = bytes(self._data[start:end])
        first, _, rest = head.partition(b"\n")
        command = self._command_of(first, start)
        version = self.version
        if first.endswith(b"\r"):
            self._has_cr_lf = True
        try:
            text = rest.decode()
        except UnicodeDecodeError as error:
            raise self._not_a_frame(start, f"headers that are not UTF-8: {error}") from None
        has_cr_lf = "\r" in text and self._takes_cr_lf
        is_of_1_0 = version is None or version is Version.V1_0
        has_escapes = not is_of_1_0 and "\\" in text
        keeps_first = version is Version.V1_2
        headers: dict[str, str] = {}
        lines = text.split("\n") if text else []
        if len(lines) > self.limits.header_count:
            raise self._too_large("the headers of a frame", self.limits.header_count, "")
        for line in lines:
            if has_cr_lf:
                line = _without_cr(line)
            name, colon, value = line.partition(":")
            if not colon or not name:
                raise self._not_a_frame(start, "a header is not name:value")
            if is_of_1_0:
                # Leading blanks of a value do not count there, as in Artemis.
                value = value.lstrip(" \t")
            elif has_escapes:
                assert version is not None, "the first frame has none"
                name, value = unescape(name, version), unescape(value, version)
            if not (keeps_first and name in headers):
                headers[name] = value
        return Frame(command, headers, self._content_length(headers))

    @staticmethod
    def _content_length(headers: dict[str, str]) -> int:
        text = headers.get("content-length")
        if text is None:
            return -1
        digits = text.strip(" \t")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
            raise StompError(f"content-length is not a number of bytes: {text[:40]}", closes=True)
        return int(digits)

    # --- bodies -------------------------------------------------------------------------------

    def _begin_body(self, frame: Frame) -> None:
        size, limits = frame.content_length, self.limits
        if frame.command == "SEND" and 0 <= limits.stream_size <= size:
            frame.is_streamed = True
            self._left = size
            return
        if size > limits.body_size:
            raise self._too_large("a body", limits.body_size)
        self._frame = frame

    def _read_body(self, frame: Frame) -> Frame | None:
        data, at, size = self._data, self._at, frame.content_length
        if size < 0:
            end = data.find(b"\0", max(at, self._searched))
            if end < 0:
                self._searched = len(data)
                if len(data) - at > self.limits.body_size:
                    raise self._too_large("a body", self.limits.body_size)
                return None
            if end - at > self.limits.body_size:
                raise self._too_large("a body", self.limits.body_size)
        else:
            end = at + size
            if end >= len(data):
                return None
            if data[end]:
                raise StompError(f"no NUL behind the {size} bytes of a body", closes=True)
        frame.body = bytes(data[at:end])
        self._frame = None
        self._at = self._searched = end + 1
        return frame

    def _next_part(self) -> Part | None:
        data, at, left = self._data, self._at, self._left
        assert left is not None, "a body is being streamed"
        here = len(data) - at
        if here > left:
            # The last one, with the NUL behind it.
            end = at + left
            if left <= _PART_MAX:
                if data[end]:
                    raise StompError("no NUL behind the bytes of a body", closes=True)
                self._left = None
                self._at = self._searched = end + 1
                return Part(bytes(data[at:end]), True)
        elif here == 0 or left == 0:
            return None
        taken = min(here, left, _PART_MAX)
        if taken == left:
            # Its NUL says that it is complete.
            taken -= 1
            if not taken:
                return None
        self._left = left - taken
        self._at = self._searched = at + taken
        return Part(bytes(data[at : at + taken]), False)

    # --- errors -------------------------------------------------------------------------------

    def _not_a_frame(self, start: int, why: str) -> StompError:
        shown = bytes(self._data[start : start + _SHOWN_MAX])
        text = shown.decode("ascii", "backslashreplace").encode("unicode_escape").decode()
        return StompError(f"AMQ339023: Invalid STOMP frame: {text}", closes=True, details=why)

    @staticmethod
    def _too_large(what: str, most: int, unit: str = " bytes") -> StompError:
        return StompError(f"a frame is too large: {what} may have {most}{unit}", closes=True)


def _without_cr(line: str) -> str:
    if line.endswith("\r"):
        line = line[:-1]
    if "\r" in line:
        raise StompError(
            "AMQ339019: Invalid char sequence: two consecutive CRs."
            if line.endswith("\r")
            else "AMQ339020: Invalid char sequence: There is a CR not followed by an LF",
            closes=True,
        )
    return line


def encode_head(command: str, headers: Iterable[tuple[str, str]], version: Version) -> bytes:
    """Give command and headers of a frame to a client, with the empty line behind them."""
    lines = [command]
    if command == "CONNECTED":
        lines += [f"{name}:{value}" for name, value in headers]
    else:
        lines += [
            f"{escape_name(name, version)}:{escape(value, version)}" for name, value in headers
        ]
    lines.append("\n")
    # Half of a surrogate pair, which Java's texts may have, cannot be encoded.
    return "\n".join(lines).encode("utf-8", "replace")


def encode_frame(
    command: str, headers: Iterable[tuple[str, str]], version: Version, body: bytes = b""
) -> bytes:
    r"""Give a whole frame to a client, with a line end behind its NUL, as Artemis has it.

    >>> encode_frame("RECEIPT", [("receipt-id", "a:1")], Version.V1_2)
    b'RECEIPT\nreceipt-id:a\\c1\n\n\x00\n'
    """
    return b"%b%b\0\n" % (encode_head(command, headers, version), body)
