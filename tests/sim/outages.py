"""Whether a pair is served again within its bound, and by one owner: looked at from outside.

    served ─▶ the owner ends, or loses the store ─▶ … at most the bound … ─▶ another serves

The bound is what the lease lasts, and `TAKES_S`. It runs as long as a node could serve, and nothing
changes: a process that is up and runs, and reaches a store that is up. It begins again with each
fault that is felt, or mended, and with each change of the pair's state. Some outages are meant, and
are not counted:

- a stop in good order without failover-on-shutdown leaves the backup waiting;
- who stands still keeps a file lock, and a machine that is cut off does for as long as NFS has it;
- a clock of the database is wrong, or was set back and has made a lease longer; or a COMMIT takes
  longer than an answer is waited for.

A primary that asked for its place, and ended, is awaited for `node_state.ABANDONED_S`.

What was written by who is the owner no more is `double_writes` of the store.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.storage.node_state import ABANDONED_S, NodeState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.pair import Pair, PairNode

# Beside the lease: to see that it is free, to take it, and to load.
TAKES_S = 2.0
LOOK_S = 0.05


class Outages:
    """Of one pair.

    Args:
        pair: that is looked at.
        problem: told of each outage that took too long.

    Attributes:
        count: how often nothing served.
        worst_s: the longest that the bound ran, where no primary was awaited.
    """

    def __init__(self, pair: Pair, problem: Callable[[str], object]) -> None:
        self.count = 0
        self.worst_s = 0.0
        self._pair = pair
        self._problem = problem
        # Since when a node runs without having stood still.
        self._runs_since_s = dict.fromkeys((one.name for one in pair.nodes), 0.0)

    async def watch(self) -> None:
        """Look, for ever."""
        clock = self._pair.network.loop.time
        since_s = clock()
        could: object = None
        is_served, is_told = True, False
        while True:
            await asyncio.sleep(LOOK_S)
            self._look_for_two(clock())
            able = [one for one in self._pair.nodes if self._is_able(one)]
            now_could = tuple(one.process for one in able), self._state()
            was_served, is_served = is_served, any(one.is_active for one in able)
            if is_served or now_could != could or self._is_meant(able):
                since_s, could = clock(), now_could
                is_told = False
                self.count += was_served and not is_served
                continue
            took_s, bound_s = clock() - since_s, self._pair.store.lease_s + TAKES_S
            if self._is_awaited(able):
                bound_s += ABANDONED_S
            else:
                self.worst_s = max(self.worst_s, took_s)
            if took_s > bound_s and not is_told:
                is_told = True
                names = ", ".join(one.name for one in able)
                self._problem(
                    f"late: {self._pair.name} is not served for {took_s:.1f} s, of {bound_s:.1f} "
                    f"at most, at {clock():.1f} s; state {self._state().name}, could be by {names}"
                )

    def _look_for_two(self, now_s: float) -> None:
        """See that who is the owner no more has not written since it could know."""
        for node in self._pair.nodes:
            if node.process is None or node.process.is_paused:
                self._runs_since_s[node.name] = now_s
        for text in self._pair.store.double_writes(self._runs_since_s):
            self._problem(f"two owners: {text}")

    def _state(self) -> NodeState:
        return self._pair.store.node_state()

    def _is_able(self, node: PairNode) -> bool:
        """Whether a node runs, and reaches the store; it may not know yet what it has lost."""
        process = node.process
        return process is not None and not process.is_paused and self._pair.store.hears(node.host)

    def _is_meant(self, able: list[PairNode]) -> bool:
        store, keeper = self._pair.store, self._keeper()
        if not able or store.is_odd or (keeper is not None and keeper not in able):
            return True
        return not self._may_take_over() and self._pair.primary not in able

    def _keeper(self) -> PairNode | None:
        """Who has a lock that does not end by itself."""
        storage = self._pair.store.keeper()
        return next((one for one in self._pair.nodes if one.storage is storage), None)

    def _may_take_over(self) -> bool:
        """Whether a backup may, by the state; the primary always may."""
        return self._state() in (NodeState.ACTIVE, NodeState.FAILING_BACK)

    def _is_awaited(self, able: list[PairNode]) -> bool:
        """Whether backups still wait for a primary that asked for its place, and has ended."""
        return self._state() is NodeState.FAILING_BACK and self._pair.primary not in able
