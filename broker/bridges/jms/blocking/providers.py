"""Providers whose calls block, as those of most client libraries do; used from one thread each.

`BlockingConnectionFactory` and its parts are `broker.bridges.jms.providers` without coroutines.
`adapted()` makes of one what the bridge uses. All calls of a connection come from one thread.
"""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, cast

from broker.bridges.jms.blocking.own_thread import Worker
from broker.bridges.jms.errors import BridgeConfigError
from broker.bridges.jms.providers import SessionKind

if TYPE_CHECKING:
    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import (
        Capabilities,
        Connection,
        ConnectionFactory,
        Credentials,
        Destination,
        Receiver,
        Sender,
        Session,
        Subscription,
    )
    from broker.model.xid import Xid

__all__ = [
    "BlockingConnection",
    "BlockingConnectionFactory",
    "BlockingReceiver",
    "BlockingSender",
    "BlockingSession",
    "BlockingTwoPhaseSession",
    "adapted",
]


class BlockingReceiver(Protocol):
    """As `Receiver`."""

    def receive(self, timeout_s: float) -> JMSMessage | None:
        """Give the next message, None if none came in time."""


class BlockingSender(Protocol):
    """As `Sender`."""

    def send(self, message: JMSMessage) -> None:
        """Hand one message over."""

    def confirmed(self) -> None:
        """Return once every message since the last call has been confirmed."""


class BlockingSession(Protocol):
    """As `Session`."""

    def receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> BlockingReceiver:
        """Begin to receive."""

    def sender(self, destination: Destination) -> BlockingSender:
        """Give what sends there."""

    def stop(self) -> None:
        """Let no further message be delivered, until `start()`."""

    def start(self) -> None:
        """Let messages be delivered again."""

    def acknowledge(self) -> None:
        """Acknowledge all messages received so far."""

    def commit(self) -> None:
        """Make what was sent and received since the last commit count."""

    def close(self) -> None:
        """Undo what was not acknowledged or committed, and end."""


class BlockingTwoPhaseSession(BlockingSession, Protocol):
    """As `TwoPhaseSession`."""

    def xa_start(self, xid: Xid) -> None:
        """Begin a branch."""

    def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """Do no more work in the branch."""

    def xa_prepare(self, xid: Xid) -> None:
        """Prepare the branch."""

    def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit the branch."""

    def xa_rollback(self, xid: Xid) -> None:
        """Roll the branch back."""

    def xa_forget(self, xid: Xid) -> None:
        """Forget a branch that an operator has ended."""

    def xa_recover(self) -> tuple[Xid, ...]:
        """Give the branches that are prepared."""


class BlockingConnection(Protocol):
    """As `Connection`."""

    @property
    def capabilities(self) -> Capabilities:
        """What the provider can do."""

    @property
    def lost(self) -> Exception | None:
        """Why the connection has ended by itself; read from the bridge's thread."""

    def session(self, kind: SessionKind) -> BlockingSession:
        """Give a session."""

    def duplicate_ids_max(self, destination: Destination) -> int | None:
        """Give how many duplicate ids a destination keeps."""

    def close(self) -> None:
        """Close sessions and connection."""


class BlockingConnectionFactory(Protocol):
    """As `ConnectionFactory`."""

    def connect(self, credentials: Credentials) -> BlockingConnection:
        """Connect."""


_LOOK_S: Final = 0.02


def adapted(
    factory: object, side: str, threads: dict[str, Worker] | None = None
) -> ConnectionFactory:
    """Give the connection factory that a factory factory made, as the bridge uses it.

    Args:
        factory: with a method `connect`, a coroutine function or one that blocks.
        side: source or target, for the error's text.
        threads: by side, that of the last connection; the next one waits until it has ended, so
            that a provider that hangs at each attempt has one. None: the caller connects once.

    Raises:
        BridgeConfigError: it has no such method.
    """
    connect = getattr(factory, "connect", None)
    if not callable(connect):
        raise BridgeConfigError(
            f"the {side}'s connection factory factory gave {type(factory).__name__}, which has no "
            "method connect(credentials)"
        )
    if inspect.iscoroutinefunction(connect):
        return cast("ConnectionFactory", factory)
    return _Factory(
        cast("BlockingConnectionFactory", factory), side, {} if threads is None else threads
    )


