"""The broker, managed: `broker` (ActiveMQServerControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.management.broker_attributes import BrokerAttributes
from broker.management.broker_bridges import BrokerBridges
from broker.management.broker_counters import BrokerCounters
from broker.management.broker_diverts import BrokerDiverts
from broker.management.broker_export import BrokerExport
from broker.management.broker_network import BrokerNetwork
from broker.management.broker_pages import BrokerPages
from broker.management.broker_queries import BrokerQueries
from broker.management.broker_queues import BrokerQueues
from broker.management.broker_scale_down import BrokerScaleDown
from broker.management.broker_security import BrokerSecurity
from broker.management.broker_settings import BrokerSettings
from broker.management.broker_stranded import BrokerStranded
from broker.management.broker_traces import BrokerTraces
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, NAME, TEXT, operation
from broker.management.queue_texts import routing_type_of
from broker.management.replaying import replay_all, replay_between

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from broker.model.routing_type import RoutingType
    from broker.routing.address import Address

__all__ = ["BrokerControl"]


def _routing_types(text: str | None) -> list[RoutingType]:
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    found = [routing_type_of(name) for name in names]
    return [one for one in found if one is not None]


def _address_line(address: Address) -> str:
    types = ",".join(one.name for one in sorted(address.routing_types))
    created = str(address.is_auto_created).lower()
    return f"Address [name={address.name}, routingTypes={{{types}}}, autoCreated={created}]"


class BrokerControl(
    BrokerAttributes,
    BrokerQueues,
    BrokerDiverts,
    BrokerBridges,
    BrokerSettings,
    BrokerSecurity,
    BrokerNetwork,
    BrokerCounters,
    BrokerPages,
    BrokerExport,
    BrokerStranded,
    BrokerTraces,
    BrokerScaleDown,
    BrokerQueries,
):
    """All of it; what is not here is in the classes that it is made of, a group each."""

    @operation("reloadConfigurationFile")
    def reload_configuration_file(self) -> None:
        """Read broker.xml again, and apply what needs no restart."""
        self._broker.reload_configuration()

    # --- addresses ----------------------------------------------------------------------------

    @operation("createAddress", NAME, TEXT)
    def create_address(self, name: str, routing_types: str | None) -> str:
        """Make an address; it as a line."""
        return _address_line(self._addresses.create(name, _routing_types(routing_types)))

    @operation("updateAddress", NAME, TEXT)
    def update_address(self, name: str, routing_types: str | None) -> str:
        """Give an address other routing types; null leaves them."""
        if routing_types is None:
            return _address_line(self._addresses.get(name))
        return _address_line(self._addresses.update(name, _routing_types(routing_types)))

    @operation("deleteAddress", NAME)
    @operation("deleteAddress", NAME, BOOLEAN)
    def delete_address(self, name: str, force: bool = False) -> None:
        """Remove an address, and with `force` its queues, consumers and diverts before it."""
        self._addresses.delete(name, force=force)

    @operation("getAddressInfo", NAME)
    def address_info(self, name: str) -> str:
        """Give an address as a line."""
        return _address_line(self._addresses.get(name))

    # --- the history --------------------------------------------------------------------------

    @operation("replay", NAME, TEXT, TEXT)
    def replay(
        self, address: str, target: str | None, filter: str | None
    ) -> Generator[float | None, None, None]:
        """Send again what the history has of an address, to it or to another one."""
        return replay_all(self._broker.parts.replay, address, target, filter)

    @operation("replay", NAME, NAME, NAME, TEXT, TEXT)
    def replay_between(
        self, start: str, end: str, address: str, target: str | None, filter: str | None
    ) -> Generator[float | None, None, None]:
        """The same of files that were copied between two times, local yyyyMMddHHmmss."""
        return replay_between(self._broker.parts.replay, start, end, address, target, filter)

    # --- clients ------------------------------------------------------------------------------

    @operation("closeConnectionsForAddress", NAME)
    def close_connections_of(self, host: str) -> bool:
        """End the connections from a host, or a host and port; whether there were any.

        Artemis ends those whose address contains the text: of 10.0.0.10 too for 10.0.0.1.
        """
        wanted = host.strip().lstrip("/")
        if not wanted:
            raise ManagementError("an address of clients is needed")
        doomed = [
            one
            for one in self._broker.clients.connections.values()
            if wanted in (one.origin.remote, one.origin.remote.rpartition(":")[0])
        ]
        for connection in doomed:
            connection.fail()
        return bool(doomed)

    @operation("closeConnectionWithID", NAME)
    def close_connection(self, connection_id: str) -> bool:
        """End one connection; whether it was there."""
        found = self._broker.clients.connections.get(connection_id)
        if found is not None:
            found.fail()
        return found is not None

    @operation("closeConnectionsForUser", NAME)
    def close_connections_of_user(self, user: str) -> bool:
        """End the connections that a user has sessions on; whether there were any."""
        ids = {
            one.origin.connection_id
            for one in self._broker.clients.sessions.values()
            if one.user == user
        }
        return self._close_all(ids)

    def _close_all(self, ids: Iterable[str]) -> bool:
        return sum(self.close_connection(one) for one in ids) > 0

    @operation("closeConsumerConnectionsForAddress", NAME)
    def close_consumers_of(self, address: str) -> bool:
        """End the connections that consume from an address; whether there were any."""
        matches = self._matcher.matches
        ids = {
            session.origin.connection_id
            for session in self._broker.clients.sessions.values()
            if any(
                matches(address, one.queue.binding.address) for one in session.consumers.values()
            )
        }
        return self._close_all(ids)

    @operation("closeSessionWithID", NAME, NAME)
    @operation("closeSessionWithID", NAME, NAME, BOOLEAN)
    def close_session(self, connection_id: str, name: str, force: bool = False) -> bool:
        """Close one session of a connection, and tell its client; whether it was there.

        What it has not committed is rolled back, with `force` and without.
        """
        session = self._broker.clients.sessions.get(name)
        connection = self._broker.clients.connections.get(connection_id)
        if session is None or session.origin.connection_id != connection_id or connection is None:
            return False
        connection.close_session(session)
        return True

    @operation("closeConsumerWithID", NAME, NAME)
    def close_consumer(self, session_name: str, consumer_id: str) -> bool:
        """Close one consumer by its sequentialId, and tell its client; whether it was there."""
        session = self._broker.clients.sessions.get(session_name)
        if session is None:
            return False
        for consumer in list(session.consumers.values()):
            if str(consumer.number) == consumer_id:
                session.close_consumer(consumer.consumer_id)
                consumer.sink.disconnected(consumer)
                return True
        return False

    # --- transactions -------------------------------------------------------------------------

    @operation("commitPreparedTransaction", NAME)
    def commit_prepared(self, text: str) -> bool:
        """Decide in the manager's place; whether there was such a transaction."""
        return self._decide(text, is_commit=True)

    @operation("rollbackPreparedTransaction", NAME)
    def roll_back_prepared(self, text: str) -> bool:
        """Decide in the manager's place; whether there was such a transaction."""
        return self._decide(text, is_commit=False)

    def _decide(self, text: str, *, is_commit: bool) -> bool:
        xid = self.find_xid(text)
        if xid is None:
            return False
        return self._broker.parts.transactions.end_heuristically(
            xid, self._context, self._decided, is_commit=is_commit
        )

    def _decided(self, error: Exception | None) -> None:
        """The answer to the request waits for the same records."""
