"""The parameters of a JMS bridge that are plain values, by Artemis's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypedDict

from broker.bridges.jms.errors import BridgeConfigError

__all__ = ["FOREVER", "BridgeSettings", "ExactlyOnce", "JMSBridgeOptions", "QualityOfService"]

FOREVER: Final = -1
_NAME_SIZE_MAX: Final = 32


class QualityOfService(Enum):
    """What a failure may do to a message; by Artemis's names."""

    AT_MOST_ONCE = "AT_MOST_ONCE"
    """It may be lost: it is acknowledged at the source before it is sent."""
    DUPLICATES_OK = "DUPLICATES_OK"
    """It may arrive twice: it is acknowledged once the target has confirmed it."""
    ONCE_AND_ONLY_ONCE = "ONCE_AND_ONLY_ONCE"
    """Neither; for durable messages."""


class ExactlyOnce(Enum):
    """How ONCE_AND_ONLY_ONCE is reached between two brokers."""

    AUTO = "auto"
    """By duplicate ids where the target keeps them, else by two-phase commit."""
    DUPLICATE_IDS = "duplicate-ids"
    """The target drops a message whose id it has."""
    TWO_PHASE = "two-phase"
    """One distributed transaction for each batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JMSBridgeOptions:
    """How a bridge behaves. Times are milliseconds.

    Attributes:
        name: for logs, management and transactions; unique among the bridges of a source.
        source_user_name: for the connection to the source; None is without.
        source_password: its password.
        target_user_name: for the connection to the target; None is without.
        target_password: its password.
        selector: only messages for which it holds are bridged; None is all.
        failure_retry_interval: wait between attempts to connect; -1 makes no further attempt.
        max_retries: attempts after the first failed one before the bridge gives up; -1 for ever.
        quality_of_service: see `QualityOfService`.
        max_batch_size: messages sent as one batch, at least 1.
        max_batch_time: after so long a batch is sent that is not full; -1 waits for ever. Counts
            from the first message of the batch. Artemis counts from the last one, so a trickle of
            messages never leaves.
        max_in_flight: messages that have left and are not confirmed yet, of several batches
            together; one batch alone may be larger. With 1 a batch leaves when the one before it
            is confirmed. More fill a link with latency, where both sides are of the Core protocol:
            at most so many a round trip and the time that the target needs for one. A failure
            loses as many with AT_MOST_ONCE, and doubles them with DUPLICATES_OK.
        subscription_name: of a durable subscription, if the source is a topic.
        client_id: the JMS client id of that subscription.
        add_message_id_in_header: append the message's id to ACTIVEMQ_BRIDGE_MSG_ID_LIST.
        failover_timeout: how long source or target may take for one call before the connection is
            given up (Artemis: failoverTimeout, 60,000).
        exactly_once: how ONCE_AND_ONLY_ONCE is reached between two brokers.
    """

    name: str = "jms-bridge"
    source_user_name: str | None = None
    source_password: str | None = None
    target_user_name: str | None = None
    target_password: str | None = None
    selector: str | None = None
    failure_retry_interval: int = 5000
    max_retries: int = FOREVER
    quality_of_service: QualityOfService = QualityOfService.DUPLICATES_OK
    max_batch_size: int = 1
    max_batch_time: int = FOREVER
    # Fills a link of 20 ms with messages of 1 KiB.
    max_in_flight: int = 4000
    subscription_name: str | None = None
    client_id: str | None = None
    add_message_id_in_header: bool = False
    failover_timeout: int = 60_000
    exactly_once: ExactlyOnce = ExactlyOnce.AUTO

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            BridgeConfigError: naming the parameter, its value and what it may be.
        """
        if not self.name:
            raise BridgeConfigError("name is empty; a bridge needs one")
        if len(self.name.encode()) > _NAME_SIZE_MAX:
            # It is a part of the names of its transactions, which the XA standard bounds.
            raise BridgeConfigError(f"name has more than {_NAME_SIZE_MAX} bytes in UTF-8")
        self._check("failure_retry_interval", self.failure_retry_interval, least=1, special=-1)
        self._check("max_retries", self.max_retries, least=0, special=FOREVER)
        self._check("max_batch_size", self.max_batch_size, least=1)
        self._check("max_batch_time", self.max_batch_time, least=1, special=FOREVER)
        self._check("max_in_flight", self.max_in_flight, least=1)
        self._check("failover_timeout", self.failover_timeout, least=1)
        if self.failure_retry_interval == -1 and self.max_retries > 0:
            raise BridgeConfigError(
                f"max_retries is {self.max_retries} and failure_retry_interval is -1: "
                "retries need an interval of 1 ms or more"
            )
        if self.subscription_name is not None and self.client_id is None:
            raise BridgeConfigError(
                f"subscription_name is {self.subscription_name!r} without a client_id: "
                "a durable subscription needs both"
            )

    def _check(self, name: str, value: int, *, least: int, special: int | None = None) -> None:
        if value >= least or value == special:
            return
        others = "" if special is None else f", or {special}"
        raise BridgeConfigError(f"{name} is {value}; it must be at least {least}{others}")

    @property
    def failover_timeout_s(self) -> float:
        """As `failover_timeout`, in seconds."""
        return self.failover_timeout / 1000


class BridgeSettings(TypedDict, total=False):
    """Keyword arguments of a bridge, for type checkers: see JMSBridgeOptions."""

    name: str
    source_user_name: str | None
    source_password: str | None
    target_user_name: str | None
    target_password: str | None
    selector: str | None
    failure_retry_interval: int
    max_retries: int
    quality_of_service: QualityOfService
    max_batch_size: int
    max_batch_time: int
    max_in_flight: int
    subscription_name: str | None
    client_id: str | None
    add_message_id_in_header: bool
    failover_timeout: int
    exactly_once: ExactlyOnce
