"""How a bridge moves messages: what its quality of service needs, and what both sides can do.

    LOCAL           source and target are one: one transaction receives and sends
    SEND_LAST       acknowledge, then send                        AT_MOST_ONCE
    ACKNOWLEDGE_LAST    send, then acknowledge                    DUPLICATES_OK
    DUPLICATE_IDS   the same, and the target drops a second one   ONCE_AND_ONLY_ONCE
    TWO_PHASE       a distributed transaction a batch             ONCE_AND_ONLY_ONCE

No I/O.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from broker.bridges.core.window import ASSUMED
from broker.bridges.jms.errors import QualityOfServiceError
from broker.bridges.jms.options import ExactlyOnce, QualityOfService

if TYPE_CHECKING:
    from broker.bridges.jms.providers import Capabilities

__all__ = ["Mode", "batch_size_for", "choose_mode"]


class Mode(Enum):
    """See the module's text."""

    LOCAL = "local transaction"
    SEND_LAST = "acknowledged before it is sent"
    ACKNOWLEDGE_LAST = "acknowledged when the target has confirmed it"
    DUPLICATE_IDS = "duplicate ids"
    TWO_PHASE = "two-phase commit"

    def __str__(self) -> str:
        return self.value


def choose_mode(
    quality: QualityOfService,
    exactly_once: ExactlyOnce,
    *,
    is_same: bool,
    source: Capabilities,
    target: Capabilities,
    has_manager: bool = True,
) -> Mode:
    """Choose the mode.

    Args:
        quality: what is asked for.
        exactly_once: how, between two brokers.
        is_same: source and target come from the same connection factory.
        source: what the source can do.
        target: what the target can do.
        has_manager: the bridge has a transaction manager; without one TWO_PHASE is chosen only
            where it is asked for.

    Raises:
        QualityOfServiceError: ONCE_AND_ONLY_ONCE cannot be had; it says what is missing where.
    """
    if is_same:
        return Mode.LOCAL
    if quality is QualityOfService.AT_MOST_ONCE:
        return Mode.SEND_LAST
    if quality is QualityOfService.DUPLICATES_OK:
        return Mode.ACKNOWLEDGE_LAST
    no_ids = _without_ids(source, target)
    no_phases = _without_phases(source, target)
    if exactly_once is not ExactlyOnce.TWO_PHASE and no_ids is None:
        return Mode.DUPLICATE_IDS
    if exactly_once is ExactlyOnce.AUTO and no_phases is None and not has_manager:
        no_phases = "two-phase commit needs a transaction_log, or a transaction_manager"
    if exactly_once is not ExactlyOnce.DUPLICATE_IDS and no_phases is None:
        return Mode.TWO_PHASE
    reasons = {
        ExactlyOnce.AUTO: f"{no_ids}, and {no_phases}",
        ExactlyOnce.DUPLICATE_IDS: no_ids,
        ExactlyOnce.TWO_PHASE: no_phases,
    }
    raise QualityOfServiceError(
        f"ONCE_AND_ONLY_ONCE is not possible here: {reasons[exactly_once]}. "
        "Use DUPLICATES_OK, or providers that can"
    )


def _without_ids(source: Capabilities, target: Capabilities) -> str | None:
    if not target.keeps_duplicate_ids:
        return f"the target {target.without_ids}"
    if source.node_id is None or not source.names_messages:
        return f"the source {source.without_name}"
    return None


def _without_phases(source: Capabilities, target: Capabilities) -> str | None:
    missing = [
        name for name, side in (("source", source), ("target", target)) if not side.two_phase
    ]
    if missing:
        return f"the {' and the '.join(missing)} cannot prepare transactions"
    return None


def batch_size_for(wanted: int, duplicate_ids_max: int | None) -> int:
    """Give how many of what is wanted the target still knows by their ids when they come again.

    Args:
        wanted: max_batch_size, or max_in_flight.
        duplicate_ids_max: id-cache-size of the target's address; None if it is not known.

    Raises:
        QualityOfServiceError: the target keeps none.

    >>> batch_size_for(100, 50)
    50
    >>> batch_size_for(4000, None)
    500
    """
    if duplicate_ids_max is None:
        return min(wanted, ASSUMED)
    if duplicate_ids_max < 1:
        raise QualityOfServiceError(
            "ONCE_AND_ONLY_ONCE is not possible here: the target's address has id-cache-size 0. "
            "Set a size there, or use two-phase commit"
        )
    return min(wanted, duplicate_ids_max)
