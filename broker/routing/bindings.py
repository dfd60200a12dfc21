"""What is bound to an address: one interface for queues, diverts, and queues of other brokers.

    Route ─▶ binding.accepts(message) ─▶ binding.route(message, routing) ─▶ routing.queues
                                                                        └─▶ routing.forward(copy)

A binding says which messages it takes, and what taking one means: a queue gets it, or a copy goes
on to other addresses. Routing knows no more of it. Of the bindings with one routing name
each message goes to one: so do the anycast queues of an address. Another kind of binding is another
class.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.model.routing_type import RoutingType
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.storage.context import OperationContext
    from broker.transactions.transaction import Transaction

__all__ = [
    "Binding",
    "BindingType",
    "LocalQueueBinding",
    "Router",
    "RoutingContext",
    "routing_context",
]


class BindingType(enum.IntEnum):
    """What kinds of bindings there are, by Artemis's numbers."""

    LOCAL_QUEUE = 0
    REMOTE_QUEUE = 1
    DIVERT = 2


class Router(Protocol):
    """Where copies go on; `broker.routing.postoffice` is one."""

    def copy_of(self, message: Message) -> Message:
        """Give a copy that may be changed and routed."""

    def route(
        self,
        message: Message,
        context: OperationContext,
        tx: Transaction | None = None,
        *,
        rejects_duplicates: bool = True,
        is_dead: bool = False,
        depth: int = 0,
    ) -> object:
        """Send a message on its way, as PostOffice.route()."""


class RoutingContext:
    """One message on its way, for the bindings that take it.

    Attributes:
        queues: of this broker, that get the message, in order; bindings append theirs.
    """

    __slots__ = ("_context", "_depth", "_router", "_tx", "queues")

    def _begin(
        self, router: Router, context: OperationContext, tx: Transaction | None, depth: int
    ) -> None:
        self.queues: list[Queue] = []
        self._router = router
        self._context = context
        self._tx = tx
        self._depth = depth

    def copy_of(self, message: Message) -> Message:
        """Give a copy that may be changed and forwarded."""
        return self._router.copy_of(message)

    def forward(self, copy: Message) -> None:
        """Route a copy, which has its new address, with what is sent.

        Raises:
            BrokerError: it is refused, and so is all of it.
        """
        self._router.route(
            copy, self._context, self._tx, rejects_duplicates=False, depth=self._depth + 1
        )


def routing_context(
    router: Router, context: OperationContext, tx: Transaction | None, depth: int
) -> RoutingContext:
    """Make a RoutingContext, in less time than a call of the class takes.

    Args:
        router: where copies go.
        context: of who sends the message.
        tx: what it is part of.
        depth: through how many diverts it came.
    """
    made = RoutingContext.__new__(RoutingContext)
    made._begin(router, context, tx, depth)
    return made


class Binding:
    """Something bound to an address: see the module's text.

    A subclass says what a message does there, in route().

    Args:
        binding_type: what kind it is.
        address: that it is bound to.
        unique_name: its own among all bindings of its kind.
        routing_name: of those that share it one gets a message.
        routing_type: ANYCAST takes messages that are sent so, all others those that are not; a
            message without one goes to both. A divert takes all.
        binding_id: of its record; 0 where it has none.
        filter: of what is routed there; None takes all.
        is_exclusive: what it takes goes nowhere else. Of diverts alone, which come first.
        distance: how many brokers away it is; 0 in this one.
    """

    __slots__ = (
        "address",
        "binding_id",
        "binding_type",
        "distance",
        "filter",
        "is_exclusive",
        "routing_name",
        "routing_type",
        "unique_name",
    )

    def __init__(
        self,
        binding_type: BindingType,
        *,
        address: str,
        unique_name: str,
        routing_name: str | None,
        routing_type: RoutingType,
        binding_id: int,
        filter: Filter | None = None,
        is_exclusive: bool = False,
        distance: int = 0,
    ) -> None:
        self.binding_type = binding_type
        self.address = address
        self.unique_name = unique_name
        self.routing_name = routing_name
        self.routing_type = routing_type
        self.binding_id = binding_id
        self.filter = filter
        self.is_exclusive = is_exclusive
        self.distance = distance

    def __repr__(self) -> str:
        return f"{self.binding_type.name}({self.unique_name!r} on {self.address!r})"

    def accepts(self, message: Message) -> bool:
        """Whether it takes a message, if its turn has come."""
        return self.filter is None or self.filter.matches(message)

    def has_consumer_for(self, message: Message) -> bool:
        """Whether a consumer waits there for such a message: those without come behind."""
        return True

    @property
    def is_reached(self) -> bool:
        """Whether what it takes gets there now."""
        return True

    @property
    def is_type_known(self) -> bool:
        """Whether its routing type is known, and not guessed."""
        return True

    @property
    def is_exclusive_queue(self) -> bool:
        """Whether all messages of the queue go to one consumer, as far as this broker knows."""
        return False

    @property
    def pins_groups(self) -> bool:
        """Whether its broker delivers messages of groups that it has alone."""
        return True

    def is_for(self, routing_type: RoutingType | None) -> bool:
        """Whether it gets what is sent as this; None is either."""
        return routing_type is None or routing_type == self.routing_type

    def is_queue(self, name: str) -> bool:
        """Whether it leads to the queue of this name, here or in another broker."""
        return self.unique_name == name

    def cluster_name(self, node_id: str) -> str:
        """Give the name by which a cluster knows it.

        Args:
            node_id: of this broker.
        """
        return self.unique_name + node_id

    def route(self, message: Message, routing: RoutingContext) -> None:
        """Take a message that it accepts.

        Raises:
            BrokerError: a copy of it is refused elsewhere.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Give it as lists of management show it."""
        return f"{type(self).__name__} [name={self.unique_name}, address={self.address}]"


class LocalQueueBinding(Binding):
    """A queue of this broker: it gets the message.

    Args:
        queue: that is bound. When its attributes change, it is bound anew.

    Attributes:
        queue: as given.
    """

    __slots__ = ("queue",)

    def __init__(self, queue: Queue) -> None:
        record = queue.binding
        super().__init__(
            BindingType.LOCAL_QUEUE,
            address=record.address,
            unique_name=queue.name,
            routing_name=record.routing_name,
            routing_type=record.routing_type,
            binding_id=queue.queue_id,
            filter=queue.filter,
        )
        self.queue = queue

    def accepts(self, message: Message) -> bool:
        """Whether the queue is open for it, and its filter matches."""
        return self.queue.accepts(message)

    def has_consumer_for(self, message: Message) -> bool:
        """Whether one of its consumers takes it; credits do not matter."""
        return self.queue.has_consumer_for(message)

    @property
    def is_exclusive_queue(self) -> bool:
        """Whether all its messages go to one consumer."""
        return self.queue.binding.exclusive

    def route(self, message: Message, routing: RoutingContext) -> None:
        """Let the queue get it."""
        routing.queues.append(self.queue)

    def describe(self) -> str:
        """Give it as lists of management show it."""
        return f"Queue [name={self.unique_name}, address={self.address}]"
