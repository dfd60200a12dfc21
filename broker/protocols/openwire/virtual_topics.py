"""Consumers of virtual topics: queues of Classic that are queues of an address here.

    virtualTopicConsumerWildcards=Consumer.*.>;2
    queue://Consumer.A.VirtualTopic.Orders      VirtualTopic.Orders::Consumer.A.VirtualTopic.Orders

The number says how many words stand before the address. With `;selectorAware=true` behind it a
queue that is made for a consumer has its selector as filter: it gets nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from broker.model.address import Matcher, join_fqqn
from broker.model.routing_type import RoutingType
from broker.protocols.openwire.commands import ActiveMQQueue
from broker.protocols.openwire.destinations import Target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.protocols.openwire.commands import ActiveMQDestination

__all__ = ["VirtualQueue", "VirtualTopics"]


_SELECTOR_AWARE: Final = "selectorAware=true"


class _Filter(NamedTuple):
    pattern: str
    word_count: int
    is_selector_aware: bool


class VirtualQueue(NamedTuple):
    """What a consumer's destination means.

    Attributes:
        target: queue of the address.
        is_selector_aware: the consumer's selector is the filter of a queue that is made for it.
    """

    target: Target
    is_selector_aware: bool


class VirtualTopics:
    """See the module's text.

    Args:
        texts: of the parameter.
    """

    __slots__ = (
        "_filters",
        "_matches",
    )

    def __init__(self, texts: Iterable[str]) -> None:
        self._filters = [_filter(unquote(text)) for text in texts]
        self._matches = Matcher().matches

    def queue_of(self, destination: ActiveMQDestination) -> VirtualQueue | None:
        """Give what a consumer's destination means; None where it is not one of these."""
        name = destination.physical_name or ""
        if not isinstance(destination, ActiveMQQueue):
            return None
        for one in self._filters:
            words = name.split(".")
            if len(words) > one.word_count and self._matches(one.pattern, name):
                address = ".".join(words[one.word_count :])
                target = Target(join_fqqn(address, name), address, name, RoutingType.MULTICAST)
                return VirtualQueue(target, one.is_selector_aware)
        return None


def _filter(text: str) -> _Filter:
    pattern, _, rest = text.partition(";")
    count, _, option = rest.partition(";")
    return _Filter(pattern.replace(">", "#"), int(count), option == _SELECTOR_AWARE)
