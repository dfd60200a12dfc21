"""Sessions, receivers and senders of AMQP 1.0.

Sends are confirmed one by one. What was received is accepted in a transaction (part 4 of the
standard): a broker answers its discharge, and need not answer an acceptance. Where it has no
transactions, as RabbitMQ, it answers a flow of the link behind what was accepted before.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from proton import Delivery, Described, Endpoint, Link, Message, Terminus, symbol, ulong

from broker.bridges.jms.amqp.conversion import Addressed, encoded_message, jms_message
from broker.bridges.jms.errors import BridgeConfigError, ProviderError
from broker.bridges.jms.providers import DestinationKind, SessionKind
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from proton import Receiver as EngineReceiver
    from proton import Sender as EngineSender

    from broker.bridges.jms.amqp.wire import Wire
    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import Destination, Subscription
    from broker.environment import Environment

__all__ = ["AmqpReceiver", "AmqpSender", "AmqpSession"]

# How long a broker without transactions may take for an answer.
_ANSWER_S: Final = 20.0
# Messages that the broker sends ahead.
_PREFETCH: Final = 200
_SELECTOR: Final = "apache.org:selector-filter:string"
_TRANSACTIONAL: Final = 0x34
_DECLARED: Final = 0x33
_ACCEPTED: Final = 0x24
_DECLARE: Final = "amqp:declare:list"
_DISCHARGE: Final = "amqp:discharge:list"
_ROUTING: Final = {
    DestinationKind.QUEUE: RoutingType.ANYCAST,
    DestinationKind.TOPIC: RoutingType.MULTICAST,
}
_numbers: Final = itertools.count(1)


def _capable(terminus: Terminus, *names: str) -> None:
    data = terminus.capabilities
    data.put_array(False, data.SYMBOL)
    data.enter()
    for name in names:
        data.put_symbol(symbol(name))
    data.exit()


class AmqpSession:
    """A session; see `Session`.

    Args:
        wire: of its connection.
        kind: what its work counts for.
        environment: clock and ids.
    """

    def __init__(self, wire: Wire, kind: SessionKind, environment: Environment) -> None:
        self._wire = wire
        self._kind = kind
        self._environment = environment
        self._engine = wire.connection.session()
        self._engine.open()
        self._transaction: _Coordinator | None = None
        self._receivers: list[AmqpReceiver] = []
        self._senders: list[AmqpSender] = []

    async def receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> AmqpReceiver:
        """Begin to receive."""
        if await _has_transactions(self._wire):
            self._transaction = await _Coordinator.attached(self._wire, self._engine)
        elif self._kind is SessionKind.TRANSACTED:
            raise BridgeConfigError(
                "source and target are one broker, which has no transactions by AMQP"
            )
        name = f"receiver-{next(_numbers)}" if subscription is None else subscription.name
        link = self._engine.receiver(name)
        link.source.address = destination.name
        link.snd_settle_mode = Link.SND_UNSETTLED
        if destination.kind is DestinationKind.TOPIC:
            _capable(link.source, "topic")
        else:
            _capable(link.source, "queue")
        if subscription is not None:
            link.source.durability = Terminus.DELIVERIES
            link.source.expiry_policy = Terminus.EXPIRE_NEVER
        if selector is not None:
            link.source.filter.put_dict(
                {symbol("selector"): Described(symbol(_SELECTOR), selector)}
            )
        made = AmqpReceiver(self._wire, link, self._environment)
        self._wire.links[name] = made
        await _attached(self._wire, link, str(destination))
        made.fill()
        self._receivers.append(made)
        return made

    async def sender(self, destination: Destination) -> AmqpSender:
        """Give what sends there."""
        link = self._engine.sender(f"sender-{next(_numbers)}")
        link.target.address = destination.name
        link.snd_settle_mode = Link.SND_UNSETTLED
        _capable(link.target, destination.kind.value)
        to = Addressed(destination.name, _ROUTING[destination.kind])
        made = AmqpSender(
            self._wire,
            link,
            to,
            self._environment,
            is_transacted=self._kind is SessionKind.TRANSACTED,
        )
        self._wire.links[link.name] = made
        await _attached(self._wire, link, str(destination))
        self._senders.append(made)
        return made

    async def stop(self) -> None:
        """Ask for no more; what the broker has sent ahead waits here."""
        for receiver in self._receivers:
            receiver.is_stopped = True

    async def start(self) -> None:
        """Ask for messages again."""
        for receiver in self._receivers:
            receiver.is_stopped = False
            receiver.fill()

    async def acknowledge(self) -> None:
        """Accept all that was received; returns once that counts."""
        await self._end_transaction()

    async def commit(self) -> None:
        """Make what was sent and received count."""
        await self._end_transaction()

    async def _end_transaction(self) -> None:
        transaction = self._transaction
        id = None if transaction is None else await transaction.declared()
        for sender in self._senders:
            await sender.send_all(id)
        for receiver in self._receivers:
            await receiver.acknowledge(id)
        if transaction is not None and id is not None:
            await transaction.committed(id)

    async def close(self) -> None:
        """End it."""
        self._engine.close()
        self._wire.flush()


async def _has_transactions(wire: Wire) -> bool:
    """Ask a broker, in a session of its own: one without transactions may end the session.

    Raises:
        ConnectionLost: the connection has ended.
    """
    session = wire.connection.session()
    wire.probes.append(session)
    session.open()
    link = session.sender(f"coordinator-{next(_numbers)}")
    link.target.type = Terminus.COORDINATOR
    link.open()
    answered = Endpoint.REMOTE_ACTIVE | Endpoint.REMOTE_CLOSED
    await wire.until(
        lambda: bool(link.state & answered) or bool(session.state & Endpoint.REMOTE_CLOSED)
    )
    has_them = (
        bool(link.state & Endpoint.REMOTE_ACTIVE)
        and link.remote_target.type == Terminus.COORDINATOR
    )
    session.close()
    wire.flush()
    return has_them


async def _attached(wire: Wire, link: EngineReceiver | EngineSender, what: str) -> None:
    """Open a link, and wait until the broker has.

    Raises:
        ConnectionLost: it refuses, or has gone.
    """
    link.open()
    await wire.until(lambda: bool(link.state & Endpoint.REMOTE_ACTIVE))
    far = link.remote_target if link.is_sender else link.remote_source
    if far.type == Terminus.UNSPECIFIED:
        # It refuses: why comes with its detach.
        await wire.until(lambda: bool(link.state & Endpoint.REMOTE_CLOSED))
        wire.check()
        raise ProviderError(f"the broker refuses {what}")


class AmqpReceiver:
    """Receives from one link.

    Args:
        wire: of its connection.
        link: of the engine.
        environment: its clock.
    """

    def __init__(self, wire: Wire, link: EngineReceiver, environment: Environment) -> None:
        self._wire = wire
        self._link = link
        self._environment = environment
        self._came: deque[tuple[Delivery, bytes]] = deque()
        self._parts: list[bytes] = []
        self._given: list[Delivery] = []
        self.is_stopped = False
        # Frames that gave credit, and answers to them.
        self._flows = self._answers = 0

    def fill(self) -> None:
        """Give credit for as many as are to be sent ahead."""
        missing = _PREFETCH - self._link.credit - len(self._came)
        if not self.is_stopped and missing >= _PREFETCH // 2:
            self._flow(missing)

    def _flow(self, credit: int) -> None:
        """Give credit, in a frame of its own."""
        self._link.flow(credit)
        self._flows += 1
        self._wire.flush()

    def flowed(self) -> None:
        """Take the answer to a flow."""
        self._answers += 1

    def happened(self, delivery: Delivery) -> None:
        """Take what has come of a message."""
        if not delivery.readable:
            return
        if delivery.pending:
            self._parts.append(self._link.recv(delivery.pending))
        if delivery.partial:
            return
        parts, self._parts = self._parts, []
        is_aborted = delivery.aborted
        self._link.advance()
        if is_aborted:
            delivery.settle()
        else:
            self._came.append((delivery, b"".join(parts)))

    async def receive(self, timeout_s: float) -> JMSMessage | None:
        """Give the next message; see `Receiver`."""
        if not self._came:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._wire.until(lambda: bool(self._came))
        if not self._came:
            return None
        delivery, encoded = self._came.popleft()
        self._given.append(delivery)
        self.fill()
        return jms_message(encoded, self._environment.clock.now_ms())

    async def acknowledge(self, transaction: bytes | None) -> None:
        """Accept what was given.

        Args:
            transaction: that it belongs to; None returns once the broker has taken note of it.
        """
        given, self._given = self._given, []
        for delivery in given:
            if transaction is None:
                delivery.update(Delivery.ACCEPTED)
            else:
                delivery.local.data = [transaction, Described(ulong(_ACCEPTED), [])]
                delivery.update(_TRANSACTIONAL)
            delivery.settle()
        # Before a flow, which Proton would write ahead of it.
        self._wire.flush()
        if given and transaction is None:
            await self._flow_answered()

    async def _flow_answered(self) -> None:
        self._flow(1)
        asked = self._flows
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._wire.until(lambda: self._answers >= asked)
        except TimeoutError as error:
            raise ProviderError(
                f"the broker has no transactions, and does not answer a flow within {_ANSWER_S:.0f}"
                " s: it is not known whether it has taken an acknowledgement"
            ) from error


class AmqpSender:
    """Sends on one link.

    Args:
        wire: of its connection.
        link: of the engine.
        to: the destination.
        environment: clock and ids.
        is_transacted: the session's commit sends.
    """

    def __init__(
        self,
        wire: Wire,
        link: EngineSender,
        to: Addressed,
        environment: Environment,
        *,
        is_transacted: bool,
    ) -> None:
        self._wire = wire
        self._link = link
        self._to = to
        self._environment = environment
        self._is_transacted = is_transacted
        self._messages: list[bytes] = []
        self._on_way: dict[str, Delivery] = {}
        self._refusal: str | None = None

    def flowed(self) -> None:
        """Nothing: the engine has the credit."""

    def happened(self, delivery: Delivery) -> None:
        """Take an outcome."""
        if not (state := delivery.remote_state) and not delivery.settled:
            return
        if state == _TRANSACTIONAL:
            found = delivery.remote.data
            outcome = found[1] if isinstance(found, list) and len(found) > 1 else None
            if isinstance(outcome, Described) and outcome.descriptor not in (
                _ACCEPTED,
                symbol("amqp:accepted:list"),
            ):
                self._refusal = f"outcome {outcome.descriptor} in a transaction"
        elif state != Delivery.ACCEPTED:
            self._refusal = _refusal(delivery)
        self._on_way.pop(delivery.tag, None)
        delivery.settle()

    async def send(self, message: JMSMessage) -> None:
        """Hand one message over."""
        ids, clock = self._environment.ids, self._environment.clock
        self._messages.append(encoded_message(message, self._to, ids.time_uuid(), clock.now_ms()))

    async def confirmed(self) -> None:
        """Send all, and wait until the broker has accepted each; see `Sender`."""
        if not self._is_transacted:
            await self.send_all(None)

    async def send_all(self, transaction: bytes | None) -> None:
        """Send what was handed over, as the broker gives credit.

        Args:
            transaction: that it belongs to; None is none.

        Raises:
            ProviderError: the broker refuses one.
            ConnectionLost: the connection has ended before all were confirmed.
        """
        messages, self._messages = self._messages, []
        for encoded in messages:
            await self._wire.until(lambda: self._link.credit > 0 or self._refusal is not None)
            tag = str(next(_numbers))
            delivery = self._link.delivery(tag)
            if transaction is not None:
                delivery.local.data = [transaction]
                delivery.update(_TRANSACTIONAL)
            self._link.send(encoded)
            self._on_way[tag] = delivery
            self._link.advance()
        await self._wire.until(lambda: not self._on_way)
        if self._refusal is not None:
            raise ProviderError(
                f"{self._to.address}: the broker refuses a message: {self._refusal}"
            )


def _refusal(delivery: Delivery) -> str:
    condition = delivery.remote.condition
    if condition is not None:
        return f"{condition.name}: {condition.description}"
    names = {Delivery.RELEASED: "released", Delivery.MODIFIED: "modified"}
    return names.get(delivery.remote_state, "rejected")


class _Coordinator:
    """The link on which transactions are declared and discharged.

    Args:
        wire: of its connection.
        link: of the engine.
    """

    def __init__(self, wire: Wire, link: EngineSender) -> None:
        self._wire = wire
        self._link = link

    @classmethod
    async def attached(cls, wire: Wire, session: Any) -> _Coordinator:  # noqa: ANN401 - Proton's.
        link = session.sender(f"coordinator-{next(_numbers)}")
        link.target.type = Terminus.COORDINATOR
        _capable(link.target, "amqp:local-transactions")
        await _attached(wire, link, "transactions")
        return cls(wire, link)

    async def declared(self) -> bytes:
        """Begin a transaction; its id."""
        delivery = await self._asked(_DECLARE, [None])
        if delivery.remote_state != _DECLARED:
            raise ProviderError(f"the broker begins no transaction: {_refusal(delivery)}")
        id = bytes(delivery.remote.data[0])
        delivery.settle()
        return id

    async def committed(self, id: bytes) -> None:
        """Commit."""
        delivery = await self._asked(_DISCHARGE, [id, False])
        if delivery.remote_state != Delivery.ACCEPTED:
            raise ProviderError(f"the broker does not commit: {_refusal(delivery)}")
        delivery.settle()

    async def _asked(self, what: str, values: list[object]) -> Delivery:
        await self._wire.until(lambda: self._link.credit > 0)
        delivery = self._link.delivery(str(next(_numbers)))
        self._link.send(bytes(Message(Described(symbol(what), values)).encode()))
        self._link.advance()
        await self._wire.until(lambda: bool(delivery.remote_state))
        return delivery
