"""Versions of STOMP, and the one that both sides speak."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Version", "negotiate"]


class Version(IntEnum):
    """One of the versions; a later one is greater."""

    V1_0 = 0
    V1_1 = 1
    V1_2 = 2

    @property
    def text(self) -> str:
        """As in the header `version`.

        >>> Version.V1_2.text
        '1.2'
        """
        return f"1.{int(self)}"


def negotiate(accept_version: str | None) -> Version | None:
    """Give the highest version that a client speaks as well; None where there is none such.

    Args:
        accept_version: its header `accept-version`; without one it speaks 1.0. Artemis takes no
            blanks in it.

    >>> negotiate("1.0, 1.1 ,3.0"), negotiate(None), negotiate("3.0")
    (<Version.V1_1: 1>, <Version.V1_0: 0>, None)
    """
    if accept_version is None:
        return Version.V1_0
    offered = {one.strip() for one in accept_version.split(",")}
    return max((one for one in Version if one.text in offered), default=None)
