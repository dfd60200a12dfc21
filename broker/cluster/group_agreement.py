"""Owners of message groups and exclusive queues: chosen here, told to peers, and told by them.

    binding_for()   the owner's queue, chosen now where there is none
    choose()        this broker decides, and tells the others
    told()          another one has decided: what holds is told on, what does not is answered

Which of two owners holds is in group_owners.py. Whether one may be chosen depends on what peers
have told so far (settling.py).

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.cluster.group_owners import GroupOwners, choose_owner
from broker.routing.remote_bindings import RemoteQueueBinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker.cluster.group_owners import GroupKey, Owner
    from broker.cluster.settling import Settling
    from broker.model.message import Message
    from broker.notifications import Notifications
    from broker.routing.addresses import Addresses
    from broker.routing.bindings import Binding

__all__ = ["GroupAgreement", "binding_of", "is_shared", "node_of"]

# Of a node id behind the name of a queue: a UUID as text.
_NODE_ID_SIZE: Final = 36


def node_of(cluster_name: str) -> str:
    """Give the node id in the name by which the cluster knows a queue."""
    return cluster_name[-_NODE_ID_SIZE:]


def binding_of(cluster_name: str, bindings: Iterable[Binding], node_id: str) -> Binding | None:
    """Give the binding of the queue that the cluster knows by a name, as seen by a node."""
    for binding in bindings:
        if binding.cluster_name(node_id) == cluster_name:
            return binding
    return None


def is_shared(bindings: Iterable[Binding]) -> bool:
    """Whether messages are distributed among queues of several brokers."""
    return any(isinstance(one, RemoteQueueBinding) and one.mode.distributes for one in bindings)


class GroupAgreement:
    """See the module's text.

    Args:
        node_id: of this broker.
        addresses: of the broker.
        notifications: who tells.
        settling: whether the peers have told what they know.
        on_changed: called with a key whose messages here may belong to another queue since.

    Attributes:
        owners: of buckets, as far as this broker knows.
    """

    def __init__(
        self,
        *,
        node_id: str,
        addresses: Addresses,
        notifications: Notifications,
        settling: Settling,
        on_changed: Callable[[GroupKey], object],
    ) -> None:
        self._node_id = node_id
        self._addresses = addresses
        self._notifications = notifications
        self._settling = settling
        self._on_changed = on_changed
        self.owners = GroupOwners()

    def binding_for(
        self, key: GroupKey, bindings: Sequence[Binding], message: Message
    ) -> Binding | None:
        """Give the owner's binding, chosen now where there is none; None where it is not known."""
        owner = self.owners.known.get(key)
        found = None if owner is None else binding_of(owner.cluster_name, bindings, self._node_id)
        if found is not None and _is_kept(found, bindings, message):
            return found
        if not self._may_choose(owner, found):
            return None
        found = choose_owner(key, bindings, message, self._node_id)
        if found is not None:
            self.choose(key, found.cluster_name(self._node_id))
        return found

    def _may_choose(self, owner: Owner | None, found: Binding | None) -> bool:
        """Whether an owner may be chosen: there is none, or it is not merely unknown so far."""
        if not self._settling.may_choose:
            return False
        if owner is None or found is not None:
            return True
        return not self._settling.is_awaited(node_of(owner.cluster_name))

    def is_awaited(self, cluster_name: str) -> bool:
        """Whether an owner whose queue is not known may be told of yet."""
        settling = self._settling
        return not settling.is_settled or settling.is_awaited(node_of(cluster_name))

    def choose(self, key: GroupKey, cluster_name: str) -> None:
        """Decide that a queue is the next owner, and tell it."""
        owner = self.owners.next(key, cluster_name, 1 if self._settling.is_settled else 0)
        before = self.owners.known.get(key)
        if not self.owners.learn(key, owner):
            return
        self._tell(key, owner)
        if before is not None or not owner.cluster_name.endswith(self._node_id):
            # Else what is here belongs here, as before.
            self._on_changed(key)

    def told(self, key: GroupKey, owner: Owner) -> None:
        """A peer tells of an owner."""
        if self.owners.learn(key, owner):
            # Those behind this broker hear of it, too.
            self._tell(key, owner)
            self._on_changed(key)
        elif (known := self.owners.known[key]) != owner:
            self._tell(key, known)

    def tell_all(self) -> None:
        """Tell all owners, to who asks for all that this broker knows."""
        for key, owner in self.owners.known.items():
            self._tell(key, owner)

    def _tell(self, key: GroupKey, owner: Owner) -> None:
        name = key.routing_name
        queue = self._addresses.queues.get(name)
        known = queue.binding.address if queue is not None else None
        if known is None:
            found = self._addresses.remote.by_name.get(owner.cluster_name)
            known = name if found is None else found.address
        self._notifications.group_owner(known, name, key.bucket, *owner)


def _is_kept(owner: Binding, bindings: Iterable[Binding], message: Message) -> bool:
    """Whether an owner goes on having its groups.

    One in a broker that does not take part gives nothing away by itself: it is followed by one with
    a consumer as soon as it has none.
    """
    if not isinstance(owner, RemoteQueueBinding):
        return True
    if owner.is_given_up:
        return False
    if owner.pins_groups or owner.consumer_count or not owner.is_connected:
        return True
    return not any(one.is_reached and one.has_consumer_for(message) for one in bindings)
