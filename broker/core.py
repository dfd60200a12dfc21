"""What the parts of a broker share: its clock, its loop, its storage, its addresses.

Made once, by the server, and handed to everything that is made later. Nothing here decides
anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from broker.notifications import NullNotifier
from broker.security.counts import SecurityCounts
from broker.sessions.resource_limits import ResourceLimits
from broker.sessions.send_marks import SendMarks
from broker.settings.repository import HierarchicalRepository

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.notifications import Notifications
    from broker.paging.paging import Paging
    from broker.queues.consumer import Filter
    from broker.queues.limits import Limits
    from broker.routing.dead_letters import DeadLetters
    from broker.routing.postoffice import PostOffice
    from broker.routing.retroactive import Retroactive
    from broker.security.permission import RoleTable
    from broker.security.users import Users
    from broker.settings.settings import AddressSettings
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.transactions.xa import XaTransactions

__all__ = ["AllowAll", "Core", "Counters", "Security", "Settings", "Timer", "Timers"]


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """It will not."""


class Timers(Protocol):
    """Of an event loop what the broker's objects need; tests pass one with a clock of their own."""

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> Timer:
        """Call it in the next turn."""

    def call_later(
        self, delay_s: float, callback: Callable[..., object], *arguments: object
    ) -> Timer:
        """Call it in so many seconds."""


class Settings(Protocol):
    """Where the effective settings of an address are looked up: `SettingsRepository`."""

    def match(self, address: str) -> AddressSettings:
        """Give them; the same object until one changes."""

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call `listener` after every change from now on."""

    def off_change(self, listener: Callable[[], object]) -> None:
        """Call it no more. Idempotent."""


class Security(Protocol):
    """Who may do what; `broker.security`."""

    is_enabled: bool
    """Whether anything is refused at all."""
    counts: SecurityCounts
    """How often it was asked, and with what result."""
    permissions: HierarchicalRepository[RoleTable]
    """Roles by match; changes are reported to listeners."""

    @property
    def users(self) -> Users | None:
        """Whose files operators may change; None where there are none."""

    def cached(self) -> tuple[int, int]:
        """How many logins and how many permissions are kept."""

    def authenticate(self, user: str | None, password: str | None) -> str | None:
        """Give the name of a user that shows the right password; None for an anonymous one.

        Raises:
            BrokerError: no user has that name and password.
        """

    def check(
        self, user: str | None, permission: str, address: str, queue: str | None
    ) -> float | None:
        """See whether a user may do something at an address, or a queue of it.

        Args:
            user: from authenticate().
            permission: as in `security-setting`: send, consume, createAddress and so on.
            address: without prefixes.
            queue: None for the address as a whole.

        Returns:
            Until when the answer holds unless on_change() tells of a change before, in the seconds
            of time.monotonic(); None: this time only.

        Raises:
            BrokerError: the user may not.
        """

    def roles(self, address: str) -> list[dict[str, object]]:
        """Give the roles named for an address, each with what it may do there."""

    def forget(self) -> None:
        """Ask for users and permissions anew."""

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call `listener` whenever answers may be others from now on."""


class Management(Protocol):
    """What answers messages that are sent to the management address."""

    address: str

    def handle(self, user: str | None, message: Message) -> None:
        """Do what a user's message asks for, and send an answer where it wants one.

        What takes long goes on in later turns; the answer comes at its end.

        Raises:
            BrokerError: the user may not send to where the answer is to go; nothing was done.
        """


class AllowAll:
    """Everybody may do everything (security-enabled false)."""

    is_enabled = False
    users = None

    def __init__(self) -> None:
        self.counts = SecurityCounts()
        # Kept for a start with security.
        self.permissions: HierarchicalRepository[RoleTable] = HierarchicalRepository()

    def cached(self) -> tuple[int, int]:
        """Nothing is kept."""
        return 0, 0

    def authenticate(self, user: str | None, password: str | None) -> str | None:
        """Accept the name; the password is not checked."""
        return user

    def check(
        self, user: str | None, permission: str, address: str, queue: str | None
    ) -> float | None:
        """Nothing is refused."""
        return math.inf

    def roles(self, address: str) -> list[dict[str, object]]:
        """No roles are needed."""
        return []

    def forget(self) -> None:
        """Nothing is kept."""

    def on_change(self, listener: Callable[[], object]) -> None:
        """Nothing changes."""


@dataclass(slots=True)
class Counters:
    """What happened since the start, for metrics."""

    duplicates: int = 0
    unrouted: int = 0
    expired: int = 0
    killed: int = 0
    dropped: int = 0


@dataclass(slots=True)
class Core:
    """See the module's text.

    Attributes:
        storage: where records go.
        loop: turns and timers.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.
        parse_filter: a selector's text to a Filter, None for a blank one; raises BrokerError 103.
        postoffice: addresses, bindings, queues.
        dead_letters: moves messages that are rejected, redelivered too often, or expired.
        transactions: of transaction managers.
        security: who may do what.
        management: None without a management address.
        limits: what producers may send when something is full.
        paging: addresses whose messages wait in pages; None where nothing is kept.
        notifications: who tells of what happens.
        large: bodies of large messages; None without storage for them.
        history: of the message journal; None where none is kept.
        counters: for metrics.
        marks: what is written into messages that clients send.
        resource_limits: what one user may have.
        retroactive: messages for queues to come; None keeps none.
        persists_deliveries: a delivery count is recorded before the message is written
            (persist-delivery-count-before-delivery).
        id_cache_size: default of the duplicate id caches (id-cache-size).
        persist_id_cache: whether they survive a restart (persist-id-cache).
    """

    storage: StorageManager
    loop: Timers
    clock_ms: Callable[[], int]
    settings: Settings
    parse_filter: Callable[[str], Filter | None]
    postoffice: PostOffice = field(init=False)
    dead_letters: DeadLetters = field(init=False)
    transactions: XaTransactions = field(init=False)
    limits: Limits = field(init=False)
    security: Security = field(default_factory=AllowAll)
    management: Management | None = None
    paging: Paging | None = None
    notifications: Notifications = field(default_factory=NullNotifier)
    large: LargeBodies | None = None
    history: MessageHistory | None = None
    counters: Counters = field(default_factory=Counters)
    marks: SendMarks = field(default_factory=SendMarks)
    resource_limits: ResourceLimits = field(default_factory=lambda: ResourceLimits({}))
    retroactive: Retroactive | None = None
    persists_deliveries: bool = False
    id_cache_size: int = 20000
    persist_id_cache: bool = True
