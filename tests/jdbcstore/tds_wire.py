"""Bytes of TDS 7.4 as a server reads and writes them: as much as drivers of the SQL store need.

Source: [MS-TDS], https://learn.microsoft.com/openspecs/windows_protocols/ms-tds. A message is a
chain of packets. A client sends a login, a batch of SQL text, a remote procedure call with typed
parameters, or a request to the transaction manager. An answer is a chain of tokens.
"""

import struct
from dataclasses import dataclass

# Types of packets.
SQL_BATCH, RPC, ANSWER, ATTENTION, TRANSACTION, LOGIN7, PRELOGIN = 1, 3, 4, 6, 14, 16, 18
END_OF_MESSAGE = 0x01
PACKET_SIZE = 4096
# Requests to the transaction manager.
BEGIN, COMMIT, ROLLBACK = 5, 7, 8
# Bits of a DONE token.
MORE, ERROR, IN_TRANSACTION, COUNT, CANCELLED = 0x01, 0x02, 0x04, 0x10, 0x20
DONE, DONE_PROC, DONE_IN_PROC = 0xFD, 0xFE, 0xFF
COLLATION = bytes.fromhex("0904d00034")  # SQL_Latin1_General_CP1_CI_AS.
NULL_16, NULL_PLP, UNKNOWN_PLP = 0xFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE
NULL_TYPE = 0x1F
FIXED = {0x30: "<B", 0x32: "<B", 0x34: "<h", 0x38: "<i", 0x7F: "<q", 0x3E: "<d", 0x3B: "<f"}
INTEGERS = {1: "<B", 2: "<h", 4: "<i", 8: "<q"}
INTEGER_NAMES = {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"}
STRINGS = {0xE7: "nvarchar", 0xEF: "nchar", 0xA7: "varchar", 0xAF: "char"}
TEXT, IMAGE, NTEXT = 0x23, 0x22, 0x63
LONG = {TEXT: "text", IMAGE: "image", NTEXT: "ntext"}
BYTES = {0xA5: "varbinary", 0xAD: "binary"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a remote procedure call.

    Attributes:
        name: such as `@P1`, or nothing.
        type: as Transact-SQL writes it.
        value: None, an int, a float, a str or bytes.
        is_output: the caller wants it back.
    """

    name: str
    type: str
    value: object
    is_output: bool = False


class Reader:
    """Reads the fields of one message, little-endian."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        piece = self.data[self.at : self.at + size]
        assert len(piece) == size, "the message ends within a field"
        self.at += size
        return piece

    def number(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def short_text(self):
        return self.take(2 * self.number("<B")).decode("utf-16-le")

    def skip_headers(self):
        """ALL_HEADERS: the transaction and what for a notification stands there."""
        self.take(struct.unpack_from("<I", self.data, self.at)[0])

    @property
    def is_at_end(self):
        return self.at >= len(self.data)

    def parameter(self):
        name, status = self.short_text(), self.number("<B")
        kind, value = self.typed_value()
        return Parameter(name, kind, value, is_output=bool(status & 1))

    def typed_value(self):
        """(type, value) of TYPE_INFO and what follows it."""
        code = self.number("<B")
        if code == NULL_TYPE:
            return "null", None
        if code in FIXED:
            return f"fixed 0x{code:02X}", self.number(FIXED[code])
        if code in (0x26, 0x68):  # INTN and BITN
            size = self.number("<B")
            kind = "bit" if code == 0x68 else INTEGER_NAMES[size]
            found = self.number("<B")
            return kind, self.number(INTEGERS[found]) if found else None
        if code == 0x6D:
            size = self.number("<B")
            found = self.number("<B")
            kind = "float" if size == 8 else "real"
            return kind, self.number("<d" if found == 8 else "<f") if found else None
        if code in (0x6A, 0x6C):
            _, precision, scale = self.take(3)
            found = self.number("<B")
            kind = f"decimal({precision},{scale})"
            if not found:
                return kind, None
            sign = 1 if self.number("<B") else -1
            unscaled = sign * int.from_bytes(self.take(found - 1), "little")
            return kind, unscaled if not scale else unscaled / 10**scale
        if code in STRINGS or code in BYTES:
            return self._string(code)
        if code in LONG:
            return self._long(code)
        raise AssertionError(f"TDS type 0x{code:02X} is not read here")

    def _string(self, code):
        size = self.number("<H")
        is_text = code in STRINGS
        if is_text:
            self.take(len(COLLATION))
        width = 2 if code in (0xE7, 0xEF) else 1
        length = "max" if size == NULL_16 else str(size // width)
        kind = f"{(STRINGS | BYTES)[code]}({length})"
        if size == NULL_16:
            value = self._parts()
        else:
            found = self.number("<H")
            value = None if found == NULL_16 else self.take(found)
        if value is None or not is_text:
            return kind, value
        return kind, value.decode("utf-16-le" if width == 2 else "cp1252")

    def _long(self, code):
        """NTEXT and its like, which a driver takes for the text of long statements."""
        self.take(4)
        if code != IMAGE:
            self.take(len(COLLATION))
        size = self.number("<i")
        if size < 0:
            return LONG[code], None
        value = self.take(size)
        if code == IMAGE:
            return LONG[code], value
        return LONG[code], value.decode("utf-16-le" if code == NTEXT else "cp1252")

    def _parts(self):
        """A value in parts, each with its size in front (PLP)."""
        if self.number("<Q") == NULL_PLP:
            return None
        found = []
        while size := self.number("<I"):
            found.append(self.take(size))
        return b"".join(found)


def read_exactly(connection, size):
    """So many bytes of a socket; None if the peer has closed it."""
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            return None
        found += piece
    return bytes(found)


def read_message(connection):
    """(type of the packets, what they hold); None if the peer has closed the connection."""
    content = bytearray()
    while True:
        header = read_exactly(connection, 8)
        if header is None:
            return None
        kind, status, size = struct.unpack(">BBH", header[:4])
        body = read_exactly(connection, size - 8)
        if body is None:
            return None
        content += body
        if status & END_OF_MESSAGE:
            return kind, bytes(content)


def write_message(connection, content):
    """Send tokens as one answer."""
    room = PACKET_SIZE - 8
    pieces = [content[at : at + room] for at in range(0, len(content), room)] or [b""]
    packets = bytearray()
    for number, piece in enumerate(pieces, 1):
        status = END_OF_MESSAGE if number == len(pieces) else 0
        packets += struct.pack(">BBHHBB", ANSWER, status, len(piece) + 8, 51, number & 0xFF, 0)
        packets += piece
    connection.sendall(packets)


# What a client says of itself.


def prelogin_answer():
    """Version 16 (SQL Server 2022), and no encryption."""
    values = [(0, bytes.fromhex("100003e80000")), (1, b"\x02"), (2, b"\0"), (3, b""), (4, b"\0")]
    at = 5 * len(values) + 1
    table = b""
    for option, value in values:
        table += struct.pack(">BHH", option, at, len(value))
        at += len(value)
    return table + b"\xff" + b"".join(value for _, value in values)


@dataclass(frozen=True)
class Login:
    """Fields of LOGIN7 that a test may ask for."""

    user: str
    password: str
    application: str
    database: str


def read_login(content):
    def field(number, *, is_secret=False):
        at, size = struct.unpack_from("<HH", content, 36 + 4 * number)
        found = content[at : at + 2 * size]
        if is_secret:
            found = bytes(((b ^ 0xA5) >> 4 | (b ^ 0xA5) << 4) & 0xFF for b in found)
        return found.decode("utf-16-le")

    return Login(
        user=field(1),
        password=field(2, is_secret=True),
        application=field(3),
        database=field(8),
    )


# Tokens of an answer.


def short_text(text):
    return struct.pack("<B", len(text)) + text.encode("utf-16-le")


def long_text(text):
    return struct.pack("<H", len(text)) + text.encode("utf-16-le")


def token(code, content):
    return struct.pack("<BH", code, len(content)) + content


def login_accepted(database):
    changed = b"\x01" + short_text(database) + short_text("master")
    name = short_text("Microsoft SQL Server")
    acknowledged = b"\x01" + bytes.fromhex("74000004") + name + bytes.fromhex("100003e8")
    size = b"\x04" + short_text(str(PACKET_SIZE)) + short_text(str(PACKET_SIZE))
    language = b"\x07" + struct.pack("<B", 5) + COLLATION + b"\0"
    return (
        token(0xE3, changed)
        + token(0xE3, language)
        + token(0xAD, acknowledged)
        + token(0xE3, size)
        + done(DONE)
    )


def transaction_began(number):
    return token(0xE3, b"\x08\x08" + struct.pack("<Q", number) + b"\0")


def transaction_ended(number, *, is_committed):
    kind = b"\x09" if is_committed else b"\x0a"
    return token(0xE3, kind + b"\0\x08" + struct.pack("<Q", number))


def error(number, level, text):
    content = struct.pack("<iBB", number, 1, level) + long_text(text)
    return token(0xAA, content + short_text("stub") + short_text("") + struct.pack("<I", 1))


def done(code, status=0, count=0, command=0):
    return struct.pack("<BHHQ", code, status, command, count)


def return_status(value=0):
    return struct.pack("<Bi", 0x79, value)


def returned_integer(name, value):
    """RETURNVALUE of an output parameter of type int."""
    content = struct.pack("<BH", 0xAC, 0) + short_text(name) + struct.pack("<BIH", 1, 0, 0)
    return content + struct.pack("<BBBi", 0x26, 4, 4, value)


def columns(described):
    """COLMETADATA; each column is (name, kind) with a kind of `int`, `text` or `bytes`."""
    content = struct.pack("<BH", 0x81, len(described))
    for name, kind in described:
        info = {
            "int": b"\x26\x08",
            "text": b"\xe7" + struct.pack("<H", 8000) + COLLATION,
            "bytes": b"\xa5" + struct.pack("<H", NULL_16),
        }[kind]
        content += struct.pack("<IH", 0, 9) + info + short_text(name)
    return content


def row(described, values):
    content = b"\xd1"
    for (_, kind), value in zip(described, values, strict=True):
        if kind == "int":
            content += b"\0" if value is None else b"\x08" + struct.pack("<q", value)
        elif kind == "text":
            known = None if value is None else str(value).encode("utf-16-le")
            size = NULL_16 if known is None else len(known)
            content += struct.pack("<H", size) + (known or b"")
        elif value is None:
            content += struct.pack("<Q", NULL_PLP)
        else:
            parts = struct.pack("<I", len(value)) + value if value else b""
            content += struct.pack("<Q", len(value)) + parts + struct.pack("<I", 0)
    return content
