"""What a broker is told to do in cases that have several right answers."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "AddressFullPolicy",
    "DeletionPolicy",
    "DiskFullPolicy",
    "PageFullPolicy",
    "SlowConsumerPolicy",
    "SlowConsumerUnit",
]


class AddressFullPolicy(Enum):
    """What happens to what is sent to an address that is full."""

    PAGE = "PAGE"
    DROP = "DROP"
    FAIL = "FAIL"
    BLOCK = "BLOCK"


class PageFullPolicy(Enum):
    """What happens to it when the pages are full too."""

    DROP = "DROP"
    FAIL = "FAIL"


class DiskFullPolicy(Enum):
    """What happens to it when the disk is fuller than max-disk-usage."""

    DROP = "DROP"
    BLOCK = "BLOCK"
    FAIL = "FAIL"


class SlowConsumerPolicy(Enum):
    """What happens to a slow consumer."""

    KILL = "KILL"
    NOTIFY = "NOTIFY"


class SlowConsumerUnit(Enum):
    """The unit of slow-consumer-threshold; the value is its seconds."""

    MESSAGES_PER_SECOND = 1
    MESSAGES_PER_MINUTE = 60
    MESSAGES_PER_HOUR = 3600
    MESSAGES_PER_DAY = 86400


class DeletionPolicy(Enum):
    """What happens to what a configuration that is read again no longer names."""

    OFF = "OFF"
    FORCE = "FORCE"
