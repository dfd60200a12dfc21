"""Transactions of bridges that are prepared and that no running bridge will end.

Their bridge is gone, or its transaction log is. Which branches are prepared says what became of a
transaction (`coordinator.py`):

    both   not committed anywhere: roll back
    T      the source was not prepared, or was rolled back: roll back
    S      the target has committed: commit

What one side alone lists is in doubt until both brokers have been restarted. Artemis drops a
prepared branch from its list when the connection breaks, and lists it again after a restart. If S
were committed while T is out of sight, or T rolled back while S is, the message would be lost: what
comes to light later reads as the other outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from broker.bridges.jms.coordinator import (
    BRANCHES,
    FORMAT_ID,
    commit_branches,
    roll_back_branches,
)
from broker.bridges.jms.decision_log import PREFIX_SIZE
from broker.bridges.jms.transactions import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.bridges.jms.decision_log import DecisionLog
    from broker.bridges.jms.providers import TwoPhaseSession

__all__ = ["Orphan", "Outcome", "find_orphans", "resolve"]


class Outcome(Enum):
    """How a transaction ends."""

    COMMIT = "commit"
    ROLL_BACK = "roll back"
    IN_DOUBT = "in doubt"
    """It cannot be told yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A transaction that is prepared on one side or both.

    Attributes:
        transaction: global id.
        bridge: name of the bridge that began it.
        prepared: sides that have a prepared branch.
        outcome: how it ends.
        reason: why so, in words.
    """

    transaction: bytes
    bridge: str
    prepared: frozenset[Role]
    outcome: Outcome
    reason: str


async def find_orphans(
    resources: Mapping[Role, TwoPhaseSession],
    bridge: str,
    decisions: DecisionLog | None,
    *,
    are_restarted: bool = False,
) -> list[Orphan]:
    """Give the transactions of a bridge that are prepared, in the order of their ids.

    The bridge must not run: what it has prepared and not committed yet would be among these.

    Args:
        resources: sessions of its source and its target. With another target, a transaction could
            not be told from one that the target has committed.
        bridge: its name.
        decisions: the log of the bridge, open; None if it is lost. Transactions of other logs are
            given as well, with the outcome that holds without a log.
        are_restarted: both brokers were restarted since the bridge ran: they list all they have.
    """
    prepared: dict[bytes, set[Role]] = {}
    for role, resource in resources.items():
        for xid in await resource.xa_recover():
            is_own = xid.format_id == FORMAT_ID and xid.gtx[PREFIX_SIZE:] == bridge.encode()
            if is_own and xid.bq == BRANCHES[role]:
                prepared.setdefault(xid.gtx, set()).add(role)
    return [
        _orphan(transaction, frozenset(prepared[transaction]), decisions, are_restarted)
        for transaction in sorted(prepared)
    ]


def _orphan(
    transaction: bytes,
    prepared: frozenset[Role],
    decisions: DecisionLog | None,
    are_restarted: bool,
) -> Orphan:
    if decisions is not None and decisions.is_own(transaction):
        is_decided = decisions.is_decided(transaction)
        outcome = Outcome.COMMIT if is_decided else Outcome.ROLL_BACK
        reason = f"the transaction log says {'commit' if is_decided else 'nothing'}"
    elif len(prepared) == len(BRANCHES):
        outcome, reason = Outcome.ROLL_BACK, "the target has not committed its branch"
    elif not are_restarted:
        (other,) = BRANCHES.keys() - prepared
        outcome = Outcome.IN_DOUBT
        reason = f"the {other.value} may list its branch after a restart only"
    elif prepared == {Role.SOURCE}:
        outcome, reason = Outcome.COMMIT, "the target has committed its branch"
    else:
        outcome, reason = Outcome.ROLL_BACK, "the target has not committed its branch"
    return Orphan(
        transaction=transaction,
        bridge=transaction[PREFIX_SIZE:].decode(errors="replace"),
        prepared=prepared,
        outcome=outcome,
        reason=reason,
    )


async def resolve(
    resources: Mapping[Role, TwoPhaseSession], orphan: Orphan, decisions: DecisionLog | None
) -> bool:
    """End a transaction on both sides, unless it is in doubt; whether it has ended. Idempotent.

    Args:
        resources: sessions of source and target.
        orphan: as `find_orphans` gave it.
        decisions: the log of the bridge, open; None if it is lost.

    Raises:
        XaError: a side refuses.
    """
    if orphan.outcome is Outcome.IN_DOUBT:
        return False
    if orphan.outcome is Outcome.COMMIT:
        were_there = await commit_branches(resources, orphan.transaction)
        if decisions is not None and were_there:
            decisions.forget(orphan.transaction)
    else:
        await roll_back_branches(resources, orphan.transaction)
    return True
