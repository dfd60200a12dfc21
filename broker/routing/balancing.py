"""Which of several bindings with one routing name gets a message, where some are in other brokers.

The rules are those of Artemis (BindingsImpl.getNextBinding), by the mode of the cluster connection:

    STRICT                     each connected binding in turn, whether it has consumers or not
    ON_DEMAND                  each connected binding in turn that has a consumer for the message;
                               where none has, a queue of this broker, else the first connected
                               one that takes it, else the first
    OFF, OFF_WITH_REDISTRIBUTION
                               bindings of this broker alone, but for multicast subscriptions

Functions without I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.load_balancing import MessageLoadBalancing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.model.message import Message
    from broker.routing.bindings import Binding
    from broker.routing.remote_bindings import RemoteQueueBinding

__all__ = ["choose", "redistribution_target"]

_STRICT: Final = MessageLoadBalancing.STRICT


def choose(
    bindings: Sequence[Binding], first: int, message: Message, mode: MessageLoadBalancing
) -> int | None:
    """Give the position of the binding that gets a message; None for none.

    Args:
        bindings: with one routing name.
        first: where to begin; behind the one that got the last message.
        message: that came.
        mode: of the cluster connection.
    """
    count = len(bindings)
    fallback: int | None = None
    for step in range(count):
        position = (first + step) % count
        binding = bindings[position]
        if not binding.accepts(message):
            continue
        if binding.is_reached and (mode is _STRICT or binding.has_consumer_for(message)):
            return position
        if fallback is None or _rank(binding) > _rank(bindings[fallback]):
            fallback = position
    return fallback


def _rank(binding: Binding) -> int:
    """Say how near one without a consumer is: here 2, reached 1, else 0."""
    return binding.is_reached + (binding.distance == 0)


def redistribution_target(
    bindings: Sequence[RemoteQueueBinding], first: int, message: Message
) -> int | None:
    """Give the position of the binding that a message goes to which no consumer here wants.

    Args:
        bindings: of other brokers, with the routing name of the queue that the message waits in.
        first: where to begin; behind the one that got the last message.
        message: that waits.

    Returns:
        None where no consumer of a connected broker wants it: it stays.
    """
    count = len(bindings)
    for step in range(count):
        position = (first + step) % count
        binding = bindings[position]
        if (
            binding.is_connected
            and binding.mode.redistributes
            and binding.takes(message)
            and binding.wants(message)
        ):
            return position
    return None
