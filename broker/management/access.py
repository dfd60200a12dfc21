"""What management sees of a broker; `broker.server.server.Broker` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.notifications import IN_PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from enum import Enum

    from broker.bridges.core.bridge import CoreBridge
    from broker.bridges.jms.control import JMSBridgeControl
    from broker.cluster.cluster_manager import ClusterManager
    from broker.config.cluster import BridgeConfig
    from broker.config.transport import TransportConfig
    from broker.environment import Ids
    from broker.management.message_counters import MessageCounters
    from broker.notifications import Notifications, Origin
    from broker.options import BrokerOptions
    from broker.paging.paging import Paging
    from broker.ports import Security, Settings
    from broker.protocols.peer import Handler
    from broker.queues.counters import Counters
    from broker.queues.filter import Filter
    from broker.recovery.replay import Replay
    from broker.routers.connection_routers import ConnectionRouters
    from broker.routing.administration import Administration
    from broker.routing.dead_letters import DeadLetters
    from broker.routing.postoffice import PostOffice
    from broker.routing.retroactive import Retroactive
    from broker.security.permission import Permission
    from broker.sessions.session import Session, SessionOptions
    from broker.settings.settings import AddressSettings
    from broker.storage.manager import StorageManager
    from broker.storage.open import Ownership
    from broker.transactions.xa import XaTransactions
    from broker.transport.acceptor import Acceptor

__all__ = ["ManagedBroker", "Web"]


class Web(Protocol):
    """A web server; `broker.management.web.WebServer` is one."""

    @property
    def is_serving(self) -> bool:
        """Whether it listens."""

    async def start(self) -> None:
        """Listen.

        Raises:
            BrokerError: the address is in use or not of this machine.
        """

    async def stop(self) -> None:
        """Listen no more. Idempotent."""


class StoredSettings(Protocol):
    """Address settings of operators; `broker.server.stored_settings` records them."""

    def add(self, match: str, settings: AddressSettings) -> None:
        """Let them hold from now on."""

    def remove(self, match: str) -> bool:
        """Let them hold no more; whether there were any."""


class StoredPermissions(Protocol):
    """Permissions of operators; `broker.server.stored_permissions` records them."""

    def add(self, match: str, roles: Mapping[Permission, str | None]) -> None:
        """Let them hold from now on."""

    def remove(self, match: str) -> bool:
        """Let them hold no more; whether there were any."""


class StoredConnectors(Protocol):
    """Connectors of operators; `broker.server.stored_connectors` records them."""

    @property
    def by_name(self) -> Mapping[str, TransportConfig]:
        """All there are."""

    def add(self, name: str, url: str) -> None:
        """Have one more."""

    def remove(self, name: str) -> bool:
        """Have one less; whether it was there."""


class Bridges(Protocol):
    """Core bridges of a broker; `broker.server.bridging` has them."""

    @property
    def by_name(self) -> Mapping[str, CoreBridge]:
        """All there are, whether they run or not."""

    def create(self, config: BridgeConfig) -> None:
        """Make a bridge, start and record it.

        Raises:
            BrokerError: there is one of the name; a connector or transformer is not there.
        """

    def destroy(self, name: str) -> bool:
        """Stop a bridge and forget it; whether it was there."""

    async def left(self, name: str) -> None:
        """Wait until what was destroyed has stopped."""


class Lifecycle(Protocol):
    """How far a broker has come; `broker.server.lifecycle` says so."""

    ha_since_ms: int
    """Since when, ms since 1970."""
    ha_transitions: int
    """How often it changed."""
    takeover_ms: int
    """Of the last one; -1 before."""
    outage_ms: int
    """Of the last one; -1 before, and where it is not known."""

    @property
    def ha_state(self) -> Enum:
        """What it is to the other one of its pair."""

    @property
    def state(self) -> Enum:
        """STOPPED, STARTING, STARTED or STOPPING."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether another broker may have its store: clients may not come for now."""

    @property
    def is_loaded(self) -> bool:
        """Whether its addresses and queues are there."""

    @property
    def is_started(self) -> bool:
        """Whether it runs; a backup that waits does as well."""

    @property
    def is_active(self) -> bool:
        """Whether clients may come."""

    @property
    def is_backup(self) -> bool:
        """Whether it is a backup that has not taken over."""

    @property
    def not_ready(self) -> str | None:
        """Why clients should not come now; None if they may."""


