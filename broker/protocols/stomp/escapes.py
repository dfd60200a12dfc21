r"""Characters of a header that stand for others, by version.

    1.0   none
    1.1   \n \c \\      line feed, colon, backslash; a carriage return is an ordinary character
    1.2   \n \c \\ \r

CONNECT and CONNECTED are without, in all versions.
"""

from __future__ import annotations

import re
from typing import Final

from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.versions import Version

__all__ = ["escape", "escape_name", "unescape"]

_PAIR: Final = re.compile(r"\\(.?)", re.DOTALL)
_MEANINGS: Final = {
    Version.V1_0: {},
    Version.V1_1: {"n": "\n", "c": ":", "\\": "\\"},
    Version.V1_2: {"n": "\n", "c": ":", "\\": "\\", "r": "\r"},
}
# No version can say NUL, which ends a frame for many clients: it becomes the character for what
# cannot be shown. In 1.0 a line feed would begin another header: it is written as in 1.1.
_NUL: Final = {"\0": "\N{REPLACEMENT CHARACTER}"}
_TABLES: Final = {
    Version.V1_0: str.maketrans({**_NUL, "\n": "\\n", "\r": "\\r"}),
    Version.V1_1: str.maketrans({**_NUL, "\n": "\\n", ":": "\\c", "\\": "\\\\"}),
    Version.V1_2: str.maketrans({**_NUL, "\n": "\\n", ":": "\\c", "\\": "\\\\", "\r": "\\r"}),
}
_NAMES_1_0: Final = str.maketrans({**_NUL, "\n": "\\n", "\r": "\\r", ":": "\\c"})
_SPECIAL: Final = re.compile(r"[\0\n\r:\\]")


def unescape(text: str, version: Version) -> str:
    r"""Give what a header of a client means.

    Raises:
        StompError: an escape that the version does not have.

    >>> unescape(r"a\cb\\", Version.V1_1)
    'a:b\\'
    """
    meanings = _MEANINGS[version]

    def meant(pair: re.Match[str]) -> str:
        found = meanings.get(pair[1])
        if found is None:
            raise StompError(
                f"AMQ339040: Undefined escape sequence: {pair[0].translate(_TABLES[Version.V1_0])}",
                closes=True,
            )
        return found

    return _PAIR.sub(meant, text)


def escape(text: str, version: Version) -> str:
    r"""Give the value of a header as it is sent.

    >>> escape("a:b\n", Version.V1_2), escape("a:b\n", Version.V1_0)
    ('a\\cb\\n', 'a:b\\n')
    """
    if _SPECIAL.search(text) is None:
        return text
    return text.translate(_TABLES[version])


def escape_name(name: str, version: Version) -> str:
    r"""Give the name of a header as it is sent; it cannot have a colon.

    >>> escape_name("a:b", Version.V1_0)
    'a\\cb'
    """
    if version is Version.V1_0:
        return name.translate(_NAMES_1_0)
    return escape(name, version)
