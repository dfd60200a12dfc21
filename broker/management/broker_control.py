"""The broker, managed: `broker` (ActiveMQServerControl)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.divert import Divert
from broker.errors import BrokerError, ErrorCode
from broker.management.broker_queries import BrokerQueries
from broker.management.errors import ManagementError
from broker.management.invocation import BOOLEAN, INTEGER, NAME, TEXT, operation
from broker.management.json_texts import json_text, read_object
from broker.management.queue_texts import (
    changes_of,
    queue_line,
    queue_request,
    queue_text,
    routing_type_of,
)
from broker.management.replaying import replay_all, replay_between
from broker.notifications import NotificationType
from broker.queue_defaults import QueueRequest
from broker.settings import AddressSettings
from broker.storage.binding_records import Divert as DivertRecord
from broker.storage.binding_records import RoutingType

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from broker.addresses import Address
    from broker.queue import Queue

__all__ = ["BrokerControl"]

_DIVERT_TYPES: Final = ("MULTICAST", "ANYCAST", "STRIP", "PASS")


def _routing_types(text: str | None) -> list[RoutingType]:
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    found = [routing_type_of(name) for name in names]
    return [one for one in found if one is not None]


def _address_line(address: Address) -> str:
    types = ",".join(one.name for one in sorted(address.routing_types))
    created = str(address.is_auto_created).lower()
    return f"Address [name={address.name}, routingTypes={{{types}}}, autoCreated={created}]"


class BrokerControl(BrokerQueries):
    """What changes a broker; what only looks is in broker_queries.py."""

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
        self._addresses.delete(name, force=bool(force))

    @operation("getAddressInfo", NAME)
    def address_info(self, name: str) -> str:
        """Give an address as a line."""
        return _address_line(self._addresses.get(name))

    # --- queues -------------------------------------------------------------------------------

    def _create(self, request: QueueRequest) -> Queue:
        if not request.name:
            raise ManagementError("a queue needs a name")
        if not request.address:
            request = replace(request, address=request.name)
        return self._broker.administration.create_queue(request)

    @operation("createQueue", NAME, NAME)
    @operation("createQueue", NAME, NAME, TEXT)
    def create_queue(self, address: str, name: str, routing_type: str | None = None) -> None:
        """Make a durable queue."""
        self._create(
            QueueRequest(address=address, name=name, routing_type=routing_type_of(routing_type))
        )

    @operation("createQueue", NAME, NAME, BOOLEAN)
    @operation("createQueue", NAME, NAME, BOOLEAN, TEXT)
    def create_queue_of_durability(
        self, address: str, name: str, durable: bool, routing_type: str | None = None
    ) -> None:
        """Make a queue, durable or not."""
        self._create(
            QueueRequest(
                address=address,
                name=name,
                is_durable=bool(durable),
                routing_type=routing_type_of(routing_type),
            )
        )

    @operation("createQueue", NAME, NAME, TEXT, BOOLEAN)
    @operation("createQueue", NAME, NAME, TEXT, BOOLEAN, TEXT)
    def create_filtered_queue(
        self,
        address: str,
        name: str,
        filter: str | None,
        durable: bool,
        routing_type: str | None = None,
    ) -> None:
        """Make a queue with a filter."""
        self._create(
            QueueRequest(
                address=address,
                name=name,
                filter=filter or None,
                is_durable=bool(durable),
                routing_type=routing_type_of(routing_type),
            )
        )

    @operation("createQueue", NAME, TEXT, NAME, TEXT, BOOLEAN, INTEGER, BOOLEAN, BOOLEAN)
    def create_bounded_queue(
        self,
        address: str,
        routing_type: str | None,
        name: str,
        filter: str | None,
        durable: bool,
        max_consumers: int | None,
        purge: bool | None,
        create_address: bool | None,
    ) -> str:
        """Make a queue; it as a line."""
        return queue_line(
            self._create(
                QueueRequest(
                    address=address,
                    name=name,
                    filter=filter or None,
                    is_durable=bool(durable),
                    routing_type=routing_type_of(routing_type),
                    max_consumers=max_consumers,
                    purge_on_no_consumers=purge,
                    auto_create_address=create_address,
                )
            )
        )

    @operation("createQueue", NAME)
    @operation("createQueue", NAME, BOOLEAN)
    def create_queue_of_json(self, text: str, ignores_existing: bool = False) -> str:
        """Make a queue as a JSON text says; its configuration as JSON."""
        request = queue_request(text)
        found = self._addresses.queues.get(request.name)
        if found is None or not ignores_existing:
            found = self._broker.administration.create_queue(request)
        return queue_text(found)

    @operation("deployQueue", NAME, NAME, TEXT)
    @operation("deployQueue", NAME, NAME, TEXT, BOOLEAN)
    def deploy_queue(
        self, address: str, name: str, filter: str | None, durable: bool = True
    ) -> None:
        """Make a queue unless it is there."""
        if name not in self._addresses.queues:
            self.create_filtered_queue(address, name, filter, durable)

    @operation("updateQueue", NAME)
    def update_queue_of_json(self, text: str) -> str:
        """Change a queue as a JSON text says; its configuration as JSON."""
        name, changes = changes_of(text)
        return queue_text(self._addresses.update_queue(name, **changes))

    @operation("updateQueue", NAME, TEXT, INTEGER, BOOLEAN)
    @operation("updateQueue", NAME, TEXT, INTEGER, BOOLEAN, BOOLEAN)
    def update_queue(
        self,
        name: str,
        routing_type: str | None,
        max_consumers: int | None,
        purge: bool | None,
        exclusive: bool | None = None,
    ) -> str:
        """Change attributes that are not null; the queue as a line."""
        changes = {
            "routing_type": routing_type_of(routing_type),
            "max_consumers": max_consumers,
            "purge_on_no_consumers": purge,
            "exclusive": exclusive,
        }
        given = {key: value for key, value in changes.items() if value is not None}
        return queue_line(self._addresses.update_queue(name, **given))

    @operation("destroyQueue", NAME)
    @operation("destroyQueue", NAME, BOOLEAN)
    @operation("destroyQueue", NAME, BOOLEAN, BOOLEAN)
    def destroy_queue(
        self, name: str, removes_consumers: bool = False, deletes_address: bool = False
    ) -> None:
        """Remove a queue; one with consumers only if they may be closed."""
        self._addresses.delete_queue(
            name, check_consumers=not removes_consumers, delete_address=bool(deletes_address)
        )

    # --- settings -----------------------------------------------------------------------------

    @operation("addAddressSettings", NAME, NAME)
    def add_address_settings(self, match: str, text: str) -> str:
        """Set what holds for a match; what was taken, as JSON."""
        try:
            settings = AddressSettings.from_json(read_object(text))
            self._broker.stored_settings.add(match, settings)
        except ValueError as error:
            raise ManagementError(str(error)) from None
        return json_text(settings.to_json())

    @operation("removeAddressSettings", NAME)
    def remove_address_settings(self, match: str) -> None:
        """Take a match away."""
        self._broker.stored_settings.remove(match)

    # --- diverts ------------------------------------------------------------------------------

    @operation("createDivert", NAME)
    def create_divert_of_json(self, text: str) -> None:
        """Make a divert as a JSON text says."""
        found = {key: value for key, value in read_object(text).items() if value is not None}
        if "transformer-configuration" in found:
            raise ManagementError("transformers are classes of a JVM: this broker has none")
        self._create_divert(
            name=str(found.get("name", "")),
            routing_name=str(found.get("routing-name", "")) or None,
            address=str(found.get("address", "")),
            forwarding_address=str(found.get("forwarding-address", "")),
            exclusive=str(found.get("exclusive", "false")).lower() == "true",
            filter=str(found.get("filter-string", "")) or None,
            routing_type=str(found.get("routing-type", "STRIP")),
        )

    @operation("createDivert", NAME, TEXT, NAME, NAME, BOOLEAN, TEXT, TEXT)
    @operation("createDivert", NAME, TEXT, NAME, NAME, BOOLEAN, TEXT, TEXT, TEXT)
    def create_divert(
        self,
        name: str,
        routing_name: str | None,
        address: str,
        forwarding_address: str,
        exclusive: bool,
        filter: str | None,
        transformer: str | None,
        routing_type: str | None = None,
    ) -> None:
        """Make a divert, and record it."""
        if transformer:
            raise ManagementError("transformers are classes of a JVM: this broker has none")
        self._create_divert(
            name=name,
            routing_name=routing_name,
            address=address,
            forwarding_address=forwarding_address,
            exclusive=bool(exclusive),
            filter=filter or None,
            routing_type=routing_type or "STRIP",
        )

    def _create_divert(
        self,
        *,
        name: str,
        routing_name: str | None,
        address: str,
        forwarding_address: str,
        exclusive: bool,
        filter: str | None,
        routing_type: str,
    ) -> None:
        if not (name and address and forwarding_address):
            raise ManagementError("a divert needs a name, an address and a forwarding address")
        if routing_type.upper() not in _DIVERT_TYPES:
            raise ManagementError(f"no routing type {routing_type}: {', '.join(_DIVERT_TYPES)}")
        if self.find_divert(name) is not None:
            raise ManagementError(f"divert {name} exists")
        source = self._broker.administration.ensure_address(address, [], is_auto_created=True)
        record = DivertRecord(
            name=name,
            address=address,
            forwarding_address=forwarding_address,
            routing_name=routing_name or name,
            exclusive=exclusive,
            filter=filter,
            routing_type=RoutingType[routing_type.upper()],
            transformer=None,
        )
        divert = Divert(self._core, record)
        divert.record_id = self._core.storage.add_setting(record)
        source.diverts[divert.unique_name] = divert
        self._addresses.version += 1
        self._core.notifications.divert(NotificationType.BINDING_ADDED, divert, address)

    @operation("destroyDivert", NAME)
    def destroy_divert(self, name: str) -> None:
        """Remove a divert; a configured one is there again after a restart."""
        found = self.find_divert(name)
        if found is None:
            raise BrokerError(
                ErrorCode.DIVERT_DOES_NOT_EXIST, f"AMQ229238: Divert {name} does not exist"
            )
        address, divert = found
        self._addresses.delete_divert(address, divert.unique_name)

    # --- the history --------------------------------------------------------------------------

    @operation("replay", NAME, TEXT, TEXT)
    def replay(
        self, address: str, target: str | None, filter: str | None
    ) -> Generator[float | None, None, None]:
        """Send again what the history has of an address, to it or to another one."""
        return replay_all(self._core, address, target, filter)

    @operation("replay", NAME, NAME, NAME, TEXT, TEXT)
    def replay_between(
        self, start: str, end: str, address: str, target: str | None, filter: str | None
    ) -> Generator[float | None, None, None]:
        """The same of files that were copied between two times, local yyyyMMddHHmmss."""
        return replay_between(self._core, start, end, address, target, filter)

    # --- clients ------------------------------------------------------------------------------

    @operation("closeConnectionsForAddress", NAME)
    def close_connections_of(self, host: str) -> bool:
        """End the connections from a host, or a host and port; whether there were any.

        The reference ends those whose address contains the text: of 10.0.0.10 too for 10.0.0.1.
        """
        wanted = host.strip().lstrip("/")
        if not wanted:
            raise ManagementError("an address of clients is needed")
        doomed = [
            one
            for one in self._broker.connections.values()
            if wanted in (one.origin.remote, one.origin.remote.rpartition(":")[0])
        ]
        for connection in doomed:
            connection.fail()
        return bool(doomed)

    @operation("closeConnectionWithID", NAME)
    def close_connection(self, connection_id: str) -> bool:
        """End one connection; whether it was there."""
        found = self._broker.connections.get(connection_id)
        if found is not None:
            found.fail()
        return found is not None

    @operation("closeConnectionsForUser", NAME)
    def close_connections_of_user(self, user: str) -> bool:
        """End the connections that a user has sessions on; whether there were any."""
        ids = {
            one.origin.connection_id for one in self._broker.sessions.values() if one.user == user
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
            for session in self._broker.sessions.values()
            if any(
                matches(address, one.queue.binding.address) for one in session.consumers.values()
            )
        }
        return self._close_all(ids)

    @operation("closeConsumerWithID", NAME, NAME)
    def close_consumer(self, session_name: str, consumer_id: str) -> bool:
        """Close one consumer, and tell its client; whether it was there."""
        session = self._broker.sessions.get(session_name)
        if session is None or not consumer_id.isdigit():
            return False
        consumer = session.consumers.get(int(consumer_id))
        if consumer is None:
            return False
        session.close_consumer(consumer.consumer_id)
        consumer.sink.disconnected(consumer)
        return True

    @operation("resetAllMessageCounters")
    def reset_counters(self) -> None:
        """Let all queues count from 0."""
        for queue in self._addresses.queues.values():
            queue.added_count = queue.acknowledged_count = 0
            queue.expired_count = queue.killed_count = 0

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
        return self._core.transactions.end_heuristically(
            xid, self._context, self._decided, is_commit=is_commit
        )

    def _decided(self, error: Exception | None) -> None:
        """The answer to the request waits for the same records."""

    @operation("clearAuthenticationCache")
    @operation("clearAuthorizationCache")
    def clear_caches(self) -> None:
        """Ask for users and permissions anew."""
        self._core.security.forget()
