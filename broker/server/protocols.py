"""The protocols that a broker speaks, and the connections that speak one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.protocols.registry import (
    connected_elsewhere,
    installed_protocols,
    read_parameters,
    scan_sessions,
    unavailable,
    web_socket_use,
)
from broker.server.held import held_or_connected
from broker.transport.acceptor import AcceptedProtocol
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from broker.protocols.peer import Handler, Peer, Receiver
    from broker.protocols.registry import ProtocolManager, ProtocolManagerFactory
    from broker.server.clients import Clients
    from broker.transport.acceptor import AcceptorOptions

__all__ = ["Protocols"]


class Protocols:
    """See the module's text.

    What they are named and take is known at once; what speaks them comes with start(), for it is a
    fifth of the memory of a backup that waits.

    Args:
        handlers: of open connections, as they come and go.

    Raises:
        BrokerError: a protocol that is installed cannot be loaded.
    """

    def __init__(self, handlers: AbstractSet[Handler]) -> None:
        self._factories: Final = installed_protocols()
        self._managers: Final[dict[str, ProtocolManager]] = {}
        self._handlers: Final = handlers
        self._clients: Clients | None = None

    def start(self, sessions: Clients) -> None:
        """Make what speaks them, before a client connects. Takes a fifth of a second, at first.

        Args:
            sessions: the broker's.
        """
        self._clients = sessions
        for name, factory in self._factories.items():
            if unavailable(factory) is None:
                self._managers[name] = factory.manager(sessions)

    def for_acceptor(self, options: AcceptorOptions) -> dict[str, AcceptedProtocol]:
        """Give all protocols, by name, with the parameters of an acceptor.

        Without those that cannot be spoken, if the acceptor does not name them.

        Raises:
            BrokerError: none of its protocols has one of the parameters, or a value is not valid.
                Or it names a protocol that cannot be spoken.
        """
        asked = {
            name: factory
            for name, factory in self._factories.items()
            if name in (options.protocols or self._factories)
        }
        known = {name for factory in asked.values() for name in factory.parameters}
        for name in options.parameters:
            if name not in known:
                raise _wrong(options, f"no parameter {name}{nearest(name, known, '{}')}")
        made = {}
        for name, factory in self._factories.items():
            why = unavailable(factory)
            if why is not None:
                if name in options.protocols:
                    raise _wrong(options, why)
                continue
            try:
                values = read_parameters(factory, options.parameters if name in asked else {})
            except ValueError as error:
                raise _wrong(options, str(error)) from None
            made[name] = self._accepted(name, factory, values)
        return made

    def _accepted(
        self, name: str, factory: ProtocolManagerFactory, parameters: Mapping[str, object]
    ) -> AcceptedProtocol:
        return AcceptedProtocol(
            factory.detection_size,
            factory.preamble_size,
            factory.detect,
            lambda peer: self._connect(name, peer, parameters),
            web_socket_use(factory),
        )

    def _connect(self, name: str, peer: Peer, parameters: Mapping[str, object]) -> Receiver:
        connect = self._managers[name].connect
        if not peer.router:
            return connect(peer, parameters)
        clients = self._clients
        assert clients is not None, "start() came before"
        routers = clients.routers
        assert routers is not None, "an acceptor names one of them"
        return held_or_connected(
            peer,
            lambda held: connect(held, parameters),
            lambda release: routers.wait(peer.router, release),
        )

    def check(self) -> None:
        """From time to time: end what was silent for too long."""
        for handler in list(self._handlers):
            handler.check()
        for manager in self._managers.values():
            manager.check()

    def scan_sessions(self) -> None:
        """From time to time: end sessions without a connection that have expired."""
        for manager in self._managers.values():
            scan_sessions(manager)

    def connected_elsewhere(self, protocol: str, client_id: str, at_ms: int) -> None:
        """A client has come to another broker of the cluster, at that time by its clock."""
        for name, manager in self._managers.items():
            if protocol.startswith(name):
                connected_elsewhere(manager, client_id, at_ms)

    def disconnect_all(self) -> None:
        """The broker stops: tell every client, then close."""
        for handler in list(self._handlers):
            handler.disconnect()


def _wrong(options: AcceptorOptions, what: str) -> BrokerError:
    return BrokerError(ErrorCode.ILLEGAL_STATE, f"acceptor {options.name}: {what}")
