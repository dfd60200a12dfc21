"""Java's modified UTF-8 (java.io.DataInput): texts of OpenWire.

NUL is two bytes, and a character beyond U+FFFF two surrogates of three bytes each.
"""

from __future__ import annotations

__all__ = ["decode", "encode"]


def encode(text: str) -> bytes:
    r"""Give the bytes of a text.

    >>> encode("a\0"), encode("é"), len(encode("\N{GRINNING FACE}"))
    (b'a\xc0\x80', b'\xc3\xa9', 6)
    """
    if text.isascii():
        data = text.encode()
    else:
        if max(text) > "\uffff":
            text = "".join(
                map(chr, memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"))
            )
        data = text.encode("utf-8", "surrogatepass")
    return data.replace(b"\0", b"\xc0\x80") if b"\0" in data else data


def decode(data: bytes) -> str:
    r"""Give the text of bytes.

    Raises:
        UnicodeDecodeError: they are none.

    >>> decode(b"a\xc0\x80"), decode(encode("\N{GRINNING FACE}")) == "\N{GRINNING FACE}"
    ('a\x00', True)
    """
    if data.isascii():
        return data.decode("ascii")
    text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    if max(text) < "\ud800":
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
