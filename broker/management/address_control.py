"""An address, managed: `address.NAME` (AddressControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.contents import remove_all
from broker.management.invocation import BOOLEAN, INT, MAP, NAME, TEXT, Control, operation
from broker.management.json_texts import json_text
from broker.management.replaying import replay_all, replay_between
from broker.management.roles import role_arrays
from broker.management.sending import send_message
from broker.routing.bindings import BindingType
from broker.routing.retroactive import is_retroactive

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.management.access import ManagedBroker
    from broker.management.invocation import Getters
    from broker.paging.store import PagingStore
    from broker.routing.address import Address
    from broker.settings.settings import AddressSettings

__all__ = ["AddressControl", "limit_percent"]


def limit_percent(broker: ManagedBroker, address: Address) -> int:
    """How much of its limit, or else of the broker's, an address takes; 0 without one."""
    settings = broker.settings.match(address.name)
    if settings.max_size_bytes > 0:
        return address.memory.size * 100 // settings.max_size_bytes
    most = address.memory.broker.size_max
    return address.memory.size * 100 // most if most > 0 else 0


class AddressControl(Control):
    """See the module's text.

    Args:
        broker: that has it.
        address: to manage.
    """

    getters: ClassVar[Getters] = {
        "getId": lambda self: self.address.address_id,
        "getAddress": lambda self: self.address.name,
        "getRoutingTypes": lambda self: self.routing_types,
        "getRoutingTypesAsJSON": lambda self: json_text(self.routing_types),
        "getAddressSize": lambda self: self.address.memory.size,
        "getAddressLimitPercent": lambda self: limit_percent(self._broker, self.address),
        "getNumberOfMessages": lambda self: self.message_count,
        "getMessageCount": lambda self: self.message_count,
        "getQueueNames": lambda self: self.names_of(BindingType.LOCAL_QUEUE),
        "getAllQueueNames": lambda self: self.names_of(
            BindingType.LOCAL_QUEUE, BindingType.REMOTE_QUEUE
        ),
        "getRemoteQueueNames": lambda self: self.names_of(BindingType.REMOTE_QUEUE),
        "getQueueCount": lambda self: len(self.address.queues),
        "getBindingNames": lambda self: self.names_of(*BindingType),
        "getRoutedMessageCount": lambda self: self.address.routed_count,
        "getUnRoutedMessageCount": lambda self: self.address.unrouted_count,
        "isPaused": lambda self: self.address.is_paused,
        "isRetroactiveResource": lambda self: is_retroactive(
            self._broker.parts.retroactive, self.address.name
        ),
        "isAutoCreated": lambda self: self.address.is_auto_created,
        "isInternal": lambda self: self.address.is_internal,
        "isTemporary": lambda self: self.address.is_temporary,
        "isPaging": lambda self: self.pages is not None and self.pages.is_paging,
        "getNumberOfPages": lambda self: 0 if self.pages is None else len(self.pages.pages),
        "getNumberOfBytesPerPage": lambda self: self._settings.page_size_bytes,
        "getMaxPageReadBytes": lambda self: self._settings.max_read_page_bytes,
        "getMaxPageReadMessages": lambda self: self._settings.max_read_page_messages,
        "getPrefetchPageBytes": lambda self: self._settings.prefetch_page_bytes,
        "getPrefetchPageMessages": lambda self: self._settings.prefetch_page_messages,
        "getRoles": lambda self: role_arrays(self._broker.parts.security, self.address.name),
        "getRolesAsJSON": lambda self: json_text(
            self._broker.parts.security.roles(self.address.name)
        ),
        "getCurrentDuplicateIdCacheSize": lambda self: self.duplicate_id_count,
    }

    def __init__(self, broker: ManagedBroker, address: Address) -> None:
        self._broker = broker
        self.address = address

    @property
    def _settings(self) -> AddressSettings:
        return self._broker.settings.match(self.address.name)

    @property
    def pages(self) -> PagingStore | None:
        """Its pages; None where it never had any."""
        paging = self._broker.parts.paging
        return None if paging is None else paging.stores.get(self.address.name)

    @property
    def routing_types(self) -> list[str]:
        """Names of its routing types, in the order of their numbers."""
        return [one.name for one in sorted(self.address.routing_types)]

    def names_of(self, *types: BindingType) -> list[str]:
        """Names of what is bound to it, one type after the other."""
        bindings = self.address.bindings
        return [one.unique_name for kind in types for one in bindings if one.binding_type is kind]

    @property
    def message_count(self) -> int:
        """How many all its queues hold."""
        return sum(queue.message_count for queue in self.address.queues.values())

    @property
    def duplicate_id_count(self) -> int:
        """How many ids it has seen and remembers."""
        cache = self._broker.parts.postoffice.duplicates.find(self.address.name)
        return 0 if cache is None else len(cache)

    @operation("clearDuplicateIdCache")
    def clear_duplicate_ids(self) -> bool:
        """Forget all ids that it has seen."""
        cache = self._broker.parts.postoffice.duplicates.find(self.address.name)
        if cache is not None:
            cache.clear()
        return True

    @operation("pause")
    @operation("pause", BOOLEAN)
    def pause(self, is_kept: bool = False) -> None:
        """Let its queues deliver nothing; `is_kept` after a restart too."""
        addresses = self._broker.parts.postoffice.addresses
        addresses.pause(self.address, is_paused=True, is_kept=bool(is_kept))

    @operation("resume")
    def resume(self) -> None:
        """Let its queues deliver again."""
        self._broker.parts.postoffice.addresses.pause(self.address, is_paused=False)

    @operation("block")
    def block(self) -> bool:
        """Let producers wait for their credits; whether they did not before."""
        was_blocked, self.address.memory.is_blocked = self.address.memory.is_blocked, True
        return not was_blocked

    @operation("unblock")
    def unblock(self) -> None:
        """Unblock producers, unless a limit is reached."""
        self.address.memory.is_blocked = False
        self.address.memory.wake()

    @operation("schedulePageCleanup")
    def clean_pages(self) -> None:
        """Delete pages that no queue has anything left in, and leave paging if there is room."""
        if self.pages is not None:
            self.pages.delete_what_is_done()
            self.pages.end_if_done()

    @operation("purge")
    def purge(self) -> Generator[float | None, None, int]:
        """Remove what waits in its queues; how many."""
        count = 0
        for queue in list(self.address.queues.values()):
            count += yield from remove_all(queue)
        return count

    @operation("replay", TEXT, TEXT)
    def replay(self, target: str | None, filter: str | None) -> Generator[float | None, None, None]:
        """Send again what the history has of this address, to it or to another one."""
        return replay_all(self._broker.parts.replay, self.address.name, target, filter)

    @operation("replay", NAME, NAME, TEXT, TEXT)
    def replay_between(
        self, start: str, end: str, target: str | None, filter: str | None
    ) -> Generator[float | None, None, None]:
        """The same of files that were copied between two times, local yyyyMMddHHmmss."""
        return replay_between(
            self._broker.parts.replay, start, end, self.address.name, target, filter
        )

    @operation("sendMessage", MAP, INT, TEXT, BOOLEAN, TEXT, TEXT)
    @operation("sendMessage", MAP, INT, TEXT, BOOLEAN, TEXT, TEXT, BOOLEAN)
    def send(
        self,
        headers: dict[str, object] | None,
        type: int,
        body: str | None,
        durable: bool,
        user: str | None,
        password: str | None,
        has_user_id: bool = False,
    ) -> str:
        """Send a message to this address, as a user; its id."""
        return send_message(
            self._broker,
            self.address.name,
            headers or {},
            type,
            body,
            durable=bool(durable),
            user=user,
            password=password,
            has_user_id=bool(has_user_id),
        )
