"""Acceptors, connectors and the web server of a broker, listed and changed by operators."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import LONG, MAP, NAME, TEXT, operation
from broker.management.json_texts import json_text
from broker.management.transports import (
    ACCEPTOR_CLASS,
    CONNECTOR_CLASS,
    acceptor_parameters,
    connector_parameters,
    transport_row,
)
from broker.management.waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from broker.management.access import Web
    from broker.management.invocation import Getters

__all__ = ["BrokerNetwork"]

# Of restartEmbeddedWebServer, as in Artemis.
_RESTART_TIMEOUT_MS = 5000


class BrokerNetwork(BrokerPart):
    """See the module's text."""

    getters: ClassVar[Getters] = {
        "getAcceptors": lambda self: [list(one) for one in self._acceptors()],
        "getAcceptorsAsJSON": lambda self: json_text(
            [transport_row(*one) for one in self._acceptors()]
        ),
        "getConnectors": lambda self: [list(one) for one in self._connectors()],
        "getConnectorsAsJSON": lambda self: json_text(
            [transport_row(*one) for one in self._connectors()]
        ),
        "isEmbeddedWebServerStarted": lambda self: any(one.is_serving for one in self._broker.web),
        # Brokers of a JVM load classes there, and connect to each other: none of it here.
        "getConnectorServices": lambda self: [],
        "getPendingMirrorAcks": lambda self: 0,
    }

    def _acceptors(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        known = {one.name: one for one in self._broker.options.configuration.cluster.acceptors}
        for one in self._broker.acceptors:
            name = one.options.name
            yield name, ACCEPTOR_CLASS, acceptor_parameters(one, known.get(name))

    def _connectors(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        for name, one in self._broker.parts.stored_connectors.by_name.items():
            yield name, CONNECTOR_CLASS, connector_parameters(one)

    @operation("sendQueueInfoToQueue", NAME, TEXT)
    def send_queue_info_to_queue(self, queue: str, address: str) -> None:
        """Tell a queue of all bindings and consumers: a peer of a cluster asks for it.

        The filter of the queue selects, as in Artemis; `address` counts no more than there.
        """
        del address
        self._broker.parts.notifications.tell_all(self._addresses.queue(queue))

    @operation("addConnector", NAME, NAME)
    def add_connector(self, name: str, url: str) -> None:
        """Add a connector, and record it."""
        if not name:
            raise ManagementError("a connector needs a name")
        try:
            self._broker.parts.stored_connectors.add(name, url)
        except ValueError as error:
            raise ManagementError(str(error)) from None

    @operation("removeConnector", NAME)
    def remove_connector(self, name: str) -> None:
        """Take a connector away; a configured one is there again after a restart."""
        self._broker.parts.stored_connectors.remove(name)

    # --- the web server -----------------------------------------------------------------------

    def _check_web(self) -> None:
        if not self._broker.web:
            raise ManagementError("AMQ229241: Embedded web server not found")

    @operation("startEmbeddedWebServer")
    def start_web(self) -> Generator[float, None, None]:
        """Serve metrics and health again."""
        self._check_web()
        for one in self._broker.web:
            if not one.is_serving:
                yield from awaited(one.start())

    @operation("stopEmbeddedWebServer")
    def stop_web(self) -> Generator[float, None, None]:
        """Serve metrics and health no more, until it is started or the broker is."""
        self._check_web()
        for one in self._broker.web:
            yield from awaited(one.stop())

    @operation("restartEmbeddedWebServer")
    @operation("restartEmbeddedWebServer", LONG)
    def restart_web(self, timeout_ms: int = _RESTART_TIMEOUT_MS) -> Generator[float, None, None]:
        """Stop and start it, in so many milliseconds at most."""
        self._check_web()
        try:
            for one in self._broker.web:
                yield from awaited(_restarted(one), timeout_ms / 1000)
        except TimeoutError:
            raise ManagementError(
                f"AMQ229242: Embedded web server not restarted in {timeout_ms} milliseconds"
            ) from None

    # --- the other one of a pair --------------------------------------------------------------

    @operation("forceFailover")
    def force_failover(self) -> Generator[float, None, None]:
        """Stop, and let the backup take over, whatever failover-on-shutdown says.

        Refused where no other broker waits for the store; Artemis stops then, and nothing serves.
        """
        ownership = self._broker.ownership
        if ownership is None or not (
            yield from awaited(asyncio.to_thread(ownership.is_other_waiting))
        ):
            raise ManagementError(
                "no backup waits to take over, so nothing would serve: start one, or stop this one"
            )
        self._broker.give_place()

    # --- what other brokers would be ----------------------------------------------------------

    @operation("listBrokerConnections")
    def broker_connections(self) -> str:
        """Give the broker connections, of which this version has none."""
        return json_text([])

    @operation("startBrokerConnection", NAME)
    @operation("stopBrokerConnection", NAME)
    def change_broker_connection(self, name: str) -> None:
        """Start or stop one of them."""
        raise ManagementError(f"broker connection {name} not found")

    @operation("createConnectorService", NAME, NAME, MAP)
    def create_connector_service(self, name: str, factory: str, parameters: object) -> None:
        """Load a class, which this broker cannot."""
        raise ManagementError(
            f"connector service {name}: {factory} is a class of a JVM: this broker has none"
        )

    @operation("destroyConnectorService", NAME)
    def destroy_connector_service(self, name: str) -> None:
        """Remove a connector service."""
        raise ManagementError(f"Connector service {name} does not exist")


async def _restarted(server: Web) -> None:
    await server.stop()
    await server.start()
