"""What management sees of a broker; `broker.server.server.Broker` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.core import Core
    from broker.management.message_counters import MessageCounters
    from broker.options import BrokerOptions
    from broker.protocols.peer import Handler
    from broker.routing.administration import Administration
    from broker.server.stored_connectors import StoredConnectors
    from broker.server.stored_permissions import StoredPermissions
    from broker.server.stored_settings import StoredSettings
    from broker.sessions.session import Session
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


class ManagedBroker(Protocol):
    """See the module's text; all of it is read and called in the event loop's thread."""

    core: Core
    options: BrokerOptions
    node_id: str
    is_started: bool
    is_stopping: bool
    failure: Exception | None
    started_ms: int
    administration: Administration
    stored_settings: StoredSettings
    stored_permissions: StoredPermissions
    stored_connectors: StoredConnectors
    message_counters: MessageCounters
    connection_count_total: int
    session_count_total: int

    def authenticate(self, user: str | None, password: str | None, remote: str) -> str | None:
        """Give the name of who shows the right password; wrong ones are told of.

        Raises:
            BrokerError: the name and the password are refused.
        """

    def reload_configuration(self) -> None:
        """Read the configuration again, and apply what needs no restart.

        Raises:
            BrokerError: there is none, or it is wrong: nothing has changed.
        """

    @property
    def sessions(self) -> Mapping[str, Session]:
        """Open ones, by name."""

    @property
    def connections(self) -> Mapping[str, Handler]:
        """Open ones, by id."""

    @property
    def web(self) -> Sequence[Web]:
        """That are configured, whether they listen or not."""

    @property
    def acceptors(self) -> Sequence[Acceptor]:
        """That are configured, whether they listen or not."""
