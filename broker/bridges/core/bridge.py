"""One core bridge: connects, forwards, connects again, until it is stopped or has no attempt left.

    start ─▶ connect ─▶ ask for id-cache-size ─▶ forward ─▶ lost, or refused ─▶ wait ─▶ connect …
                 └─ no: wait `retry-interval`, longer each time, as often as the attempts allow

A target that refuses a message is left and tried again like one that is lost: the message is sent
again first, and `status` says what the target said. Nothing is ever dropped. What was on its way
behind it may have been taken: it overtakes the refused one, as with Artemis's bridges.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import TYPE_CHECKING, Final

from broker.bridges.core.forwarding import Forwarding
from broker.bridges.core.outgoing import OutgoingMessages
from broker.bridges.core.status import BridgeState, BridgeStatus, reason_of
from broker.bridges.core.target import Target
from broker.bridges.core.telling import is_starting, said, tell_connected, tell_forgetful
from broker.bridges.core.window import window_of
from broker.client.errors import BrokerRefused, ClientError, NotConnected
from broker.errors import BrokerError, ErrorCode
from broker.model.address import split_fqqn
from broker.notifications import NotificationType
from broker.routing.transformers import make_transformer
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from broker.bridges.core.ports import BridgingBroker
    from broker.bridges.core.target import Link
    from broker.config.cluster import BridgeConfig
    from broker.config.transport import TransportConfig
    from broker.model.message import Message

__all__ = ["CoreBridge"]

log = logging.getLogger("broker.bridge")

_CLOSE_S: Final = 5.0
# Bytes on their way where confirmation-window-size says -1: its default.
_BYTES_MAX: Final = 10 * 1024 * 1024
# Between two looks for a queue that is not there.
_QUEUE_S: Final = 1.0


class CoreBridge:
    """See the module's text.

    Args:
        config: of it.
        name: its own; one of several of a name with `concurrency`.
        connectors: of the target, in their order.
        broker: that it belongs to.
        outgoing: makes what the target gets; None as the configuration says.
        target: where to; None for the connectors.

    Attributes:
        config: as given.
        name: as given.
        state: what it does.

    Raises:
        ValueError: its transformer is not installed.
    """

    def __init__(
        self,
        config: BridgeConfig,
        name: str,
        connectors: Sequence[TransportConfig],
        broker: BridgingBroker,
        *,
        outgoing: OutgoingMessages | None = None,
        target: Target | None = None,
    ) -> None:
        self.config = config
        self.name = name
        self.state = BridgeState.STOPPED
        self._broker = broker
        transformer = None
        if config.transformer is not None:
            properties = dict(config.transformer.properties)
            transformer = make_transformer(config.transformer.class_name, properties)
        elif config.transformer_class_name:
            transformer = make_transformer(config.transformer_class_name, {})
        self._outgoing = outgoing or OutgoingMessages(config, broker.node_uuid, transformer)
        self._target = target or Target(config, connectors, broker.environment)
        if outgoing is None:
            self._target.is_awaited = self._is_awaited
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        # Held while it ends: what stops it while it is being paused waits, and its wish counts.
        self._leaving = asyncio.Lock()
        self._wished = BridgeState.STOPPED
        self._forwarding: Forwarding | None = None
        self._link: Link | None = None
        self._window = self._acknowledged_before = 0
        # Asks the target for each address; None where it drops nothing.
        self._window_at: Callable[[str], Awaitable[int]] | None = None
        # Why it does not forward, while it has no link.
        self._reason = "stopped"
        self._retry_at_s: float | None = None
        self._holds_back = False  # Else one address does not keep the others waiting.

    # --- lifecycle ----------------------------------------------------------------------------

    def start(self) -> None:
        """Forward from now on; a paused one as well. Nothing happens to one that does."""
        if self.state in (BridgeState.STARTING, BridgeState.STARTED):
            return
        if self._task is not None:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                f"bridge {self.name} cannot be started while it is {self.state.name}",
            )
        self.state = BridgeState.STARTING
        self._reason = "is starting"
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._ended)
        self._broker.notifications.bridge(NotificationType.BRIDGE_STARTED, self.name)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """See that no fault of the bridge goes unseen."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("AMQ222118: bridge %s has ended", self.name, exc_info=error)
        self._task = None
        self.state = BridgeState.STOPPED
        self._reason = f"ended by a fault: {error!r}"
        if self._link is not None:
            self._link.drop(NotConnected("the bridge has ended"))
        # What is on its way goes back, unless the storage has failed.
        self._close_near_side()

    async def stop(self, *, within_s: float | None = None) -> None:
        """Take nothing more, wait for confirmations, and disconnect. Idempotent.

        What has not been confirmed then goes back to the queue.

        Args:
            within_s: how long confirmations may take; None as `pending-ack-timeout` says.

        Raises:
            JournalError: the storage has failed.
        """
        await self._leave(BridgeState.STOPPING, BridgeState.STOPPED, within_s)

    async def pause(self) -> None:
        """As stop(), until it is started, or resumed.

        Raises:
            JournalError: the storage has failed.
        """
        await self._leave(BridgeState.PAUSING, BridgeState.PAUSED, None)

    async def _leave(self, during: BridgeState, after: BridgeState, within_s: float | None) -> None:
        task = self._task
        if task is None:
            if self.state is not after:
                self._set_left(after)
            return
        self._wished, self.state = after, during
        is_settled = False
        if self._link is not None and self._forwarding is not None:
            pending_s = self.config.pending_ack_timeout_ms / 1000
            timeout_s = pending_s if within_s is None else min(pending_s, within_s)
            is_settled = await self._settle(self._forwarding, self._link, timeout_s)
        async with self._leaving:
            try:
                # Unless another one that left at the same time has done so.
                if self._task is task:
                    await self._end(task, is_settled=is_settled)
            finally:
                if self._task is None and self.state is not self._wished:
                    self._set_left(self._wished)

    async def _end(self, task: asyncio.Task[None], *, is_settled: bool) -> None:
        """End the work, and disconnect."""
        link = self._link
        task.cancel()
        await asyncio.wait((task,))
        try:
            if link is not None and is_settled:
                await link.close(_CLOSE_S)
            elif link is not None:
                # It has not answered in time: nothing more is asked of it.
                link.drop(NotConnected("the bridge is left"))
        finally:
            self._task = None
            self._close_near_side()

    def _set_left(self, state: BridgeState) -> None:
        self.state = state
        is_paused = state is BridgeState.PAUSED
        self._reason = "paused" if is_paused else "stopped"
        if is_paused:
            log.info("AMQ221030: Paused bridge %s", self.name)
        else:
            log.info("AMQ221029: Stopped bridge %s", self.name)
        self._broker.notifications.bridge(NotificationType.BRIDGE_STOPPED, self.name)

    async def _settle(self, forwarding: Forwarding, link: Link, timeout_s: float) -> bool:
        """Wait until what is on its way is confirmed, and acknowledged here for good.

        Returns:
            Whether it was, in time.
        """
        settled: asyncio.Future[None] = self._loop.create_future()

        def done() -> None:
            if not settled.done():
                settled.set_result(None)

        forwarding.hold(done)
        await asyncio.wait(
            (settled, link.lost), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if not settled.done():
            log.info(
                "AMQ221042: %s bridge %s timed out waiting for the send acknowledgement of %d "
                "messages. They stay in the queue; the target drops those that it has",
                *(self.state.name, self.name, forwarding.pending_count),
            )
        return settled.done()

    def _close_near_side(self) -> None:
        # What finds the target is on this side, too.
        self._target.close()
        forwarding, self._forwarding = self._forwarding, None
        self._link = None
        if forwarding is not None:
            self._acknowledged_before += forwarding.acknowledged_count
            forwarding.close()

    # --- the work -----------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect and forward, again and again; behind a fault of the bridge, too."""
        while True:
            try:
                await self._work()
            except JournalError:
                # The storage has failed, and with it the broker.
                raise
            except Exception as error:
                log.exception("AMQ222118: bridge %s connects again behind a fault", self.name)
                self.state = BridgeState.STARTING
                if self._link is not None:
                    self._link.drop(NotConnected("the bridge connects again"))
                # What is on its way goes back, and comes again with the same ids.
                self._close_near_side()
                await self._wait(0, f"a fault of the bridge: {error!r}")
            else:
                return

    async def _work(self) -> None:
        """Connect and forward, until no attempt is left."""
        attempts_max = self.config.initial_connect_attempts
        # Attempts to connect since a link worked; links since the target took a message.
        failures = links = 0
        while True:
            if self._forwarding is None and not self._open():
                await asyncio.sleep(_QUEUE_S)
                continue
            try:
                await self._connect(failures)
            except ClientError as error:
                if not is_starting(error):
                    failures += 1
                if 0 <= attempts_max < failures:
                    self._give_up(failures, error)
                    return
                await self._wait(failures, said(error, self.config))
                continue
            attempts_max, failures = self.config.reconnect_attempts, 0
            count = self._acknowledged_count
            reason = await self._forward()
            self.state = BridgeState.STARTING
            # A target that refuses what it is sent is asked less and less often.
            links = 0 if self._acknowledged_count > count else links + 1
            if self._forwarding is not None:
                await self._wait(max(0, links - 1), said(reason, self.config))

    def _open(self) -> bool:
        """Begin to consume; whether there is a queue for it."""
        config = self.config
        queue = config.queue_name
        if queue not in self._broker.queues:
            if self._reason != (reason := f"queue {queue!r} does not exist"):
                log.warning(
                    "AMQ222125: No queue found with name %s, bridge %s waits for it",
                    *(queue, self.name),
                )
                self._reason = reason
            return False
        bytes_max = config.confirmation_window_size_bytes
        try:
            forwarding = Forwarding(
                self.name,
                self._broker.new_session(f"bridge {self.name}"),
                self._outgoing,
                bytes_max=bytes_max if bytes_max > 0 else _BYTES_MAX,
                timers=self._loop,
                on_failed=self._failed,
                on_gone=self._gone,
                send_back=self._send_back,
                holds_back=self._holds_back,
            )
            forwarding.open(queue, config.filter)
        except BrokerError as error:
            if self._reason != (reason := f"queue {queue!r} refuses the bridge: {error}"):
                log.warning("AMQ222118: unable to start Bridge %s: %s", self.name, error)
                self._reason = reason
            return False
        self._forwarding = forwarding
        return True

    async def _connect(self, failures: int) -> None:
        """Connect, once.

        Raises:
            ClientError: it cannot be reached, or refuses.
        """
        self._retry_at_s = None
        if not failures:
            self._reason = "connects"
        config = self.config
        link = await self._target.connect(failures)
        try:
            size = None
            if config.use_duplicate_detection:
                size = await self._target.cache_size(link, self._cache_address())
            await self._prepare(link)
        except BaseException:
            link.drop(NotConnected("not needed"))
            raise
        self._window = window_of(
            size, bridge_count=config.concurrency, uses_detection=config.use_duplicate_detection
        )
        self._link = link
        tell_connected(self.name, config, link.where, size, self._window)

    async def _prepare(self, link: Link) -> None:
        """Do with a new link what comes before messages.

        Raises:
            ClientError: that is not possible.
        """
        if self.config.use_duplicate_detection:
            self._window_at = functools.partial(self._window_there, link)
            if await self._target.forgets_ids(link):
                tell_forgetful(self.name, link.where)

    async def _window_there(self, link: Link, address: str) -> int:
        """Give how many messages may be on their way to an address.

        Raises:
            ClientError: the connection is lost.
        """
        address = split_fqqn(address)[0]
        if address == self._cache_address():
            return self._window
        size = await self._target.cache_size(link, address)
        return window_of(size, bridge_count=self.config.concurrency, uses_detection=True)

    def _lost(self, link: Link, reason: Exception) -> None:
        """Hear that a link is lost, before another one is tried."""

    def _send_back(self, message: Message, error: BrokerRefused) -> bool:
        """Take a message back that the target refuses; whether it left the queue here."""
        return False

    def _cache_address(self) -> str:
        address = self.config.forwarding_address
        if address is not None:
            return address
        queue = self._broker.queues.get(self.config.queue_name)
        return self.config.queue_name if queue is None else queue.binding.address

    async def _forward(self) -> Exception:
        """Forward until the link is lost, or the target refuses; why."""
        link, forwarding = self._link, self._forwarding
        assert link is not None, "_connect() was before"
        if forwarding is None:
            link.drop(NotConnected("the queue is gone"))
            self._link = None
            return NotConnected("the queue is gone")
        self.state = BridgeState.STARTED
        forwarding.begin(link, self._window, self._window_at)
        # Shielded: who stops the bridge waits for it as well.
        reason = await asyncio.shield(link.lost)
        self._link = None
        self._lost(link, reason)
        if self._forwarding is not None:
            self._forwarding.end()
        if self._forwarding is not None or isinstance(reason, BrokerRefused):
            log.warning(
                "AMQ222095: Bridge %s has lost its target %s: %s", self.name, link.where, reason
            )
        link.drop(NotConnected("the bridge connects again"))
        return reason

    def _failed(self, error: Exception) -> None:
        """Sending has come to an end."""
        if self._link is not None:
            self._link.lose(error)

    def _gone(self) -> None:
        """The queue is gone: look for one of its name."""
        forwarding, self._forwarding = self._forwarding, None
        self._reason = f"queue {self.config.queue_name!r} was deleted"
        log.warning("bridge %s: %s; it waits for another one", self.name, self._reason)
        if forwarding is not None:
            self._acknowledged_before += forwarding.acknowledged_count
            # In a turn of its own: the queue is in the middle of its end.
            self._loop.call_soon(forwarding.close)
        if self._link is not None:
            self._link.lose(NotConnected(self._reason))

    async def _wait(self, failures: int, reason: str) -> None:
        delay_s = self._target.options.retry_delay_s(failures)
        if self._reason != reason:
            self._reason = reason
            log.warning(
                "AMQ224091: Bridge %s is unable to connect to destination, or to send to it. "
                "Retrying in %.1f s: %s",
                *(self.name, delay_s, reason),
            )
        self._retry_at_s = self._loop.time() + delay_s
        await asyncio.sleep(delay_s)
        self._retry_at_s = None

    def _give_up(self, attempts: int, error: Exception) -> None:
        log.warning(
            "AMQ222101: Bridge %s achieved %d attempts, it will stop retrying to reconnect: %s",
            *(self.name, attempts, error),
        )
        self._task = None
        self._close_near_side()
        self.state = BridgeState.STOPPED
        self._reason = f"no attempt is left after {attempts}: {said(error, self.config)}"
        self._broker.notifications.bridge(NotificationType.BRIDGE_STOPPED, self.name)

    # --- what others see ----------------------------------------------------------------------

    @property
    def is_started(self) -> bool:
        """Whether it forwards, or tries to."""
        return self.state in (BridgeState.STARTING, BridgeState.STARTED)

    @property
    def is_connected(self) -> bool:
        """Whether it has a connection to the target."""
        return self._link is not None

    def _is_awaited(self) -> bool:
        return self._forwarding is not None and self._forwarding.pending_count > 0

    @property
    def _acknowledged_count(self) -> int:
        now = 0 if self._forwarding is None else self._forwarding.acknowledged_count
        return self._acknowledged_before + now

    @property
    def status(self) -> BridgeStatus:
        """What it does now, and why it does not move."""
        config, link, forwarding = self.config, self._link, self._forwarding
        queue = self._broker.queues.get(config.queue_name)
        count = 0 if queue is None else queue.message_count
        reason, is_moving = self._reason, False
        if self.state is BridgeState.STARTED and link is not None and forwarding is not None:
            reason, is_moving = reason_of(
                forwarding,
                message_count=count,
                filter_text=config.filter,
                now_s=self._loop.time(),
            )
        elif self.is_started and self._retry_at_s is not None:
            left_s = max(0.0, self._retry_at_s - self._loop.time())
            reason = f"{reason}; waits to retry in {left_s:.0f} s"
        return BridgeStatus(
            name=self.name,
            queue=config.queue_name,
            state=self.state,
            is_connected=link is not None,
            target=self._target.name if link is None else link.where,
            window=0 if link is None else self._window,
            message_count=count,
            pending_count=0 if forwarding is None else forwarding.pending_count,
            acknowledged_count=self._acknowledged_count,
            reason=reason,
            is_moving=is_moving,
        )
