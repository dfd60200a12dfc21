"""What a producer may send when memory, pages or the disk are full.

    limit reached       a message comes                  credits are asked for
    ------------------- -------------------------------- ------------------------------
    disk                by disk-full-policy              held back (BLOCK), or refused
    pages               by page-full-policy              granted
    memory: PAGE        goes to a page (paging/)         granted
    memory: BLOCK       taken: it was within credits;    held back until queues have room
                        of AMQP: is_rejecting()
    memory: FAIL        refused, code 210                refused
    memory: DROP        dropped                          granted

The management address has no limits.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker.errors import broker_error
from broker.model.address import split_fqqn
from broker.model.counted_text import counted
from broker.queues.memory import AddressMemory
from broker.rare_lines import RareLines
from broker.settings.policies import AddressFullPolicy, DiskFullPolicy, PageFullPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.model.message import Message
    from broker.ports import Settings
    from broker.queues.counters import Counters
    from broker.queues.memory import GlobalMemory

__all__ = ["FlowControl"]

NO_THRESHOLD: Final = -1  # Of max-size-bytes-reject-threshold.


class _Address(Protocol):
    """Of an address what limits are about."""

    @property
    def memory(self) -> AddressMemory:
        """What its messages take."""


class _Pages(Protocol):
    """Of the pages of an address what limits are about."""

    @property
    def is_paging(self) -> bool:
        """Whether what is sent to the address goes to pages."""

    @property
    def is_page_full(self) -> bool:
        """Whether it may have no more pages, or messages in them."""


class FlowControl:
    """See the module's text.

    Args:
        settings: of addresses.
        addresses: all there are, by name.
        memory: of all of them together.
        pages: of addresses that have any, by name.
        counters: for metrics.
        clock_s: seconds that never jump.
        management_address: that has no limits; None without management.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        addresses: Mapping[str, _Address],
        memory: GlobalMemory,
        pages: Mapping[str, _Pages],
        counters: Counters,
        clock_s: Callable[[], float],
        management_address: str | None = None,
    ) -> None:
        self._settings = settings
        self._addresses = addresses
        self._memory = memory
        self._pages = pages
        self._counters = counters
        self._management_address = management_address
        self._lines = RareLines(clock_s)

    def admits(self, address: str, message: Message) -> bool:
        """Whether an address takes one more message; false where it drops it silently.

        Raises:
            BrokerError: it is refused.
        """
        found = self._addresses.get(address)
        if found is None:
            return True
        memory = found.memory
        if memory.broker.is_disk_full:
            disk_policy = self._settings.match(address).disk_full_policy
            if disk_policy is DiskFullPolicy.FAIL:
                self._tell_refused(address, "the disk")
                raise broker_error("address_is_full", f'Address "{address}" is full: the disk is')
            if disk_policy is DiskFullPolicy.DROP:
                return self._drop(address, "the disk")
        store = self._pages.get(address)
        if store is not None and store.is_paging:
            if store.is_page_full:
                return self._without_page(address, message)
            return True
        if memory.is_full:
            policy = self._settings.match(address).address_full_policy
            if policy is AddressFullPolicy.DROP:
                return self._drop(address, "its memory")
            if policy is AddressFullPolicy.FAIL:
                raise self._full(address, "its memory", message)
        return True

    def _without_page(self, address: str, message: Message) -> bool:
        if self._settings.match(address).page_full_policy is PageFullPolicy.FAIL:
            raise self._full(address, "what it may have in pages", message)
        return self._drop(address, "what it may have in pages")

    def _tell_refused(self, address: str, what: str) -> None:
        self._lines.warn(
            address, "messages sent to address %s are refused: %s is full", address, what
        )

    def _full(self, address: str, what: str, message: Message) -> Exception:
        self._tell_refused(address, what)
        return broker_error(
            "address_is_full",
            f'Address "{address}" is full. Message encode size = {message.encoded_size}B',
        )

    def _drop(self, address: str, what: str) -> bool:
        self._counters.dropped += 1
        self._lines.warn(
            address,
            "AMQ222039: Messages sent to address '%s' are being dropped: %s is full",
            address,
            what,
        )
        return False

    def is_rejecting(self, name: str) -> bool:
        """Whether an address that blocks holds so much that senders of AMQP are refused.

        Their credit counts messages, so a blocked address still gets as many as they have credit
        for: max-size-bytes-reject-threshold bounds what that may take.

        Args:
            name: of the address, or of a queue of it.
        """
        address = split_fqqn(name)[0]
        found = self._addresses.get(address)
        if found is None:
            return False
        settings = self._settings.match(address)
        threshold = settings.max_size_bytes_reject_threshold
        return (
            threshold != NO_THRESHOLD
            and settings.address_full_policy is AddressFullPolicy.BLOCK
            and found.memory.size > threshold
        )

    def is_open(self, address: str) -> bool:
        """Whether request_credits() grants at once: false may mean that it has to be asked."""
        found = self._addresses.get(address)
        return found is not None and _is_open(found.memory)

    def request_credits(self, name: str, grant: Callable[[bool], object]) -> None:
        """Call `grant(is_failing)` once a producer may send to an address; often at once.

        Args:
            name: of the address, which need not be there yet.
            grant: with True where it fails instead: the address is full, and says so.
        """
        address = split_fqqn(name)[0]
        if address == self._management_address:
            # Requests take no memory, and a full broker is one that needs its operator.
            grant(False)
            return
        found = self._addresses.get(address)
        if found is not None:
            memory = found.memory
        else:
            memory = AddressMemory(address, self._settings, self._memory)
        if _is_open(memory):
            grant(False)
        elif memory.is_failing:
            self._tell_refused(address, "the disk" if memory.broker.is_disk_full else "its memory")
            grant(True)
        elif memory.is_blocking:
            self._lines.warn(
                address,
                "AMQ222183: Blocking message production on address '%s': %s",
                address,
                self._why_blocked(memory),
            )
            memory.when_there_is_room(lambda: grant(False))
        else:
            grant(False)

    @staticmethod
    def _why_blocked(memory: AddressMemory) -> str:
        if memory.is_blocked:
            return "an operator has blocked it"
        if memory.broker.is_disk_full:
            return "the disk is full"
        return f"its memory is full, with {counted(memory.count, 'message')} of {memory.size} bytes"


def _is_open(memory: AddressMemory) -> bool:
    return not (memory.broker.is_disk_full or memory.is_full or memory.is_blocked)
