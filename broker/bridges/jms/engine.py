"""What a bridge does while it runs: connects, collects batches, moves them, and tries again.

    run() ─▶ connect source and target ─▶ receive ─▶ batch is due ─▶ move ─┐
      ▲            │ failed                  ▲                             │
      └── wait ◀───┘◀───────── lost ─────────┴─────────────────────────────┘

Belongs to one event loop. Where both sides can, later batches leave while earlier ones are on their
way (`pipelined.py`), up to max_in_flight messages.

Every call of a provider but `move` ends with failover_timeout, so that one that hangs delays
neither `stop()` nor the loop. A move is waited for without limit, since a target without room may
take as long as it likes; `stop()` waits for it for failover_timeout, and then gives the connections
up.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.bridges.jms.batch import Batch
from broker.bridges.jms.connecting import Connecting, timed
from broker.bridges.jms.errors import (
    BridgeConfigError,
    ConnectionLost,
    InDoubtError,
    ProviderError,
)
from broker.bridges.jms.in_flight import InFlight
from broker.bridges.jms.message import ID_LISTS, extended_ids
from broker.bridges.jms.mode import Mode
from broker.bridges.jms.options import FOREVER, QualityOfService
from broker.bridges.jms.providers import BatchReceiver
from broker.bridges.jms.state import BridgeState, Counters, Progress
from broker.bridges.jms.transfers import TRANSACTION_MAX_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from broker.bridges.jms.connecting import Factories, Opened, OwnThreads
    from broker.bridges.jms.in_flight import Departed
    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.options import JMSBridgeOptions
    from broker.bridges.jms.providers import Connection, ConnectionFactory, Receiver
    from broker.bridges.jms.transactions import TransactionManager
    from broker.bridges.jms.transfers import Transfer
    from broker.environment import Clock

    _Receive = Callable[[int, float], Awaitable[Sequence[JMSMessage]]]

__all__ = ["Engine"]

log = logging.getLogger("broker.bridges")

T = TypeVar("T")

RECEIVE_S: Final = 0.2  # Artemis: 1 s.
# Without a message for so long, `why` says so.
IDLE_S: Final = 5.0
# How long the end of a connection may take; what has not counted is undone without it as well.
_CLOSE_S: Final = 5.0


class _Stopped(Exception):
    pass


def _receiving(receiver: Receiver) -> _Receive:
    """Give what receives: as many as are there, or one where the provider does no more."""
    if isinstance(receiver, BatchReceiver):
        return receiver.receive_many

    async def one(count_max: int, timeout_s: float) -> Sequence[JMSMessage]:
        message = await receiver.receive(timeout_s)
        return () if message is None else (message,)

    return one


class Engine:
    """See the module's text.

    Args:
        options: the bridge's parameters.
        factories: where the two sides come from.
        clock: ages and due times.
        call: runs what blocks.
        adapt: gives the connection factory of what a factory factory gave.
        transactions: for two-phase commit; None without.
        receive_s: how long one receive waits before it looks whether to stop or pause.

    Attributes:
        progress: state, and why it does not move.
        counters: what it has done.
        mode: how it moves messages; None until it was connected.
    """

    def __init__(
        self,
        options: JMSBridgeOptions,
        factories: Factories,
        *,
        clock: Clock,
        call: OwnThreads,
        adapt: Callable[[object, str], ConnectionFactory],
        transactions: TransactionManager | None = None,
        receive_s: float = RECEIVE_S,
    ) -> None:
        self.options = options
        self.progress = Progress(options.max_retries, options.failure_retry_interval)
        self.counters = Counters()
        self.mode: Mode | None = None
        self._arrived_lag_ms: int | None = None
        self._connecting = Connecting(
            options=options,
            factories=factories,
            call=call,
            adapt=adapt,
            transactions=transactions,
        )
        self._clock = clock
        self._transactions = transactions
        self._receive_s = receive_s
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        # Cleared while messages are received or on their way.
        self._idle = asyncio.Event()
        self._idle.set()
        self._running: asyncio.Task[None] | None = None
        self._in_flight = InFlight(0)
        self._has_warned = False
        # When the next attempt is made, and when a message came last, or could have.
        self._retry_s = self._received_s = 0.0
        self._batch = Batch(1, FOREVER)
        # When the oldest message was sent that is to come again, ms since 1970; 0 is not known.
        self._delayed_ms = 0
        self._background: set[asyncio.Task[Any]] = set()

    # --- what operators do --------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect and move; returns at once. Idempotent."""
        if self.progress.start():
            self._stopping.clear()
            self._running = asyncio.get_running_loop().create_task(self._run())
            log.info("JMS bridge %s: started", self.options.name)

    def pause(self) -> None:
        """Move nothing until `resume()`. A batch on its way goes on; nothing more is received."""
        self.progress.pause()
        self._changed.set()

    def resume(self) -> None:
        """Move messages again."""
        self.progress.resume()
        self._changed.set()

    async def stop(self) -> None:
        """Stop: a batch on its way is waited for, up to failover_timeout. Idempotent."""
        running, self._running = self._running, None
        if running is None:
            self.progress.stopped()
            return
        self.progress.stop()
        self._stopping.set()
        self._changed.set()
        done, _ = await asyncio.wait((running,), timeout=self.options.failover_timeout_s)
        if not done:
            running.cancel()
            await asyncio.wait((running,))
        self.progress.stopped()
        log.info("JMS bridge %s: stopped", self.options.name)
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error

    async def wait_until_idle(self) -> None:
        """Wait until nothing is received or on its way: what `pause()` leads to."""
        await self._idle.wait()

    def why(self) -> str | None:
        """Give why no message moves, in words; None if messages do."""
        since = self._in_flight.since_s
        if since is not None:
            waited = self._clock.monotonic_s() - since
            if waited >= 1:
                batch = _batch(self._in_flight.oldest_count)
                return f"{batch} waits for the target to confirm it since {waited:.0f} s"
        now_s = self._clock.monotonic_s()
        if self.progress.state is BridgeState.RETRYING:
            left_ms = max(0, round((self._retry_s - now_s) * 1000))
            return self.progress.retrying_in(left_ms)
        idle_s = now_s - self._received_s
        if self.progress.state is BridgeState.STARTED and since is None and idle_s >= IDLE_S:
            return self._no_message(idle_s)
        return self.progress.reason

    def _no_message(self, idle_s: float) -> str:
        selector, has = self.options.selector, len(self._batch)
        which = "" if selector is None else f" that selector {selector!r} takes"
        if has:
            batch = f"a batch of {self._batch.size_max} has {has} yet"
            return f"{batch}, and no message{which} has come for {idle_s:.0f} s"
        return f"no message{which} has come for {idle_s:.0f} s"

    # --- running ------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._connect_and_move()
            except _Stopped:
                return
            except BridgeConfigError as error:
                self._failed()
                self.progress.gave_up(error)
                log.error("JMS bridge %s: failed: %s", self.options.name, error)
                return
            except Exception as error:
                self._failed()
                wait_ms = self.progress.failed(error)
                log.warning("JMS bridge %s: %s", self.options.name, self.progress.reason)
                log.debug("JMS bridge %s", self.options.name, exc_info=error)
                if wait_ms is None:
                    return
                self._retry_s = self._clock.monotonic_s() + wait_ms / 1000
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_ms / 1000):
                        await self._stopping.wait()

    def _failed(self) -> None:
        self.counters.failures += 1

    async def _connect_and_move(self) -> None:
        connections: list[Connection] = []
        transfer: Transfer | None = None
        try:
            opened = await self._unless_stopped(self._connecting.open(connections))
            transfer, self.mode = opened.transfer, opened.mode
            self.progress.connected()
            self.counters.connected += 1
            self._count_in_doubt()
            log.info("JMS bridge %s: connected: %s", self.options.name, self.mode)
            await self._move_batches(opened, connections)
        finally:
            await self._close(transfer, connections)

    # --- moving -------------------------------------------------------------------------------

    async def _move_batches(self, opened: Opened, connections: list[Connection]) -> None:
        transfer = opened.transfer
        receive = _receiving(transfer.receiver)
        batch = self._batch = Batch(opened.batch_size, self._batch_time_ms())
        self._received_s = self._clock.monotonic_s()
        self._in_flight = in_flight = InFlight(opened.in_flight_max)
        self._idle.clear()
        try:
            while not self._stopping.is_set():
                in_flight.check()
                self._check(connections)
                if self.progress.is_paused:
                    await self._rest(transfer, batch, connections)
                    continue
                # Ahead where nothing is acknowledged with a batch that is not of it.
                ahead = opened.in_flight_max if transfer.receives_ahead else 0
                await self._receive(transfer, receive, max(ahead, batch.room), batch)
                while batch.is_due(self._clock.monotonic_s()) and not self._stopping.is_set():
                    # A client that reconnects by itself has received again what the batch has.
                    self._check(connections)
                    await self._leave(transfer, batch)
            await in_flight.wait_until_empty()
        finally:
            self._end(batch)
        raise _Stopped

    def _end(self, batch: Batch) -> None:
        """Give up what is in hand and on its way: it comes again, or is lost."""
        batch.clear()
        oldest_ms = self._in_flight.oldest_ms
        count = self._in_flight.abort()
        self.counters.aborted += count
        if self.options.quality_of_service is not QualityOfService.AT_MOST_ONCE:
            self.counters.retried += count
            self._delayed_ms = self._delayed_ms or oldest_ms
        self._idle.set()

    def _batch_time_ms(self) -> int:
        wanted, most = self.options.max_batch_time, int(TRANSACTION_MAX_S * 1000)
        if self.mode is not Mode.TWO_PHASE or 0 < wanted <= most:
            return wanted
        log.info(
            "JMS bridge %s: batches leave after %d ms, although max_batch_time is %d: a "
            "distributed transaction must not be open for longer",
            *(self.options.name, most, wanted),
        )
        return most

    async def _receive(
        self, transfer: Transfer, receive: _Receive, count_max: int, batch: Batch
    ) -> None:
        """Receive what is there for the batch, or what comes soon."""
        if transfer.begins:
            beginning = transfer.begin(is_empty=not batch)
            await self._timed(beginning, "beginning a transaction")
        wait_s = batch.wait_s(self._clock.monotonic_s(), self._receive_s)
        messages = await self._timed(receive(count_max, wait_s), "receiving")
        now_s = self._clock.monotonic_s()
        if messages:
            self._received_s = now_s
        for message in messages:
            batch.add(message, now_s)

    async def _leave(self, transfer: Transfer, batch: Batch) -> None:
        """Move a batch; return once the next one may be received."""
        now_s = self._clock.monotonic_s()
        messages = batch.take(now_s)
        for message in messages:
            self._prepare(message)
        in_flight = self._in_flight
        departed = in_flight.add(messages, now_s)
        await in_flight.wait_for_room()
        await transfer.move(messages, partial(self._moved, in_flight, departed))
        in_flight.check()

    def _moved(self, in_flight: InFlight, departed: Departed, error: Exception | None) -> None:
        """A batch has its outcome."""
        if in_flight.is_over:
            # Its connection was given up.
            return
        if error is None or isinstance(error, InDoubtError):
            # In doubt it is decided: recovery moves them.
            in_flight.arrived(departed, self._clock.monotonic_s())
            self._count(departed.messages)
            for message in departed.messages:
                message.close()
        elif not isinstance(error, BridgeConfigError):
            # A smaller batch may do.
            reason = str(error) or type(error).__name__
            told = ProviderError(f"{_batch(len(departed.messages))}: {reason}")
            told.__cause__ = error
            error = told
        if error is not None:
            in_flight.failed(error)
        self._count_in_doubt()

    def _count_in_doubt(self) -> None:
        self.counters.in_doubt = getattr(self._transactions, "in_doubt", 0)

    def _prepare(self, message: JMSMessage) -> None:
        """Set what every target is to see."""
        if self.options.add_message_id_in_header:
            ids = extended_ids(message.properties, message.message_id)
            if ids is not None:
                for name in ID_LISTS:
                    message.set_text(name, ids)
        now_ms = self._clock.now_ms()
        if 0 < message.expiration_ms <= now_ms:
            # As Artemis: it was valid when it was received, and expires at the target.
            message.expiration_ms = now_ms + 1

    def _count(self, messages: list[JMSMessage]) -> None:
        self.counters.moved += len(messages)
        self._delayed_ms = 0
        newest = messages[-1].timestamp_ms
        if newest:
            self._arrived_lag_ms = max(0, self._clock.now_ms() - newest)
        if self.options.quality_of_service is not QualityOfService.ONCE_AND_ONLY_ONCE:
            return
        non_durable = sum(not message.durable for message in messages)
        self.counters.moved_non_durable += non_durable
        if non_durable and not self._has_warned:
            self._has_warned = True
            log.warning(
                "JMS bridge %s: moved a non-durable message under ONCE_AND_ONLY_ONCE, which holds "
                "for durable messages alone: a broker that restarts loses it. Told once; the "
                "counter moved_non_durable has their number",
                self.options.name,
            )

    async def _rest(self, transfer: Transfer, batch: Batch, connections: list[Connection]) -> None:
        """Pause: nothing is received and nothing is in hand until resume() or stop()."""
        while batch:
            await self._leave(transfer, batch)
        await self._in_flight.wait_until_empty()
        # A broker would roll it back once it is open for too long.
        await self._timed(transfer.undo(), "undoing a transaction")
        await self._timed(transfer.source_session.stop(), "pausing the source")
        self._idle.set()
        while self.progress.is_paused and not self._stopping.is_set():
            self._check(connections)
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._receive_s):
                    await self._changed.wait()
        self._idle.clear()
        if not self._stopping.is_set():
            await self._timed(transfer.source_session.start(), "resuming the source")

    def _check(self, connections: list[Connection]) -> None:
        for connection in connections:
            if connection.lost is not None:
                raise ConnectionLost(str(connection.lost)) from connection.lost

    # --- bounds -------------------------------------------------------------------------------

    async def _timed(self, work: Awaitable[T], what: str) -> T:
        return await timed(work, what, self.options)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that a stop ends at once.

        Raises:
            _Stopped: it did.
        """
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            raise _Stopped
        finally:
            stopping.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,), timeout=_CLOSE_S)

    async def _close(self, transfer: Transfer | None, connections: list[Connection]) -> None:
        """Undo and close; what does not end in time is given up."""
        if transfer is not None:
            transfer.close()
            await self._given_up_late(transfer.undo(), "undoing a transaction")
        # The source first: what comes again is there before the next attempt.
        for connection in reversed(connections):
            await self._given_up_late(connection.close(), "closing a connection")

    async def _given_up_late(self, work: Coroutine[Any, Any, None], what: str) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._ended)
        most_s = min(_CLOSE_S, self.options.failover_timeout_s)
        done, _ = await asyncio.wait((task,), timeout=most_s)
        if not done:
            task.cancel()
            log.warning("JMS bridge %s: %s did not end", self.options.name, what)
        elif not task.cancelled() and (error := task.exception()) is not None:
            log.debug("JMS bridge %s: %s", self.options.name, what, exc_info=error)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            # Reported above if it came in time, and of no use afterwards.
            task.exception()

    @property
    def lag_ms(self) -> int | None:
        """How far the target is behind; None where nothing has moved.

        The age of the newest message that arrived, when it did; or of the oldest that has not,
        now, where that is more.
        """
        waiting_ms = self._in_flight.oldest_ms or self._delayed_ms
        if not waiting_ms:
            return self._arrived_lag_ms
        return max(self._clock.now_ms() - waiting_ms, self._arrived_lag_ms or 0)

    def snapshot(self) -> dict[str, object]:
        """Give state, reason, mode, counters and lag, as JSON has it."""
        return {
            "name": self.options.name,
            "state": self.progress.state.value,
            "why": self.why(),
            "mode": None if self.mode is None else self.mode.value,
            **self.counters.as_dict(),
            "lag_ms": self.lag_ms,
        }

    @property
    def state(self) -> BridgeState:
        """What it does."""
        return self.progress.state


def _batch(count: int) -> str:
    return "a message" if count == 1 else f"a batch of {count} messages"
