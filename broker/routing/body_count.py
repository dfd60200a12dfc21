"""How many bodies a routing of a large message needs, at most: counted before it is routed.

For its diverts, those they lead to, other brokers, and pages of several addresses. What leads on
from a message that finds no queue is not foreseen. Bindings are asked as they will be, by a router
that counts.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.address import split_fqqn
from broker.routing.bindings import routing_context
from broker.routing.large_copies import DIVERT_DEPTH_MAX

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.routing.postoffice import PostOffice
    from broker.storage.context import OperationContext
    from broker.transactions.transaction import Transaction

__all__ = ["BodyCount"]


class BodyCount:
    """See the module's text.

    Args:
        postoffice: that will route it.

    Attributes:
        count: of route(), and of what that led to.
    """

    def __init__(self, postoffice: PostOffice) -> None:
        self._postoffice = postoffice
        self.count = 0

    def copy_of(self, message: Message) -> Message:
        """Give one without an id and a body."""
        return message.copy()

    def route(
        self,
        message: Message,
        context: OperationContext,
        tx: Transaction | None = None,
        *,
        rejects_duplicates: bool = True,
        is_dead: bool = False,
        depth: int = 0,
    ) -> None:
        """See where it goes, as PostOffice.route()."""
        if depth:
            self.count += 1
        address, _ = split_fqqn(message.address or "")
        route = self._postoffice.route_of(address)
        if depth < DIVERT_DEPTH_MAX:
            routing = routing_context(self, context, tx, depth)
            if route.divert(message, routing):
                return
        if route.remote and route.has_queues:
            # Queues here and those that lead to other brokers get a message of their own.
            self.count += 1
        paging = self._postoffice.paging
        if paging is not None:
            names = {one.address for one in (*route.anycast, *route.multicast)}
            if len(names) > 1:
                self.count += sum(1 for name in names if paging.is_paging(name))
