"""The versions of MQTT."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Version"]


class Version(IntEnum):
    """The protocol's level in CONNECT; a later version is greater."""

    V3_1 = 3
    V3_1_1 = 4
    V5 = 5
