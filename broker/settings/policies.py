"""Policies that settings choose from: full addresses, full disks, slow consumers, deletion."""

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
    """What happens to messages sent to a full address."""

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
    """What happens to queues, addresses and diverts that a reload no longer finds configured."""

    OFF = "OFF"
    FORCE = "FORCE"
