"""From factories to open sessions: both sides are connected to, the target first.

Factories are called by `call`, in threads of their own, and every call of a provider ends with
failover_timeout: one that hangs delays neither the bridge's stop nor its loop.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from broker.bridges.jms.errors import BridgeConfigError, ProviderTimeout
from broker.bridges.jms.mode import Mode, batch_size_for, choose_mode
from broker.bridges.jms.options import ExactlyOnce, QualityOfService
from broker.bridges.jms.providers import (
    AskedConnection,
    Credentials,
    DestinationKind,
    Subscription,
)
from broker.bridges.jms.transfers import Ends, Transfer, open_transfer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.bridges.jms.options import JMSBridgeOptions
    from broker.bridges.jms.providers import Connection, ConnectionFactory, Destination
    from broker.bridges.jms.transactions import TransactionManager

__all__ = ["Connecting", "Factories", "Opened", "OwnThreads", "timed"]

log = logging.getLogger("broker.bridges")

T = TypeVar("T")


class OwnThreads(Protocol):
    """Runs a function that may block in a thread of its own."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Give what `work` gives; a cancelled call leaves its thread behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factories:
    """Where the two sides come from.

    Attributes:
        source: makes the source's connection factory.
        target: makes the target's; the same object as `source` if both are one provider.
        source_destination: gives where messages come from.
        target_destination: gives where they go to.
    """

    source: Callable[[], object]
    target: Callable[[], object]
    source_destination: Callable[[], Destination]
    target_destination: Callable[[], Destination]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a bridge has once it is connected.

    Attributes:
        transfer: receives and sends.
        mode: how.
        batch_size: messages in a full batch.
        in_flight_max: messages on their way, unless there is one batch alone.
    """

    transfer: Transfer
    mode: Mode
    batch_size: int
    in_flight_max: int


@dataclass(slots=True, kw_only=True)
class Connecting:
    """See the module's text.

    Attributes:
        options: the bridge's parameters.
        factories: where the two sides come from.
        call: runs what blocks.
        adapt: gives the connection factory of what a factory factory gave.
        transactions: for two-phase commit; None without.
    """

    options: JMSBridgeOptions
    factories: Factories
    call: OwnThreads
    adapt: Callable[[object, str], ConnectionFactory]
    transactions: TransactionManager | None
    _has_looked: bool = field(default=False, init=False)

    async def open(self, connections: list[Connection]) -> Opened:
        """Connect both sides and open what the mode needs; what is open is in `connections`.

        Args:
            connections: the caller closes them, also where this fails.

        Raises:
            BridgeConfigError: trying again does not help.
            Exception: whatever a provider raises.
        """
        options, factories = self.options, self.factories
        source_factory = self.adapt(await self._own_thread(factories.source), "source")
        is_same = factories.source is factories.target
        target_factory = source_factory
        if not is_same:
            target_factory = self.adapt(await self._own_thread(factories.target), "target")
            is_same = source_factory == target_factory and (
                (options.source_user_name, options.source_password)
                == (options.target_user_name, options.target_password)
            )
        source_destination = await self._own_thread(factories.source_destination)
        target_destination = await self._own_thread(factories.target_destination)
        subscription = self._subscription(source_destination)
        credentials = Credentials(
            options.source_user_name, options.source_password, options.client_id
        )
        # The target first: nothing is received that cannot be sent.
        target: Connection | None = None
        if not is_same:
            target = await self._timed(
                target_factory.connect(
                    Credentials(options.target_user_name, options.target_password)
                ),
                "connecting to the target",
            )
            connections.append(target)
        source = await self._timed(source_factory.connect(credentials), "connecting to the source")
        connections.append(source)
        target = target or source
        await self._ask(source, target, is_same=is_same)
        mode = choose_mode(
            options.quality_of_service,
            options.exactly_once,
            is_same=is_same,
            source=source.capabilities,
            target=target.capabilities,
            has_manager=self.transactions is not None,
        )
        sizes = options.max_batch_size, options.max_in_flight
        if mode is Mode.DUPLICATE_IDS:
            sizes = await self._limited(target, target_destination)
        ends = Ends(
            source=source,
            target=target,
            source_destination=source_destination,
            target_destination=target_destination,
            selector=options.selector,
            subscription=subscription,
        )
        await self._tell_of_dead_letters(source, source_destination)
        opening = open_transfer(mode, ends, batch_size=sizes[0], transactions=self.transactions)
        return Opened(await self._timed(opening, "opening sessions"), mode, *sizes)

    async def _ask(self, source: Connection, target: Connection, *, is_same: bool) -> None:
        """Have both sides find out what duplicate ids need, where the choice depends on it."""
        options = self.options
        if (
            is_same
            or options.quality_of_service is not QualityOfService.ONCE_AND_ONLY_ONCE
            or options.exactly_once is ExactlyOnce.TWO_PHASE
        ):
            return
        if isinstance(source, AskedConnection):
            await self._timed(source.ask_as_source(), "asking the source who it is")
        if isinstance(target, AskedConnection):
            await self._timed(target.ask_as_target(), "asking the target for its duplicate ids")

    async def _tell_of_dead_letters(self, source: Connection, destination: Destination) -> None:
        """Warn once of a source that counts what it delivers to the bridge."""
        if self._has_looked or not isinstance(source, AskedConnection):
            return
        work = source.deliveries_max(destination)
        most = await self._timed(work, "asking the source for its max-delivery-attempts")
        self._has_looked = True
        if most is not None and most > 0:
            log.warning(
                "JMS bridge %s: each lost connection to source %s counts as a delivery there: "
                "messages become dead letters, or are dropped, when that has come %d times "
                "(max-delivery-attempts; -1 is never)",
                *(self.options.name, destination, most),
            )

    def _subscription(self, source: Destination) -> Subscription | None:
        name, client_id = self.options.subscription_name, self.options.client_id
        if name is None or client_id is None:
            return None
        if source.kind is not DestinationKind.TOPIC:
            raise BridgeConfigError(
                f"subscription_name is {name!r}, and the source is {source}: "
                "only topics have subscriptions"
            )
        return Subscription(name, client_id)

    async def _limited(self, target: Connection, destination: Destination) -> tuple[int, int]:
        """Give the size of a batch, and of all that are on their way."""
        kept = await self._timed(
            target.duplicate_ids_max(destination), "asking for the target's id-cache-size"
        )
        options = self.options
        wanted = options.max_batch_size
        size = batch_size_for(wanted, kept)
        if size < wanted and kept is not None:
            log.warning(
                "JMS bridge %s: max_batch_size %d is more than the target's id-cache-size %d; "
                "batches are of %d messages",
                *(options.name, wanted, kept, size),
            )
        elif size < wanted:
            log.warning(
                "JMS bridge %s: max_batch_size is %d, and the target does not tell its "
                "id-cache-size; batches are of %d messages, which may double if it is smaller",
                *(options.name, wanted, size),
            )
        return size, batch_size_for(options.max_in_flight, kept)

    async def _timed(self, work: Awaitable[T], what: str) -> T:
        return await timed(work, what, self.options)

    async def _own_thread(self, work: Callable[[], T]) -> T:
        return await self._timed(self.call(work), f"calling {_name(work)}")


async def timed(work: Awaitable[T], what: str, options: JMSBridgeOptions) -> T:
    """Wait for a provider, within failover_timeout.

    Args:
        work: of the provider.
        what: in words.
        options: the bridge's parameters.

    Raises:
        ProviderTimeout: it did not answer in time.
    """
    try:
        async with asyncio.timeout(options.failover_timeout_s) as bound:
            return await work
    except TimeoutError as error:
        if not bound.expired():
            raise
        raise ProviderTimeout(
            f"{what}: no answer within failover_timeout, {options.failover_timeout} ms"
        ) from error


def _name(work: Callable[..., object]) -> str:
    return cast("str", getattr(work, "__qualname__", type(work).__name__))