class Clients(Protocol):
    """Those of a broker; `broker.server.clients` has them."""

    connection_count_total: int
    """Since the broker was made."""
    session_count_total: int
    """Likewise."""
    routers: ConnectionRouters | None
    """Connection routers; None where there are none."""

    @property
    def sessions(self) -> Mapping[str, Session]:
        """Open ones, by name."""

    @property
    def connections(self) -> Mapping[str, Handler]:
        """Open ones, by id."""

    def new_session(
        self,
        name: str,
        user: str | None,
        options: SessionOptions,
        temporary: set[str],
        origin: Origin = IN_PROCESS,
    ) -> Session:
        """Make a session that is not listed; its caller closes it."""

    def authenticate(self, user: str | None, password: str | None, remote: str) -> str | None:
        """Give the name of who shows the right password; wrong ones are told of.

        Raises:
            BrokerError: the name and the password are refused.
        """


class Parts(Protocol):
    """What a broker is made of; `broker.server.composition.Parts` says more of each."""

    @property
    def storage(self) -> StorageManager:
        """Where records go."""

    @property
    def counters(self) -> Counters:
        """For metrics."""

    @property
    def postoffice(self) -> PostOffice:
        """Addresses, bindings, queues."""

    @property
    def dead_letters(self) -> DeadLetters:
        """Moves messages, also those that an operator kills or expires."""

    @property
    def replay(self) -> Replay:
        """Sends again what the history has."""

    @property
    def administration(self) -> Administration:
        """Makes queues and addresses on request."""

    @property
    def transactions(self) -> XaTransactions:
        """Of transaction managers."""

    @property
    def paging(self) -> Paging | None:
        """Addresses whose messages wait in pages; None where nothing is kept."""

    @property
    def retroactive(self) -> Retroactive | None:
        """What keeps messages for queues to come; None keeps none."""

    @property
    def security(self) -> Security:
        """Who may do what."""

    @property
    def notifications(self) -> Notifications:
        """Who tells of what happens."""

    @property
    def stored_settings(self) -> StoredSettings:
        """Address settings, the recorded ones over the configured ones."""

    @property
    def stored_permissions(self) -> StoredPermissions:
        """Permissions, the recorded ones over the configured ones."""

    @property
    def stored_connectors(self) -> StoredConnectors:
        """Connectors, the recorded ones over the configured ones."""


class Managing(Protocol):
    """How a broker is managed; `broker.server.composition.Managing`."""

    @property
    def message_counters(self) -> MessageCounters:
        """What queues had on earlier days."""


class ManagedBroker(Protocol):
    """See the module's text; all of it is read and called in the event loop's thread."""

    options: BrokerOptions
    clock_ms: Callable[[], int]
    ids: Ids
    parse_filter: Callable[[str], Filter | None]
    node_id: str
    started_ms: int
    cluster: ClusterManager

    @property
    def parts(self) -> Parts:
        """From when its store is loaded."""

    @property
    def managing(self) -> Managing:
        """From when its store is loaded."""

    @property
    def lifecycle(self) -> Lifecycle:
        """How far it has come."""

    @property
    def ownership(self) -> Ownership | None:
        """Of its stores; None without any, or where no other broker can want them."""

    async def scale_down(self, connector: str | None = None, *, is_forced: bool = False) -> str:
        """Move everything to another node, and stop, behind the answer; which node.

        Raises:
            BrokerError: there is none.
        """

    def give_place(self) -> None:
        """Stop, and let the other one of the pair take over."""

    @property
    def clients(self) -> Clients:
        """Its connections and sessions."""

    @property
    def settings(self) -> Settings:
        """Of addresses."""

    @property
    def bridges(self) -> Bridges:
        """To other brokers."""

    def reload_configuration(self) -> None:
        """Read the configuration again, and apply what needs no restart.

        Raises:
            BrokerError: there is none, or it is wrong: nothing has changed.
        """

    @property
    def jms_bridges(self) -> Mapping[str, JMSBridgeControl]:
        """JMS bridges that it runs, by name."""

    @property
    def web(self) -> Sequence[Web]:
        """That are configured, whether they listen or not."""

    @property
    def acceptors(self) -> Sequence[Acceptor]:
        """That are configured, whether they listen or not."""