class _Factory:
    def __init__(
        self, factory: BlockingConnectionFactory, side: str, threads: dict[str, Worker]
    ) -> None:
        self._factory = factory
        self._side = side
        self._threads = threads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Factory) and other._factory == self._factory

    def __hash__(self) -> int:
        return hash(self._factory)

    async def connect(self, credentials: Credentials) -> Connection:
        # A call of it may hang.
        while (last := self._threads.get(self._side)) is not None and last.is_alive:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        worker = self._threads[self._side] = Worker(f"bridge-{type(self._factory).__name__}")
        late: list[bool] = []

        def connect() -> BlockingConnection:
            made = self._factory.connect(credentials)
            if late:
                made.close()
            return made

        try:
            connection = await worker.call(connect)
        except asyncio.CancelledError:
            # It hangs, or took too long: what it makes yet is closed as soon as it is there.
            late.append(True)
            worker.end()
            raise
        except BaseException:
            worker.end()
            raise
        return _Connection(worker, connection)


class _Connection:
    def __init__(self, worker: Worker, connection: BlockingConnection) -> None:
        self._worker = worker
        self._connection = connection

    @property
    def capabilities(self) -> Capabilities:
        return self._connection.capabilities

    @property
    def lost(self) -> Exception | None:
        return self._connection.lost

    async def session(self, kind: SessionKind) -> Session:
        session = await self._worker.call(partial(self._connection.session, kind))
        made = _TwoPhaseSession if kind is SessionKind.TWO_PHASE else _Session
        return made(self._worker, session)

    async def duplicate_ids_max(self, destination: Destination) -> int | None:
        return await self._worker.call(partial(self._connection.duplicate_ids_max, destination))

    async def close(self) -> None:
        try:
            await self._worker.call(self._connection.close)
        finally:
            self._worker.end()


class _Session:
    def __init__(self, worker: Worker, session: BlockingSession) -> None:
        self._worker = worker
        self._session = session

    async def receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> Receiver:
        make = partial(self._session.receiver, destination, selector, subscription)
        return _Receiver(self._worker, await self._worker.call(make))

    async def sender(self, destination: Destination) -> Sender:
        make = partial(self._session.sender, destination)
        return _Sender(self._worker, await self._worker.call(make))

    async def stop(self) -> None:
        await self._worker.call(self._session.stop)

    async def start(self) -> None:
        await self._worker.call(self._session.start)

    async def acknowledge(self) -> None:
        await self._worker.call(self._session.acknowledge)

    async def commit(self) -> None:
        await self._worker.call(self._session.commit)

    async def close(self) -> None:
        await self._worker.call(self._session.close)


class _TwoPhaseSession(_Session):
    @property
    def _two_phase(self) -> BlockingTwoPhaseSession:
        return cast("BlockingTwoPhaseSession", self._session)

    async def xa_start(self, xid: Xid) -> None:
        await self._worker.call(partial(self._two_phase.xa_start, xid))

    async def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        await self._worker.call(partial(self._two_phase.xa_end, xid, failed=failed))

    async def xa_prepare(self, xid: Xid) -> None:
        await self._worker.call(partial(self._two_phase.xa_prepare, xid))

    async def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        await self._worker.call(partial(self._two_phase.xa_commit, xid, one_phase=one_phase))

    async def xa_rollback(self, xid: Xid) -> None:
        await self._worker.call(partial(self._two_phase.xa_rollback, xid))

    async def xa_forget(self, xid: Xid) -> None:
        await self._worker.call(partial(self._two_phase.xa_forget, xid))

    async def xa_recover(self) -> tuple[Xid, ...]:
        return tuple(await self._worker.call(self._two_phase.xa_recover))


class _Receiver:
    def __init__(self, worker: Worker, receiver: BlockingReceiver) -> None:
        self._worker = worker
        self._receiver = receiver

    async def receive(self, timeout_s: float) -> JMSMessage | None:
        return await self._worker.call(partial(self._receiver.receive, timeout_s))


class _Sender:
    def __init__(self, worker: Worker, sender: BlockingSender) -> None:
        self._worker = worker
        self._sender = sender
        self._waiting: list[JMSMessage] = []

    async def send(self, message: JMSMessage) -> None:
        # Sent together: one change of threads a batch, not one a message.
        self._waiting.append(message)

    async def confirmed(self) -> None:
        messages, self._waiting = self._waiting, []
        await self._worker.call(partial(self._send, messages))

    def _send(self, messages: list[JMSMessage]) -> None:
        for message in messages:
            self._sender.send(message)
        self._sender.confirmed()
