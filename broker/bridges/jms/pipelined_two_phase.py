"""Distributed transactions on their way at once, a batch each, in the order of `coordinator.py`.

    T: begin, send, prepare ─▶ S: begin, acknowledge, prepare ─▶ decide ─▶ commit T ─▶ commit S

A step of a batch begins when the one before it has ended well. Its first one does not wait for any
other batch, and the decisions come in the order of the batches: all that are due with one sync of
the log. So a link with latency carries as many as the bridge lets be on their way, and a batch that
fails keeps those behind it from being decided. They are rolled back, and come again in their order.

For sides that can (`BranchSender`, `BranchReceiver`): those of the Core protocol, with the bridge's
own transaction manager. Recovery has sessions of its own: a rollback gives back what a session has
received.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.coordinator import branch
from broker.bridges.jms.errors import InDoubtError
from broker.bridges.jms.providers import BranchSession, SessionKind
from broker.bridges.jms.transactions import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.bridges.jms.coordinator import Coordinator
    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import (
        BranchReceiver,
        BranchSender,
        Done,
        Session,
        TwoPhaseSession,
    )
    from broker.bridges.jms.transfers import Ends

__all__ = ["TRANSACTIONS_MAX", "PipelinedTwoPhase"]

TRANSACTIONS_MAX: Final = 512
"""On their way at most. Fills a link of 20 ms with batches of one message."""


@dataclass(slots=True, eq=False)
class _Batch:
    """One on its way.

    Attributes:
        messages: of it.
        done: is told its outcome.
        transaction: global id; empty before it has one.
        is_prepared: on both sides.
        is_decided: to commit, durably.
        is_done: committed on both sides.
        error: why it does not go on.
    """

    messages: Sequence[JMSMessage]
    done: Done
    transaction: bytes = b""
    is_prepared: bool = False
    is_decided: bool = False
    is_done: bool = False
    error: Exception | None = None

    def outcome(self) -> Exception | None:
        """Give what its `done` is called with."""
        if self.error is None or not self.is_decided or isinstance(self.error, InDoubtError):
            return self.error
        return InDoubtError(
            f"transaction {self.transaction.hex()} is decided, and not committed on both sides "
            f"yet: {self.error}"
        )


class PipelinedTwoPhase:
    """ONCE_AND_ONLY_ONCE by distributed transactions.

    Args:
        source: session that receives.
        receiver: of it.
        sender: to the target.
        coordinator: the transaction manager.
        resources: sessions of both sides for recovery, which do nothing else.
    """

    begins = True
    receives_ahead = True

    def __init__(
        self,
        source: Session,
        receiver: BranchReceiver,
        sender: BranchSender,
        coordinator: Coordinator,
        resources: Mapping[Role, TwoPhaseSession],
    ) -> None:
        self.source_session = source
        self.receiver = receiver
        self._sender = sender
        self._coordinator = coordinator
        self._resources = resources
        # When something may have turned up that an earlier connection has left.
        self._recover_s = math.inf
        self._batches: deque[_Batch] = deque()
        self._has_room = asyncio.Event()
        self._deciding: asyncio.Task[None] | None = None
        self._is_over = False

    @classmethod
    async def open(
        cls,
        ends: Ends,
        coordinator: Coordinator,
        resources: Mapping[Role, TwoPhaseSession],
        recover_s: float | None,
    ) -> PipelinedTwoPhase | None:
        """Open the sessions; None where a side cannot do it.

        Args:
            ends: both connections.
            coordinator: the transaction manager; it has ended what an earlier connection has left.
            resources: the sessions that it did so by.
            recover_s: after how many seconds it is to do so again; None if it need not.
        """
        if not all(isinstance(one, BranchSession) for one in resources.values()):
            return None
        target = await ends.target.session(SessionKind.TWO_PHASE)
        assert isinstance(target, BranchSession), "the first session was"
        sender = await target.branch_sender(ends.target_destination)
        if sender is None:
            await target.close()
            return None
        source = await ends.source.session(SessionKind.TWO_PHASE)
        assert isinstance(source, BranchSession), "the first session was"
        # Last: from here on messages come.
        receiver = await source.branch_receiver(
            ends.source_destination, ends.selector, ends.subscription
        )
        made = cls(source, receiver, sender, coordinator, resources)
        made._recover_behind(recover_s)
        return made

    def _recover_behind(self, wait_s: float | None) -> None:
        now_s = asyncio.get_running_loop().time()
        self._recover_s = math.inf if wait_s is None else now_s + wait_s

    async def begin(self, *, is_empty: bool) -> None:
        """Recover where that is due."""
        if asyncio.get_running_loop().time() >= self._recover_s:
            self._recover_behind(await self._coordinator.recover(self._resources))

    async def move(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Send in a transaction of its own; decide when it is prepared on both sides."""
        while len(self._batches) >= TRANSACTIONS_MAX:
            self._has_room.clear()
            await self._has_room.wait()
        if self._is_over:
            return
        batch = _Batch(messages, done)
        self._batches.append(batch)
        try:
            # As many as are on their way are begun again soon.
            transaction = await self._coordinator.new_transaction(spare=len(self._batches))
        except Exception as error:  # noqa: BLE001 - it has its turn behind those before it.
            self._failed(batch, error)
            return
        batch.transaction = transaction
        if not self._begins(transaction):
            return
        self._sender.send_branch(
            branch(Role.TARGET, transaction), messages, partial(self._sent, batch)
        )

    def _begins(self, transaction: bytes) -> bool:
        """Whether it may; recovery rolls back one that came too late."""
        if not self._is_over:
            self._coordinator.on_their_way.add(transaction)
        return not self._is_over

    async def undo(self) -> None:
        """Nothing: a transaction begins when its batch leaves, and recovery ends it."""

    def close(self) -> None:
        """Decide nothing more; whatever is on its way is left to recovery."""
        self._is_over = True
        self._coordinator.on_their_way.clear()
        if self._deciding is not None:
            self._deciding.cancel()
        self._has_room.set()

    # --- the steps of a batch -----------------------------------------------------------------

    def _sent(self, batch: _Batch, error: Exception | None) -> None:
        """T is prepared. S alone prepared would mean that T was committed."""
        if error is not None:
            self._failed(batch, error)
        elif not self._is_over:
            xid = branch(Role.SOURCE, batch.transaction)
            self.receiver.take_branch(xid, batch.messages[-1], partial(self._taken, batch))

    def _taken(self, batch: _Batch, error: Exception | None) -> None:
        """S is prepared, too."""
        if error is not None:
            self._failed(batch, error)
            return
        batch.is_prepared = True
        if self._deciding is None and not self._is_over:
            loop = asyncio.get_running_loop()
            self._deciding = loop.create_task(self._decide_all())

    async def _decide_all(self) -> None:
        while not self._is_over and (batches := self._next_to_decide()):
            failure = None
            try:
                await self._coordinator.decide(*(batch.transaction for batch in batches))
            except Exception as error:  # noqa: BLE001 - each has its turn.
                failure = error
            for batch in batches:
                batch.is_decided = failure is None or self._coordinator.decisions.is_decided(
                    batch.transaction
                )
                if not batch.is_decided or isinstance(failure, InDoubtError):
                    self._failed(batch, failure)
                elif not self._is_over:
                    self._commit(batch)
        self._deciding = None

    def _next_to_decide(self) -> list[_Batch]:
        """Give those that are prepared and have none before them that is not."""
        found = []
        for batch in self._batches:
            if batch.error is not None or not batch.is_prepared:
                break
            if not batch.is_decided:
                found.append(batch)
        return found

    def _commit(self, batch: _Batch) -> None:
        """Commit T, then S."""
        self._sender.commit_branch(
            branch(Role.TARGET, batch.transaction), partial(self._arrived, batch)
        )

    def _arrived(self, batch: _Batch, error: Exception | None) -> None:
        """T is committed."""
        if error is not None:
            self._failed(batch, error)
        elif not self._is_over:
            xid = branch(Role.SOURCE, batch.transaction)
            self.receiver.commit_branch(xid, partial(self._ended, batch))

    def _ended(self, batch: _Batch, error: Exception | None) -> None:
        """S is committed, too."""
        if error is not None:
            self._failed(batch, error)
            return
        self._coordinator.forget(batch.transaction)
        batch.is_done = True
        self._tell()

    def _failed(self, batch: _Batch, error: Exception | None) -> None:
        batch.error = batch.error or error
        self._tell()

    def _tell(self) -> None:
        """Tell the outcomes whose turn it is."""
        while not self._is_over and self._batches:
            batch = self._batches[0]
            if batch.error is None and not batch.is_done:
                return
            self._batches.popleft()
            self._has_room.set()
            batch.done(batch.outcome())
            if batch.error is not None:
                self._give_up(batch.error)

    def _give_up(self, error: Exception) -> None:
        """Behind an error those that are decided are in doubt, and the others come again."""
        self._is_over = True
        for batch in self._batches:
            if batch.is_decided:
                batch.error = batch.error or error
                batch.done(batch.outcome())
