"""What a session tells of names: queues and addresses, whether they are there or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.queues.queue import Queue
    from broker.routing.address import Address
    from broker.settings.settings import AddressSettings

__all__ = ["AddressQuery", "QueueQuery"]


class QueueQuery(NamedTuple):
    """What is known of a queue name; `queue` is None where there is none."""

    name: str
    address: str
    queue: Queue | None
    settings: AddressSettings
    is_management: bool = False


class AddressQuery(NamedTuple):
    """What is known of an address name; `address` is None where there is none."""

    address: Address | None
    queues: tuple[str, ...]
    settings: AddressSettings
    is_management: bool = False
