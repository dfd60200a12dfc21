"""Message groups and exclusive queues with one owner for all brokers of a cluster.

    routing      binding_for()   the owner's queue gets the message, here or in another broker
    delivery     may_deliver()   a queue delivers only what it has
    what waits   GroupMoves      goes to the owner, in order

Without a grouping-handler brokers agree among themselves (group_agreement.py): who chooses an owner
tells the others, and a broker that joins is told all owners. With one, the LOCAL handler decides
(grouping_handler.py); exclusive queues go by the agreement all the same.

An owner whose broker stops in good order, or whose queue is deleted, is followed by another one at
once. If its broker is not reached, what comes waits for it, for connection-ttl. If it has no
consumer and another one has, that one follows after redistribution-delay (handover.py).

A broker that starts delivers nothing of groups before its peers have told what they know, for
SETTLES_S at most.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.cluster.group_agreement import GroupAgreement, binding_of, is_shared, node_of
from broker.cluster.group_moves import Elsewhere, GroupMoves
from broker.cluster.group_owners import EXCLUSIVE, GroupKey, bucket_of, preferred
from broker.cluster.handover import Handover
from broker.cluster.settling import SETTLES_S, Settling
from broker.cluster.told import GroupEvent, ToldGroup
from broker.model.message import GROUP_ID
from broker.routing.bindings import LocalQueueBinding
from broker.routing.remote_bindings import RemoteQueueBinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker.cluster.grouping_handler import GroupingHandler
    from broker.cluster.redistribution import Mover
    from broker.model.message import Message
    from broker.notifications import Notifications
    from broker.queues.contents import QueueContents
    from broker.queues.counters import Counters
    from broker.queues.queue import Queue
    from broker.routing.addresses import Addresses
    from broker.routing.bindings import Binding

__all__ = ["ClusterGroups"]

log = logging.getLogger("broker.cluster")


class ClusterGroups:
    """See the module's text.

    Implements `broker.routing.grouping.Grouping`, `broker.queues.contents.GroupAdmission` and
    `broker.notifications.GroupTeller`.

    Args:
        node_id: of this broker.
        addresses: of the broker.
        notifications: who tells.
        mover: moves messages.
        counters: for metrics.
        handler: decides about groups; None where brokers agree.
        own_addresses: prefixes of addresses that no other broker has.
        settles_s: as SETTLES_S.

    Attributes:
        handler: as given.
        owners: of buckets, as far as this broker knows.
        settling: whether the peers have told what they know.
        is_started: it looks after queues.
    """

    def __init__(
        self,
        *,
        node_id: str,
        addresses: Addresses,
        notifications: Notifications,
        mover: Mover,
        counters: Counters,
        handler: GroupingHandler | None,
        own_addresses: tuple[str, ...],
        settles_s: float = SETTLES_S,
    ) -> None:
        self._node_id = node_id
        self._addresses = addresses
        self.handler = handler
        self._own_addresses = own_addresses
        self.is_started = False
        self.settling = Settling(settles_s, self._peers_changed)
        self._agreement = GroupAgreement(
            node_id=node_id,
            addresses=addresses,
            notifications=notifications,
            settling=self.settling,
            on_changed=self._changed,
        )
        self.owners = self._agreement.owners
        self._moves = GroupMoves(self._elsewhere, mover, counters)
        # Bindings that share the routing name of a queue, by its name, and the version of all.
        self._sharing: dict[str, list[Binding]] = {}
        self._version = -1
        self._handover = Handover(self._successors, self._hand_over)
        self._is_stopped = False
        # Queues whose groups others take over, since this broker stops.
        self._left: frozenset[str] = frozenset()
        if handler is not None:
            handler.on_decided = self._decided
            handler.on_free = self._freed

    def start(self) -> None:
        """Look after the queues that there are, and those to come."""
        self.is_started = True
        for queue in list(self._addresses.queues.values()):
            self.queue_added(queue)

    def leave(self) -> None:
        """The broker stops: others choose owners for what it has, so it delivers no groups now.

        Clients stay connected until the cluster is left. Call this before peers are forgotten: a
        queue that is in no other broker delivers as before.
        """
        queues = self._admitted_queues()
        self._left = frozenset(one.name for one in queues if is_shared(self._bindings(one)))

    def stop(self) -> None:
        """Decide and move nothing any more. Idempotent."""
        self._is_stopped = True
        self.settling.stop()
        self._moves.stop()
        self._handover.stop()
        if self.handler is not None:
            self.handler.stop()

    def _peers_changed(self) -> None:
        for queue in self._admitted_queues():
            self._reconsider(queue)

    def _admitted_queues(self) -> list[Queue]:
        return [one for one in self._addresses.queues.values() if one.admission is self]

    def _queues_by_name(self, routing_name: str) -> list[Queue]:
        return [one for one in self._admitted_queues() if one.binding.routing_name == routing_name]

    # --- which message has an owner -----------------------------------------------------------

    @property
    def pins_alone(self) -> bool:
        """Whether a group has a recorded owner even where there is but one queue."""
        return self.handler is not None

    def _key(self, routing_name: str, is_exclusive: bool, message: Message) -> GroupKey | None:
        """Give what the agreement has an owner for; None for none."""
        if is_exclusive:
            return GroupKey(routing_name, EXCLUSIVE)
        group = message.get(GROUP_ID)
        if group is None or self.handler is not None:
            return None
        return GroupKey(routing_name, bucket_of(str(group)))

    def _group(self, routing_name: str, message: Message) -> str | None:
        """Give what the handler has an owner for; None for none."""
        group = message.get(GROUP_ID)
        return None if group is None else f"{group!s}.{routing_name}"

    # --- routing ------------------------------------------------------------------------------

    def binding_for(
        self,
        bindings: Sequence[Binding],
        next_for: Callable[[Message], Binding | None],
        message: Message,
    ) -> Binding | None:
        """Give the binding that gets a message, as `Grouping.binding_for()`."""
        routing_name = bindings[0].routing_name or ""
        is_exclusive = any(one.is_exclusive_queue for one in bindings)
        key = self._key(routing_name, is_exclusive, message)
        local = _local(bindings)
        if key is not None:
            if not is_shared(bindings):
                return next_for(message)
            # Until it is known who has it, it waits here.
            found = self._agreement.binding_for(key, bindings, message) or local
            if found is None or not found.accepts(message):
                return next_for(message)
        else:
            found = self._by_handler(routing_name, bindings, next_for, message)
        if found is None or found.distance == 0 or local is None:
            return found
        # What waits here for the same owner goes first.
        return local if self._moves.is_moving(local.queue) else found

    def owner_elsewhere(self, queue: QueueContents, message: Message) -> str | None:
        """Give the node that has the group of a message, as `Grouping.owner_elsewhere()`."""
        routing_name = queue.binding.routing_name or ""
        key = self._key(routing_name, queue.binding.exclusive, message)
        group, handler = self._group(routing_name, message), self.handler
        owner = None
        if key is not None:
            known = self.owners.known.get(key)
            owner = None if known is None else known.cluster_name
        elif group is not None and handler is not None:
            owner = handler.known_owner(group)
        node_id = self._node_id if owner is None else node_of(owner)
        return None if node_id == self._node_id else node_id

    def _by_handler(
        self,
        routing_name: str,
        bindings: Sequence[Binding],
        next_for: Callable[[Message], Binding | None],
        message: Message,
    ) -> Binding | None:
        handler = self.handler
        group = self._group(routing_name, message)
        if handler is None or group is None:
            return next_for(message)
        local = _local(bindings)
        # Once more where the queue that had it is gone.
        for _ in range(2):
            owner = handler.owner(group)
            if owner is None:
                candidate = next_for(message)
                if candidate is None:
                    return None
                owner = handler.propose(group, candidate.cluster_name(self._node_id))
            if owner is None:
                # It waits here for the answer: where no queue is here, it cannot.
                return local or candidate
            found = binding_of(owner, bindings, self._node_id)
            if found is not None:
                return found
            if not self.settling.is_settled and local is not None:
                return local
            handler.force_remove(group, owner)
        return next_for(message)

    # --- delivery -----------------------------------------------------------------------------

    def placed(self, queue: QueueContents, message: Message) -> None:
        """A message waits in a queue: it has its group, unless another one is known to have it."""
        routing_name = queue.binding.routing_name or ""
        key = self._key(routing_name, queue.binding.exclusive, message)
        if key is None:
            if self.handler is None or message.get(GROUP_ID) is None:
                return
        elif key not in self.owners.known:
            self._agreement.choose(key, queue.name + self._node_id)
            return
        known = self._addresses.queues.get(queue.name)
        if known is not None and self._elsewhere(known, message) is not None:
            self._moves.look(known)

    def may_deliver(self, queue: QueueContents, message: Message) -> bool:
        """Whether the queue has the message's group, or the message is in none."""
        routing_name = queue.binding.routing_name or ""
        key = self._key(routing_name, queue.binding.exclusive, message)
        if key is None:
            group = self._group(routing_name, message)
            handler = self.handler
            if handler is None or group is None:
                return True
            if queue.name in self._left:
                return False
            owner = handler.owner(group)
            if owner is None:
                return not handler.is_asked(group)
            if owner == queue.name + self._node_id:
                return True
            found = binding_of(owner, self._bindings(queue), self._node_id)
            return self.settling.is_settled and found is None
        if not self.settling.is_settled or queue.name in self._left:
            return False
        bindings = self._bindings(queue)
        if not is_shared(bindings):
            return True
        if key not in self.owners.known:
            self._agreement.choose(key, queue.name + self._node_id)
            return True
        found = self._agreement.binding_for(key, bindings, message)
        if found is None or self._is_here(found, queue):
            return found is not None
        known = self._addresses.queues.get(queue.name)
        if known is not None:
            self._moves.look(known)
        return False

    def _is_here(self, binding: Binding, queue: QueueContents) -> bool:
        return binding.distance == 0 and binding.unique_name == queue.name

    def _bindings(self, queue: QueueContents) -> list[Binding]:
        """Give what shares the routing name of a queue, here and in other brokers."""
        addresses = self._addresses
        if self._version != addresses.version:
            self._version = addresses.version
            self._sharing.clear()
        found = self._sharing.get(queue.name)
        if found is None:
            binding = queue.binding
            address = addresses.by_name.get(binding.address)
            here = [] if address is None else address.bindings
            local = [one for one in here if isinstance(one, LocalQueueBinding)]
            some = [*local, *addresses.remote.at(binding.address)]
            found = [one for one in some if one.routing_name == binding.routing_name]
            self._sharing[queue.name] = found
        return found

    def _elsewhere(self, queue: Queue, message: Message) -> Elsewhere | None:
        """Give where a waiting message belongs, if not here."""
        routing_name = queue.binding.routing_name or ""
        key = self._key(routing_name, queue.binding.exclusive, message)
        own = queue.name + self._node_id
        if key is not None:
            known = self.owners.known.get(key)
            if known is None or known.cluster_name == own:
                return None
            bindings = self._bindings(queue)
            found: Binding | None = None
            if is_shared(bindings):
                found = self._agreement.binding_for(key, bindings, message)
            if found is None:
                is_awaited = self._agreement.is_awaited(known.cluster_name)
                return Elsewhere(key, None) if is_awaited else None
            return None if self._is_here(found, queue) else Elsewhere(key, found)
        group = self._group(routing_name, message)
        handler = self.handler
        owner = None if handler is None or group is None else handler.owner(group)
        if owner is None or owner == own:
            return None
        found = binding_of(owner, self._bindings(queue), self._node_id)
        if found is None and self.settling.is_settled:
            return None
        return Elsewhere(group, found)

    # --- owners change ------------------------------------------------------------------------

    def _changed(self, key: GroupKey) -> None:
        """Look again at the queues that may have messages of a key."""
        for queue in self._queues_by_name(key.routing_name):
            self._reconsider(queue)

    def _reconsider(self, queue: Queue) -> None:
        if queue.is_deleted or self._is_stopped:
            return
        pages = queue.pages
        may_have_some = queue.has_groups or (pages is not None and pages.unread_count)
        if queue.undecided_count or (may_have_some and queue.message_count):
            self._moves.look_again(queue)
        self.consumers_changed(queue)
        queue.look_again()
        queue.deliver_later()

    def _queues_of(self, group: str) -> list[Queue]:
        """Give the queues that a handler's group may be of."""
        queues = self._admitted_queues()
        return [one for one in queues if group.endswith(f".{one.binding.routing_name}")]

    def _decided(self, group: str) -> None:
        for queue in self._queues_of(group):
            self._reconsider(queue)

    def _freed(self, group: str) -> None:
        for queue in self._queues_of(group):
            queue.reset_groups(group.removesuffix(f".{queue.binding.routing_name}"))

    # --- what peers tell ----------------------------------------------------------------------

    def told(self, told: ToldGroup) -> None:
        """A peer tells of a group.

        Raises:
            BrokerError: the disk is full; nothing is decided.
        """
        handler = self.handler
        if told.event is GroupEvent.GROUP_OWNER:
            key = GroupKey(told.group, told.bucket)
            self._agreement.told(key, told.owner)
        elif handler is None:
            log.warning(
                "a peer has a grouping-handler, this broker has none: group %s is not pinned here",
                told.group,
            )
        elif told.event is GroupEvent.PROPOSAL:
            handler.proposed(told.group, told.value, told.distance + 1)
        elif told.event is GroupEvent.UNPROPOSAL:
            handler.unproposed(told.group, told.value, told.distance + 1)
        else:
            handler.answered(told.group, told.alternative or told.value)

    def tell_all(self) -> None:
        """Tell all owners, to who asks for all that this broker knows."""
        self._agreement.tell_all()

    def told_all(self) -> None:
        """It hears what happens from now on."""
        if self.handler is not None:
            self.handler.resend_pending()

    # --- queues and consumers -----------------------------------------------------------------

    def queue_added(self, queue: Queue) -> None:
        """A queue is here, or has changed."""
        binding = queue.binding
        is_own = binding.internal or binding.address.startswith(self._own_addresses)
        is_alone = binding.non_destructive or queue.is_temporary
        if not self.is_started or is_own or is_alone or queue.admission is self:
            return
        queue.admission = self
        cursor = queue.waiting.cursor()
        try:
            while (reference := cursor.advance()) is not None:
                self.placed(queue, reference.message)
        finally:
            cursor.close()

    def queue_removed(self, name: str) -> None:
        """A queue was deleted, here or in another broker, whose name is with its node id then."""
        self._handover.cancel(name)
        if self.handler is not None:
            self.handler.binding_removed(name + self._node_id)
            if self.settling.is_in_use:
                # Else it is not gone: this broker leaves.
                self.handler.binding_removed(name)
        if name in self.owners.routing_names and not any(
            one.binding.routing_name == name for one in self._addresses.queues.values()
        ):
            self.owners.forget(name)

    def consumers_changed(self, queue: Queue) -> None:
        """A consumer of a queue here came or went, or one elsewhere."""
        if queue.admission is not self or self._is_stopped:
            return
        if queue.has_groups and not queue.consumers.count and queue.message_count:
            # What a consumer gives back may belong to another queue since.
            self._moves.look(queue)
        self._handover.consider(queue)

    def consumers_there_changed(self, binding: RemoteQueueBinding) -> None:
        """Consumers of a queue of another broker came or went."""
        address = self._addresses.by_name.get(binding.address)
        if address is None:
            return
        # Not all queues: with many of them, and many consumers elsewhere, that would take minutes.
        for queue in list(address.queues.values()):
            if queue.binding.routing_name == binding.routing_name:
                self.consumers_changed(queue)

    def _successors(self, queue: Queue) -> list[RemoteQueueBinding]:
        """Give the queues elsewhere that have consumers."""
        found = [
            one
            for one in self._bindings(queue)
            if isinstance(one, RemoteQueueBinding)
            and one.is_connected
            and one.mode.redistributes
            and one.mode.distributes
            and one.consumer_count
        ]
        return [one for one in found if one.pins_groups] or found

    def _hand_over(self, queue: Queue, successors: list[RemoteQueueBinding]) -> None:
        """Give away what a queue without consumers has."""
        names = [one.unique_name for one in successors]
        for key in self.owners.of(queue.name + self._node_id):
            self._agreement.choose(key, preferred(key, names))


def _local(bindings: Iterable[Binding]) -> LocalQueueBinding | None:
    for binding in bindings:
        if isinstance(binding, LocalQueueBinding):
            return binding
    return None
