"""What routing asks where the messages of a group, or of an exclusive queue, have one owner.

The owner is one of several queues with one routing name, of this broker or of another one of its
cluster: `broker.cluster.groups` knows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.model.message import Message
    from broker.queues.contents import QueueContents
    from broker.routing.bindings import Binding

__all__ = ["Grouping"]


class Grouping(Protocol):
    """See the module's text."""

    @property
    def pins_alone(self) -> bool:
        """Whether a group has a recorded owner even where there is but one queue."""

    def binding_for(
        self,
        bindings: Sequence[Binding],
        next_for: Callable[[Message], Binding | None],
        message: Message,
    ) -> Binding | None:
        """Give the binding that gets a message; None for none.

        Args:
            bindings: with one routing name, at least one.
            next_for: gives the one whose turn it is.
            message: of a group, or for a queue that may be exclusive.
        """

    def owner_elsewhere(self, queue: QueueContents, message: Message) -> str | None:
        """Give the node that has the group of a message; None: this one, or it is not known.

        Nothing is chosen, and nothing changes.

        Args:
            queue: of this broker, in which the message is.
            message: of a group, or of a queue that may be exclusive.
        """
