"""A session of the Core client as a bridge uses it: receives, sends, acknowledges, two phases."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.core.batch_messages import BatchMessages
from broker.bridges.jms.core.batch_sender import CoreBatchSender
from broker.bridges.jms.core.branches import Branches, CoreBranchSender
from broker.bridges.jms.core.conversion import core_message
from broker.bridges.jms.core.message_ids import MessageIds
from broker.bridges.jms.core.receiver import CoreBranchReceiver, CoreReceiver
from broker.bridges.jms.errors import BridgeConfigError, ProviderError, XaError
from broker.bridges.jms.providers import DestinationKind, SessionKind
from broker.client.errors import DuplicateId, XaRefused
from broker.client.selectors import translate_selector
from broker.model.routing_type import RoutingType
from broker.protocols.core.packet_session import BRIDGE

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import Destination, Subscription
    from broker.client.aio.connection import AsyncConnection
    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.producer import AsyncProducer
    from broker.client.aio.session import AsyncSession
    from broker.environment import Environment
    from broker.model.xid import Xid
    from broker.protocols.core.packet import Packet

__all__ = ["CoreSession"]

_ROUTING: Final = {
    DestinationKind.QUEUE: RoutingType.ANYCAST,
    DestinationKind.TOPIC: RoutingType.MULTICAST,
}


class CoreSession:
    """See the module's text, and `TwoPhaseSession`.

    Args:
        kind: what its work counts for.
        connection: that it belongs to.
        session: of the Core client.
        environment: clock and ids.
    """

    def __init__(
        self,
        kind: SessionKind,
        connection: AsyncConnection,
        session: AsyncSession,
        environment: Environment,
    ) -> None:
        self._kind = kind
        self._connection = connection
        self._session = session
        self._ids = MessageIds(environment.ids, environment.clock)
        self._environment = environment
        self._receivers: list[CoreReceiver] = []
        # Told when the connection is lost.
        self._ahead: list[CoreBatchSender | CoreBranchSender | Branches] = []

    def lost(self, error: Exception) -> None:
        """The connection is lost: batches have no outcome.

        Args:
            error: why.
        """
        for one in self._ahead:
            one.fail(error)

    # --- receiving ----------------------------------------------------------------------------

    async def receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> CoreReceiver:
        """Begin to receive; see `Session`.

        Raises:
            BridgeConfigError: the subscription exists with another topic or selector.
            QueueMissing: the queue does not exist; the bridge tries again.
        """
        consumer, queue = await self._consumer(destination, selector, subscription)
        made = CoreReceiver(consumer, queue, self._kind)
        self._receivers.append(made)
        return made

    async def branch_receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> CoreBranchReceiver:
        """Begin to receive outside of any branch; see `BranchSession`.

        Raises:
            BridgeConfigError: as receiver().
            QueueMissing: likewise.
        """
        consumer, queue = await self._consumer(destination, selector, subscription)
        branches = Branches(self._session.state)
        self._ahead.append(branches)
        return CoreBranchReceiver(consumer, queue, branches)

    async def _consumer(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> tuple[AsyncConsumer, str]:
        """Give a consumer, and what its queue is called.

        Deliveries to it do not count, at a broker of ours: no lost connection makes messages dead
        letters.
        """
        await self._session.add_metadata(BRIDGE, "jms")
        if destination.kind is DestinationKind.QUEUE:
            return await self._session.consumer(destination.name, selector), destination.name
        queue = await self._subscribe(destination, selector, subscription)
        return await self._session.consumer(queue), queue

    async def _subscribe(
        self, topic: Destination, selector: str | None, subscription: Subscription | None
    ) -> str:
        """Give the queue of a subscription; a durable one may be there already."""
        wanted = None if selector is None else translate_selector(selector)
        if subscription is None:
            queue = str(self._environment.ids.random_uuid())
            await self._session.create_queue(
                queue,
                topic.name,
                routing_type=RoutingType.MULTICAST,
                selector=wanted,
                durable=False,
                temporary=True,
            )
            return queue
        queue = f"{_escaped(subscription.client_id)}.{_escaped(subscription.name)}"
        found = await self._session.query_queue(queue)
        if not found.exists:
            await self._session.create_queue(
                queue, topic.name, routing_type=RoutingType.MULTICAST, selector=wanted
            )
        elif (found.address, found.filter) != (topic.name, wanted):
            raise BridgeConfigError(
                f"durable subscription {subscription.name!r} of client {subscription.client_id!r} "
                f"is on topic {found.address!r} with selector {found.filter!r}, not on "
                f"{topic.name!r} with {wanted!r}: delete queue {queue!r} with its messages, or use "
                "another subscription_name"
            )
        return queue

    async def stop(self) -> None:
        """Let no further message come."""
        await self._session.stop()

    async def start(self) -> None:
        """Let messages come again."""
        self._session.start()

    async def acknowledge(self) -> None:
        """Acknowledge all that was received; returns once it counts."""
        for receiver in self._receivers:
            await receiver.acknowledge()

    # --- sending ------------------------------------------------------------------------------

    async def sender(self, destination: Destination) -> _CoreSender:
        """Give what sends there; makes the queue or address if the broker's settings let it.

        Raises:
            ProviderError: it does not exist, and is not made by itself; the bridge tries again.
        """
        await self._make_sure(destination)
        producer = self._session.producer(destination.name)
        return _CoreSender(
            producer,
            destination.name,
            _ROUTING[destination.kind],
            self._ids,
            is_transacted=self._kind is not SessionKind.AUTO,
        )

    async def batch_sender(self, destination: Destination) -> CoreBatchSender | None:
        """Give what sends batches there; see `BatchSession`.

        None where the URI asks for what a producer does with each message.

        Raises:
            ProviderError: as sender().
        """
        messages = await self._messages(destination)
        if messages is None:
            return None
        is_transacted = self._kind is SessionKind.TRANSACTED
        made = CoreBatchSender(messages, is_transacted=is_transacted)
        self._ahead.append(made)
        return made

    async def branch_sender(self, destination: Destination) -> CoreBranchSender | None:
        """Give what sends batches there, each in a branch of its own; see `BranchSession`.

        None where batch_sender() gives None.

        Raises:
            ProviderError: as sender().
        """
        messages = await self._messages(destination)
        if messages is None:
            return None
        made = CoreBranchSender(messages)
        self._ahead.append(made)
        return made

    async def _messages(self, destination: Destination) -> BatchMessages | None:
        options = self._session.state.options
        if options.compress_large_message or options.auto_group or options.group_id is not None:
            return None
        await self._make_sure(destination)
        ends = self._connection, self._session
        return BatchMessages(*ends, destination.name, _ROUTING[destination.kind], self._ids)

    async def _make_sure(self, destination: Destination) -> None:
        """As Artemis's JMS client does when a producer is made."""
        address = destination.name.partition("::")[0]
        found = await self._session.query_address(address)
        routing = _ROUTING[destination.kind]
        if not found.exists and not found.auto_create_addresses:
            raise ProviderError(
                f"target {destination} does not exist, and auto-create-addresses is off"
            )
        if destination.kind is DestinationKind.TOPIC:
            if not found.exists:
                await self._session.create_address(address, routing, auto_created=True)
            return
        queue = destination.name.rpartition("::")[2]
        if found.exists and queue in found.queue_names:
            return
        if not found.auto_create_queues:
            if found.exists:
                # An address may lead elsewhere: by a divert, or to queues of other names.
                return
            raise ProviderError(
                f"target {destination} does not exist, and auto-create-queues is off"
            )
        if not found.queue_names:
            await self._session.create_queue(
                queue, address, routing_type=routing, auto_created=True
            )

    # --- transactions -------------------------------------------------------------------------

    async def commit(self) -> None:
        """Commit the local transaction."""
        await self._session.commit()

    async def xa_start(self, xid: Xid) -> None:
        """Begin a branch."""
        await _xa(self._session.xa_start(xid))

    async def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """End the work of a branch."""
        await _xa(self._session.xa_end(xid, failed=failed))

    async def xa_prepare(self, xid: Xid) -> None:
        """Prepare a branch."""
        await _xa(self._session.xa_prepare(xid))

    async def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit a branch."""
        await _xa(self._session.xa_commit(xid, one_phase=one_phase))

    async def xa_rollback(self, xid: Xid) -> None:
        """Roll a branch back."""
        await _xa(self._session.xa_rollback(xid))

    async def xa_forget(self, xid: Xid) -> None:
        """Forget a branch that an operator has ended."""
        await _xa(self._session.xa_forget(xid))

    async def xa_recover(self) -> tuple[Xid, ...]:
        """Give the branches that are prepared."""
        return await self._session.xa_recover()

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()


async def _xa(request: Awaitable[None]) -> None:
    try:
        await request
    except XaRefused as error:
        raise XaError(error.code, str(error)) from error


def _escaped(text: str) -> str:
    """Give a part of a subscription queue's name, as ActiveMQDestination makes it."""
    return text.replace("\\", "\\\\").replace(".", "\\.")


class _CoreSender:
    """Sends to one address."""

    def __init__(
        self,
        producer: AsyncProducer,
        address: str,
        routing: RoutingType,
        ids: MessageIds,
        *,
        is_transacted: bool,
    ) -> None:
        self._producer = producer
        self._address = address
        self._routing = routing
        self._ids = ids
        self._is_transacted = is_transacted
        self._unconfirmed: list[asyncio.Future[Packet]] = []

    async def send(self, message: JMSMessage) -> None:
        """Send; a new JMSMessageID is given, as any JMS client does."""
        made = core_message(message, self._address, self._routing, self._ids.make())
        if message.stream is not None:
            message.stream.seek(0)
            # A known id: it is there already.
            with contextlib.suppress(DuplicateId):
                await self._producer.send_stream(message.stream, made)
        elif self._is_transacted:
            await self._producer.send(made)
        else:
            self._unconfirmed.append(await self._producer.post(made))

    async def confirmed(self) -> None:
        """Wait for every confirmation; raises the first error."""
        waiting, self._unconfirmed = self._unconfirmed, []
        if not waiting:
            return
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            # A broker may refuse a known id instead of dropping the message: it is there.
            if isinstance(outcome, BaseException) and not isinstance(outcome, DuplicateId):
                raise outcome
