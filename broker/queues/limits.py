"""What a producer may send when memory, pages or the disk are full.

    limit reached       a message comes                  credits are asked for
    ------------------- -------------------------------- ------------------------------
    disk                by disk-full-policy              held back (BLOCK), or refused
    pages               by page-full-policy              granted
    memory: PAGE        goes to a page (paging/)         granted
    memory: BLOCK       taken: it was within credits     held back until there is room
    memory: FAIL        refused, code 210                refused
    memory: DROP        dropped                          granted

The management address has no limits.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.errors import broker_error
from broker.model.address import split_fqqn
from broker.queues.memory import AddressMemory
from broker.settings.policies import AddressFullPolicy, DiskFullPolicy, PageFullPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.core import Core
    from broker.model.message import Message

__all__ = ["Limits"]

log = logging.getLogger("broker")


class Limits:
    """See the module's text.

    Args:
        core: of the broker.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        # Addresses of which it was said that their messages are dropped.
        self._told: set[str] = set()

    def admits(self, address: str, message: Message) -> bool:
        """Whether an address takes one more message; false where it drops it silently.

        Raises:
            BrokerError: it is refused.
        """
        found = self._core.postoffice.addresses.by_name.get(address)
        if found is None:
            return True
        memory = found.memory
        if memory.broker.is_disk_full:
            disk_policy = self._core.settings.match(address).disk_full_policy
            if disk_policy is DiskFullPolicy.FAIL:
                raise broker_error("address_is_full", f'Address "{address}" is full: the disk is')
            if disk_policy is DiskFullPolicy.DROP:
                return self._drop(address, "the disk")
        paging = self._core.paging
        store = None if paging is None else paging.stores.get(address)
        if store is not None and store.is_paging:
            if store.is_page_full:
                return self._without_page(address, message)
            return True
        if memory.is_full:
            policy = self._core.settings.match(address).address_full_policy
            if policy is AddressFullPolicy.DROP:
                return self._drop(address, "its memory")
            if policy is AddressFullPolicy.FAIL:
                raise self._full(address, message)
        return True

    def _without_page(self, address: str, message: Message) -> bool:
        if self._core.settings.match(address).page_full_policy is PageFullPolicy.FAIL:
            raise self._full(address, message)
        return self._drop(address, "what it may have in pages")

    @staticmethod
    def _full(address: str, message: Message) -> Exception:
        return broker_error(
            "address_is_full",
            f'Address "{address}" is full. Message encode size = {message.encoded_size}B',
        )

    def _drop(self, address: str, what: str) -> bool:
        self._core.counters.dropped += 1
        if address not in self._told:
            self._told.add(address)
            log.warning(
                "AMQ222039: Messages sent to address '%s' are being dropped: %s is full",
                address,
                what,
            )
        return False

    def request_credits(self, name: str, grant: Callable[[bool], object]) -> None:
        """Call `grant(is_failing)` once a producer may send to an address; often at once.

        Args:
            name: of the address, which need not be there yet.
            grant: with True where it fails instead: the address is full, and says so.
        """
        address = split_fqqn(name)[0]
        management = self._core.management
        if management is not None and address == management.address:
            # Requests take no memory, and a full broker is one that needs its operator.
            grant(False)
            return
        found = self._core.postoffice.addresses.by_name.get(address)
        if found is not None:
            memory = found.memory
        else:
            broker = self._core.postoffice.addresses.memory
            memory = AddressMemory(address, self._core.settings, broker)
        if not (memory.broker.is_disk_full or memory.is_full or memory.is_blocked):
            grant(False)
        elif memory.is_failing:
            grant(True)
        elif memory.is_blocking:
            memory.when_there_is_room(lambda: grant(False))
        else:
            grant(False)
