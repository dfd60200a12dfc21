"""What a session does for distributed transactions: the verbs of the XA standard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from broker.client.errors import XaRefused
from broker.protocols.core import packet_xa as xa

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from broker.client.aio.calls import Calls
    from broker.model.xid import Xid
    from broker.protocols.core.packet import Packet


class Distributed(ABC):
    """The part of a session that a transaction manager speaks to.

    Every verb raises `XaRefused` with the standard's code when the broker says no.
    """

    _calls: Calls

    @abstractmethod
    def _flush_acknowledgements(self) -> None: ...

    @abstractmethod
    def _stopped(self) -> AbstractAsyncContextManager[None]:
        """Give a block without delivery."""

    async def _ask(self, packet: Packet, *, ahead: bool = False) -> None:
        answer = await self._calls.call(packet, xa.XaResponse, ahead=ahead)
        if answer.error:
            raise XaRefused(
                answer.response_code, answer.message or f"XA code {answer.response_code}"
            )

    async def xa_start(self, xid: Xid) -> None:
        """Begin a branch of a distributed transaction; what follows belongs to it.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        await self._ask(xa.XaStart(xid))
        self._calls.state.xid = xid

    async def xa_join(self, xid: Xid) -> None:
        """Join a branch that another session has begun.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        await self._ask(xa.XaJoin(xid))
        self._calls.state.xid = xid

    async def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """Stop working for the branch.

        Args:
            xid: of the transaction.
            failed: it can only be rolled back.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._flush_acknowledgements()
        await self._ask(xa.XaEnd(xid, failed))
        self._calls.state.xid = None
        self._calls.state.has_work = False

    async def xa_suspend(self) -> None:
        """Leave the branch for now.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        self._flush_acknowledgements()
        await self._ask(xa.XaSuspend())

    async def xa_resume(self, xid: Xid) -> None:
        """Come back to a branch that was suspended.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        await self._ask(xa.XaResume(xid))
        self._calls.state.xid = xid

    async def xa_prepare(self, xid: Xid) -> None:
        """Prepare the branch: it survives a restart of the broker until its end.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        await self._ask(xa.XaPrepare(xid))

    async def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit the branch. Several may be on their way, by tasks of their own.

        Args:
            xid: of the transaction.
            one_phase: without a prepare before.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        await self._ask(xa.XaCommit(xid, one_phase), ahead=True)

    async def xa_rollback(self, xid: Xid) -> None:
        """Roll the branch back; what was received in it comes again, in order.

        Several may be on their way, by tasks of their own.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        # Or what is on its way would come twice.
        async with self._stopped():
            for consumer in self._calls.state.consumers:
                consumer.clear()
            await self._ask(xa.XaRollback(xid), ahead=True)

    async def xa_forget(self, xid: Xid) -> None:
        """Let the broker forget a branch that an operator ended.

        Args:
            xid: of the transaction.

        Raises:
            XaRefused: the broker refuses, with the code of the XA standard.
        """
        await self._ask(xa.XaForget(xid))

    async def xa_recover(self) -> tuple[Xid, ...]:
        """Give the branches that are prepared."""
        return (await self._calls.call(xa.XaInDoubtXids(), xa.XaInDoubtXidsResponse)).xids

    async def xa_set_timeout(self, timeout_s: int) -> bool:
        """Set after how long the broker rolls a branch back; whether it takes that.

        Args:
            timeout_s: seconds; 0 for the broker's own.
        """
        return (await self._calls.call(xa.XaSetTimeout(timeout_s), xa.XaSetTimeoutResponse)).ok

    async def xa_get_timeout(self) -> int:
        """Give the seconds after which the broker rolls a branch back."""
        answer = await self._calls.call(xa.XaGetTimeout(), xa.XaGetTimeoutResponse)
        return answer.timeout_seconds
