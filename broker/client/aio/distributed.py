"""What a session does for distributed transactions: the verbs of the XA standard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from broker.client.errors import XaRefused
from broker.protocols.core import packet_xa as xa

if TYPE_CHECKING:
    from broker.client.session_state import SessionState
    from broker.protocols.core.packet import Packet
    from broker.storage.message_records import Xid

P = TypeVar("P", bound="Packet")


class Distributed(ABC):
    """The part of a session that a transaction manager speaks to.

    Every verb raises `XaRefused` with the standard's code when the broker says no.
    """

    state: SessionState

    @abstractmethod
    async def call(self, packet: Packet, expected: type[P]) -> P:
        """Send a request and wait for its answer."""

    @abstractmethod
    def _flush_acknowledgements(self) -> None: ...

    @abstractmethod
    def start(self) -> None:
        """Let messages come."""

    @abstractmethod
    async def stop(self) -> None:
        """Let no message come behind this."""

    async def _ask(self, packet: Packet) -> None:
        answer = await self.call(packet, xa.XaResponse)
        if answer.error:
            raise XaRefused(
                answer.response_code, answer.message or f"XA code {answer.response_code}"
            )

    async def xa_start(self, xid: Xid) -> None:
        """Work for this transaction from now on."""
        await self._ask(xa.XaStart(xid))
        self.state.xid = xid

    async def xa_join(self, xid: Xid) -> None:
        """Work for a transaction that another session works for."""
        await self._ask(xa.XaJoin(xid))
        self.state.xid = xid

    async def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """Stop working for it; with `failed` it can only be rolled back."""
        self._flush_acknowledgements()
        await self._ask(xa.XaEnd(xid, failed))
        self.state.xid = None
        self.state.has_work = False

    async def xa_suspend(self) -> None:
        """Leave the transaction for now."""
        self._flush_acknowledgements()
        await self._ask(xa.XaSuspend())

    async def xa_resume(self, xid: Xid) -> None:
        """Come back to it."""
        await self._ask(xa.XaResume(xid))
        self.state.xid = xid

    async def xa_prepare(self, xid: Xid) -> None:
        """Make it survive anything until its end."""
        await self._ask(xa.XaPrepare(xid))

    async def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit it; with `one_phase` without a prepare before."""
        await self._ask(xa.XaCommit(xid, one_phase))

    async def xa_rollback(self, xid: Xid) -> None:
        """Undo it; what was received and not acknowledged in it comes again too, in order."""
        was_started = self.state.is_started
        if was_started:
            # Or what is on its way would come twice.
            await self.stop()
        for consumer in self.state.consumers:
            consumer.clear()
        await self._ask(xa.XaRollback(xid))
        if was_started:
            self.start()

    async def xa_forget(self, xid: Xid) -> None:
        """Let the broker forget one that an operator ended."""
        await self._ask(xa.XaForget(xid))

    async def xa_recover(self) -> tuple[Xid, ...]:
        """Give the prepared transactions."""
        return (await self.call(xa.XaInDoubtXids(), xa.XaInDoubtXidsResponse)).xids

    async def xa_set_timeout(self, timeout_s: int) -> bool:
        """Set the seconds after which a transaction is rolled back; 0 for the broker's own."""
        return (await self.call(xa.XaSetTimeout(timeout_s), xa.XaSetTimeoutResponse)).ok

    async def xa_get_timeout(self) -> int:
        """Give that timeout, in seconds."""
        answer = await self.call(xa.XaGetTimeout(), xa.XaGetTimeoutResponse)
        return answer.timeout_seconds
