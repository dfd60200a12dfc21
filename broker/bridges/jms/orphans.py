"""Transactions of bridges that are prepared and that no running bridge will end.

Their bridge is gone, or its transaction log is. Which branches are left says what became of a
transaction (`coordinator.py`): T alone and both are rolled back, S alone is committed.
"""

from __future__ import annotations

from dataclasses import dataclass
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

__all__ = ["Orphan", "find_orphans", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A transaction that is prepared on one side or both.

    Attributes:
        transaction: global id.
        bridge: name of the bridge that began it.
        prepared: sides that have a prepared branch.
        is_committed: how it ends: committed, or rolled back.
        reason: why so, in words.
    """

    transaction: bytes
    bridge: str
    prepared: frozenset[Role]
    is_committed: bool
    reason: str


async def find_orphans(
    resources: Mapping[Role, TwoPhaseSession], bridge: str, decisions: DecisionLog | None
) -> list[Orphan]:
    """Give the transactions of a bridge that are prepared, in the order of their ids.

    The bridge must not run: what it has prepared and not committed yet would be among these.

    Args:
        resources: sessions of its source and its target. With another target, a transaction could
            not be told from one that the target has committed.
        bridge: its name.
        decisions: the log of the bridge, open; None if it is lost. Transactions of other logs are
            given as well, with the outcome that holds without a log.
    """
    prepared: dict[bytes, set[Role]] = {}
    for role, resource in resources.items():
        for xid in await resource.xa_recover():
            is_own = xid.format_id == FORMAT_ID and xid.gtx[PREFIX_SIZE:] == bridge.encode()
            if is_own and xid.bq == BRANCHES[role]:
                prepared.setdefault(xid.gtx, set()).add(role)
    return [
        _orphan(transaction, frozenset(prepared[transaction]), decisions)
        for transaction in sorted(prepared)
    ]


def _orphan(transaction: bytes, prepared: frozenset[Role], decisions: DecisionLog | None) -> Orphan:
    if decisions is not None and decisions.is_own(transaction):
        is_committed = decisions.is_decided(transaction)
        reason = f"the transaction log says {'commit' if is_committed else 'nothing'}"
    elif prepared == {Role.SOURCE}:
        is_committed, reason = True, "the target has committed its branch"
    else:
        is_committed, reason = False, "the target has not committed its branch"
    return Orphan(
        transaction=transaction,
        bridge=transaction[PREFIX_SIZE:].decode(errors="replace"),
        prepared=prepared,
        is_committed=is_committed,
        reason=reason,
    )


async def resolve(
    resources: Mapping[Role, TwoPhaseSession], orphan: Orphan, decisions: DecisionLog | None
) -> None:
    """End a transaction on both sides. Idempotent.

    Args:
        resources: sessions of source and target.
        orphan: as `find_orphans` gave it.
        decisions: the log of the bridge, open; None if it is lost.

    Raises:
        XaError: a side refuses.
    """
    if orphan.is_committed:
        were_there = await commit_branches(resources, orphan.transaction)
        if decisions is not None and were_there:
            decisions.forget(orphan.transaction)
    else:
        await roll_back_branches(resources, orphan.transaction)
