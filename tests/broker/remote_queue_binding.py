"""A binding of the kind that a cluster will have: a queue of another broker.

It says what consumers are there, and puts what it takes into a queue of this broker, from which a
bridge would take it; the message names the queue there by its id. Nothing in `broker/` knows it.
"""

import struct

from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.routing.bindings import Binding, BindingType


class RemoteQueueBinding(Binding):
    """See the module's text.

    Args:
        name: of the queue there.
        address: of it, there and here.
        outgoing: the queue here.
        remote_id: of the queue there.
        routing_type: of the queue there.
        distance: how many brokers away it is.
        filter: of the queue there.
        consumers: the filters of its consumers; None is one that takes all.
    """

    def __init__(
        self,
        name,
        address,
        outgoing,
        remote_id=1,
        routing_type=RoutingType.ANYCAST,
        *,
        distance=1,
        filter=None,
        consumers=(),
    ):
        super().__init__(
            BindingType.REMOTE_QUEUE,
            address=address,
            unique_name=f"{name}@{distance}",
            routing_name=address if routing_type is RoutingType.ANYCAST else name,
            routing_type=routing_type,
            binding_id=remote_id,
            filter=filter,
            distance=distance,
        )
        self.outgoing = outgoing
        self.consumers = list(consumers)
        self.property = f"_AMQ_ROUTE_TO{outgoing.name}"

    def has_consumer_for(self, message):
        return any(one is None or one.matches(message) for one in self.consumers)

    def route(self, message, routing):
        ids = message.get(self.property) or b""
        message.set(self.property, PropertyType.BYTES, ids + struct.pack(">q", self.binding_id))
        if self.outgoing not in routing.queues:
            routing.queues.append(self.outgoing)
