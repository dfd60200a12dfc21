"""Messages moved to queues of other brokers, many in one transaction.

    references that wait ─▶ a copy of each names its queue there, and is for its peer's
    store-and-forward queue ─▶ all originals acknowledged ─▶ one commit

Nothing else at their address is asked, diverts least of all: the messages came by it before. What
is refused leaves all of them where they are; message_mover.py then moves what can be moved, one by
one. A large message is its alone.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.model.address import split_fqqn
from broker.routing.bindings import routing_context
from broker.routing.enqueuer import committed
from broker.routing.queue_ids import ROUTE_TO
from broker.routing.remote_bindings import forget_routes
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.model.message import Message
    from broker.queues.reference import Reference
    from broker.routing.bindings import Binding
    from broker.routing.postoffice import PostOffice
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["JointMoves"]


class JointMoves:
    """See the module's text.

    Args:
        postoffice: where copies go.
        transactions: where those begin that move something.
        storage: where records go.
    """

    def __init__(
        self, postoffice: PostOffice, transactions: XaTransactions, storage: StorageManager
    ) -> None:
        self._postoffice = postoffice
        self._transactions = transactions
        self._context = storage.new_context()

    def redistribute(self, moves: Sequence[tuple[Reference, Binding]]) -> None:
        """Move references, in order, each to a queue of another broker: all of them, or none.

        Args:
            moves: what waits in its queue and is not large, and the binding in use that gets it.

        Raises:
            BrokerError: the disk is full; nothing has happened.
            JournalError: one does not fit the storage, or that has failed; likewise.
        """
        tx = self._transactions.begin()
        try:
            for reference, target in moves:
                self._put(self._postoffice.copy_of(reference.message), target, tx)
        except (BrokerError, JournalError):
            tx.rollback(self._context)
            raise
        for reference, _ in moves:
            reference.queue.take(reference)
            tx.acknowledge(reference)
        tx.commit(self._context, committed)

    def _put(self, copy: Message, target: Binding, tx: Transaction) -> None:
        postoffice = self._postoffice
        if copy.has_own_properties:
            copy.remove(ROUTE_TO)
            forget_routes(copy)
        routing = routing_context(postoffice, self._context, tx, 0)
        target.route(copy, routing)
        postoffice.enqueuer.put(copy, routing.queues, self._context, tx)
        address = postoffice.addresses.by_name.get(split_fqqn(copy.address or "")[0])
        if address is not None:
            address.routed_count += 1
