"""Which queue of a cluster has which message groups: an agreement of brokers, without I/O.

    group ─▶ bucket_of() ─▶ GroupKey ─▶ known owner, or choose_owner() ─▶ Owner, told to all others

The groups of one routing name are in 1,024 buckets, and a bucket has one owner: a queue, by the
name by which the cluster knows it. So what brokers keep and tell of groups is bounded. All messages
of an exclusive queue are in one more bucket.

Who routes the first message of a bucket chooses the owner: brokers that know the same consumers
choose the same one. Then all are told, and it stays. If two owners are told, the higher epoch
holds, and of one epoch the name that sorts first. So all agree in the end, whatever is told in
whichever order. An owner that is gone, or gives its groups away, is followed by one of the next
epoch.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.model.message import Message
    from broker.routing.bindings import Binding

__all__ = [
    "BUCKETS",
    "EXCLUSIVE",
    "GroupKey",
    "GroupOwners",
    "Owner",
    "bucket_of",
    "choose_owner",
    "preferred",
]

BUCKETS: Final = 1024
EXCLUSIVE: Final = -1
"""The bucket of all messages of an exclusive queue."""


class GroupKey(NamedTuple):
    """What has one owner.

    Attributes:
        routing_name: of the queues that may be it.
        bucket: of groups, or EXCLUSIVE.
    """

    routing_name: str
    bucket: int


class Owner(NamedTuple):
    """Who has a bucket.

    Attributes:
        epoch: how often it was given to another one; 0 is a claim of a broker that has just
            started, and knows no other one yet.
        cluster_name: of the queue: its name and the node id of its broker.
    """

    epoch: int
    cluster_name: str

    def outranks(self, other: Owner) -> bool:
        """Whether this one holds, if both are told."""
        if self.epoch != other.epoch:
            return self.epoch > other.epoch
        return self.cluster_name < other.cluster_name


def bucket_of(group: str) -> int:
    """Give the bucket of a group."""
    return crc32(group.encode("utf-8", "surrogatepass")) % BUCKETS


def preferred(key: GroupKey, names: Iterable[str]) -> str:
    """Give the name that has the highest hash with a key: if another one goes, it stays.

    >>> preferred(GroupKey("q", 1), ["a", "b", "c"]) == preferred(GroupKey("q", 1), ["c", "b", "a"])
    True
    """

    def weight(name: str) -> bytes:
        text = f"{key.routing_name}\0{key.bucket}\0{name}"
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()

    return max(names, key=weight)


def choose_owner(
    key: GroupKey, bindings: Sequence[Binding], message: Message, node_id: str
) -> Binding | None:
    """Give the binding that is to have a bucket: the first of these that there is.

    1. queues with a consumer for the message, of brokers that take part in the agreement
    2. queues with a consumer for it, of others: Artemis's brokers
    3. a queue here
    4. any that is reached, then any

    Args:
        key: of the bucket.
        bindings: with its routing name, here and in other brokers.
        message: the first one of the bucket.
        node_id: of this broker.
    """
    takes = [one for one in bindings if one.accepts(message)]
    reached = [one for one in takes if one.is_reached]
    wanting = [one for one in reached if one.has_consumer_for(message)]
    ranks = (
        [one for one in wanting if one.pins_groups],
        wanting,
        [one for one in reached if one.distance == 0],
        reached,
        takes,
    )
    for rank in ranks:
        if rank:
            by_name = {one.cluster_name(node_id): one for one in rank}
            return by_name[preferred(key, by_name)]
    return None


class GroupOwners:
    """What one broker knows of owners.

    Attributes:
        known: by key.
        routing_names: of all keys.
    """

    def __init__(self) -> None:
        self.known: dict[GroupKey, Owner] = {}
        self.routing_names: set[str] = set()

    def learn(self, key: GroupKey, owner: Owner) -> bool:
        """Take an owner that was told or chosen; whether it holds, and was not known."""
        known = self.known.get(key)
        if known is not None and not owner.outranks(known):
            return False
        self.known[key] = owner
        self.routing_names.add(key.routing_name)
        return True

    def next(self, key: GroupKey, cluster_name: str, first_epoch: int = 1) -> Owner:
        """Give the owner that follows the known one.

        Args:
            key: of the bucket.
            cluster_name: of who is to have it.
            first_epoch: of one that follows no other.
        """
        known = self.known.get(key)
        return Owner(first_epoch if known is None else known.epoch + 1, cluster_name)

    def of(self, cluster_name: str) -> list[GroupKey]:
        """Give the keys that a queue has."""
        return [key for key, owner in self.known.items() if owner.cluster_name == cluster_name]

    def forget(self, routing_name: str) -> None:
        """No queue has this routing name any more."""
        self.routing_names.discard(routing_name)
        for key in [one for one in self.known if one.routing_name == routing_name]:
            del self.known[key]
