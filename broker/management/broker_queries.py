"""The broker, looked at: what `broker` answers without changing anything."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, ClassVar, Final

from broker.cluster.peer_rows import left_names
from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import INT, NAME, TEXT, operation
from broker.management.json_texts import json_text
from broker.management.lists import (
    ADDRESSES,
    CONNECTIONS,
    CONSUMERS,
    PRODUCERS,
    QUEUES,
    SESSIONS,
    producer_row,
)
from broker.management.transactions import prepared_details, prepared_html
from broker.management.views import consumer_row, java_date
from broker.printing.describe import xid_base64, xid_text
from journal.version import __version__

if TYPE_CHECKING:
    from broker.discovery.topology import Member
    from broker.management.invocation import Getters
    from broker.model.xid import Xid
    from broker.sessions.session import Session
    from broker.transactions.transaction import Transaction

__all__ = ["BrokerQueries"]

_URL_SAFE: Final = str.maketrans("-_", "+/")


def uptime_text(uptime_ms: int) -> str:
    """Give a duration in words, as Artemis does.

    >>> uptime_text(3_725_000)
    '1 hour 2 minutes'
    """
    seconds = uptime_ms // 1000
    units = [
        ("day", seconds // 86400),
        ("hour", seconds // 3600 % 24),
        ("minute", seconds // 60 % 60),
    ]
    parts = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in units if count]
    return " ".join(parts) or f"{seconds} seconds"


class BrokerQueries(BrokerPart):
    """See the module's text."""

    getters: ClassVar[Getters] = {
        "getName": lambda self: self._broker.options.name,
        "getVersion": lambda self: __version__,
        "getNodeID": lambda self: self._broker.node_id,
        "isActive": lambda self: self._broker.lifecycle.is_active,
        "isStarted": lambda self: self._broker.lifecycle.is_started,
        "isBackup": lambda self: self._broker.lifecycle.is_backup,
        "isClustered": lambda self: bool(self._broker.cluster.topologies),
        "isReplicaSync": lambda self: False,
        "getCurrentTimeMillis": lambda self: self._broker.clock_ms(),
        "getUptimeMillis": lambda self: self._uptime_ms,
        "getUptime": lambda self: uptime_text(self._uptime_ms),
        "getConnectionCount": lambda self: len(self._broker.clients.connections),
        "getTotalConnectionCount": lambda self: self._broker.clients.connection_count_total,
        "getSessionCount": lambda self: len(self._broker.clients.sessions),
        "getTotalSessionCount": lambda self: self._broker.clients.session_count_total,
        "getTotalMessageCount": lambda self: sum(one.message_count for one in self._queues),
        "getTotalMessagesAdded": lambda self: sum(one.added_count for one in self._queues),
        "getTotalMessagesAcknowledged": lambda self: sum(
            one.acknowledged_count for one in self._queues
        ),
        "getTotalConsumerCount": lambda self: sum(one.consumer_count for one in self._queues),
        "getAddressCount": lambda self: len(self._addresses.by_name),
        "getAddressNames": lambda self: list(self._addresses.by_name),
        "getQueueCount": lambda self: len(self._addresses.queues),
        "getQueueNames": lambda self: list(self._addresses.queues),
        "getDivertNames": lambda self: [
            divert.unique_name
            for address in self._addresses.by_name.values()
            for divert in address.diverts.values()
        ],
        "getJMSBridgeNames": lambda self: list(self._broker.jms_bridges),
        "getClusterConnectionNames": lambda self: list(self._broker.cluster.topologies),
        "getLeftClusterConnectionNames": lambda self: left_names(
            self._addresses.queues, self._broker.cluster.topologies
        ),
        "getAddressMemoryUsage": lambda self: self._addresses.memory.size,
        "getAddressMemoryUsagePercentage": lambda self: (
            self._addresses.memory.size * 100 // self._addresses.memory.size_max
            if self._addresses.memory.size_max > 0
            else 0
        ),
        "getDiskStoreUsage": lambda self: self._addresses.memory.disk_usage,
        "getGlobalMaxSize": lambda self: self._addresses.memory.size_max,
        # Beyond Artemis: what its users ask for as metrics.
        "getDuplicateCount": lambda self: self._broker.parts.counters.duplicates,
    }

    @property
    def _uptime_ms(self) -> int:
        return self._broker.clock_ms() - self._broker.started_ms

    # --- lists by the page --------------------------------------------------------------------

    @operation("listQueues", TEXT, INT, INT)
    def list_queues(self, options: str | None, page: int, page_size: int) -> str:
        """Give a page of the queues."""
        return QUEUES.answer(self._rows.queues(), options, page, page_size)

    @operation("listAddresses", TEXT, INT, INT)
    def list_addresses(self, options: str | None, page: int, page_size: int) -> str:
        """Give a page of the addresses."""
        return ADDRESSES.answer(self._rows.addresses(), options, page, page_size)

    @operation("listConsumers", TEXT, INT, INT)
    def list_consumers(self, options: str | None, page: int, page_size: int) -> str:
        """Give a page of the consumers."""
        return CONSUMERS.answer(self._rows.consumers(), options, page, page_size)

    @operation("listConnections", TEXT, INT, INT)
    def list_connections(self, options: str | None, page: int, page_size: int) -> str:
        """Give a page of the connections."""
        return CONNECTIONS.answer(self._rows.connections(), options, page, page_size)

    @operation("listSessions", TEXT, INT, INT)
    def list_sessions(self, options: str | None, page: int, page_size: int) -> str:
        """Give a page of the sessions."""
        return SESSIONS.answer(self._rows.sessions(), options, page, page_size)

    @operation("listProducers", TEXT, INT, INT)
    def list_producers(self, options: str | None, page: int, page_size: int) -> str:
        """Give a page of the producers."""
        return PRODUCERS.answer(self._rows.producers(), options, page, page_size)

    # --- whole lists --------------------------------------------------------------------------

    @operation("listAddresses", NAME)
    def address_names(self, separator: str) -> str:
        """Give the addresses' names in one text, sorted."""
        return separator.join(sorted(self._addresses.by_name, key=str.lower))

    @operation("getQueueNames", TEXT)
    def queue_names(self, routing_type: str | None) -> list[str]:
        """Give the names of the queues of a routing type; of all for a blank one."""
        wanted = (routing_type or "").upper()
        return [one.name for one in self._queues if wanted in ("", one.binding.routing_type.name)]

    @operation("listBindingsForAddress", NAME)
    def bindings_of(self, address: str) -> str:
        """Give what is bound to an address, patterns included."""
        route = self._broker.parts.postoffice.route_of(address)
        return ",".join(
            one.describe() for one in (*route.anycast, *route.multicast, *route.diverts)
        )

    @operation("listConnectionIDs")
    def connection_ids(self) -> list[str]:
        """Give the ids of all connections."""
        return list(self._broker.clients.connections)

    @operation("listNetworkTopology")
    def network_topology(self) -> str:
        """Give the members of the clusters that this broker is in, itself among them."""
        return json_text(
            [
                _member_row(member)
                for topology in self._broker.cluster.topologies.values()
                for member in topology.members
                if member.primary is not None
            ]
        )

    @operation("listRemoteAddresses")
    @operation("listRemoteAddresses", NAME)
    def remote_addresses(self, host: str = "") -> list[str]:
        """Give where clients come from, or those of one host."""
        origins = [one.origin for one in self._broker.clients.connections.values()]
        return [one.remote for one in origins if one.remote.startswith(host.lstrip("/"))]

    @operation("listConnectionsAsJSON")
    def connections_as_json(self) -> str:
        """Give all connections."""
        return json_text(
            [
                {
                    "connectionID": row.origin.connection_id,
                    "clientAddress": row.origin.remote,
                    "creationTime": row.origin.created_ms,
                    "implementation": "RemotingConnectionImpl",
                    "sessionCount": len(row.sessions),
                }
                for row in self._rows.connections()
            ]
        )

    def _on(self, connection_id: str) -> list[Session]:
        return [
            one
            for one in self._broker.clients.sessions.values()
            if one.origin.connection_id == connection_id
        ]

    @operation("listSessions", NAME)
    def session_names(self, connection_id: str) -> list[str]:
        """Give the names of a connection's sessions."""
        return [one.name for one in self._on(connection_id)]

    @operation("listSessionsAsJSON", NAME)
    def sessions_as_json(self, connection_id: str) -> str:
        """Give a connection's sessions."""
        return json_text([_session_row(one) for one in self._on(connection_id)])

    @operation("listAllSessionsAsJSON")
    def all_sessions_as_json(self) -> str:
        """Give all sessions."""
        return json_text([_session_row(one) for one in self._broker.clients.sessions.values()])

    @operation("listConsumersAsJSON", NAME)
    def consumers_as_json(self, connection_id: str) -> str:
        """Give a connection's consumers."""
        return json_text(
            [
                consumer_row(consumer, session)
                for session in self._on(connection_id)
                for consumer in session.consumers.values()
            ]
        )

    @operation("listProducersInfoAsJSON")
    def producers_as_json(self) -> str:
        """Give all producers."""
        return json_text([producer_row(row) for row in self._rows.producers()])

    @operation("listAllConsumersAsJSON")
    def all_consumers_as_json(self) -> str:
        """Give all consumers."""
        return json_text([consumer_row(*row) for row in self._rows.consumers()])

    @operation("getStatus")
    def status(self) -> str:
        """Give the broker's state."""
        identity = {
            "identity": self._broker.options.name,
            "nodeId": self._broker.node_id,
            "state": self._broker.lifecycle.state.name,
            "uptime": uptime_text(self._uptime_ms),
            "version": __version__,
        }
        return json_text({"server": identity})

    # --- settings -----------------------------------------------------------------------------

    @operation("getAddressSettingsAsJSON", NAME)
    def address_settings(self, address: str) -> str:
        """Give what holds for an address: merged, with defaults."""
        return json_text(self._broker.settings.match(address).all_to_json())

    # --- diverts and transactions -------------------------------------------------------------

    @operation("listDivertNames")
    def divert_names(self) -> list[str]:
        """Give the names of all diverts."""
        return [
            divert.unique_name
            for address in self._addresses.by_name.values()
            for divert in address.diverts.values()
        ]

    @operation("listPreparedTransactions")
    def prepared(self) -> list[str]:
        """Give the transactions that wait for a decision, the oldest first, each in a line."""
        return [
            f"{java_date(one.started_ms)} base64: {xid_base64(one.xid)} {xid_text(one.xid)}"
            for one in self._prepared
            if one.xid is not None
        ]

    @property
    def _prepared(self) -> list[Transaction]:
        found = self._broker.parts.transactions.prepared()
        return sorted(found, key=lambda one: one.started_ms)

    @operation("listPreparedTransactionDetailsAsJSON")
    def prepared_details(self) -> str:
        """Give what these would send and acknowledge."""
        return json_text([prepared_details(one) for one in self._prepared])

    @operation("listPreparedTransactionDetailsAsHTML")
    def prepared_details_as_html(self) -> str:
        """Give the same as tables."""
        return prepared_html(self._prepared)

    @operation("listHeuristicCommittedTransactions")
    def committed_by_hand(self) -> list[str]:
        """Give what operators have committed, until its manager forgets it."""
        return [xid_base64(one) for one in self._broker.parts.transactions.decided(is_commit=True)]

    @operation("listHeuristicRolledBackTransactions")
    def rolled_back_by_hand(self) -> list[str]:
        """Give what operators have rolled back, until its manager forgets it."""
        return [xid_base64(one) for one in self._broker.parts.transactions.decided(is_commit=False)]

    def find_xid(self, text: str) -> Xid | None:
        """Give the prepared transaction of a name in Base64.

        Raises:
            ManagementError: it is not valid Base64.
        """
        try:
            wanted = base64.b64decode(text.translate(_URL_SAFE), validate=True)
        except ValueError as error:
            raise ManagementError(f"no Base64: {text[:100]}") from error
        for one in self._broker.parts.transactions.prepared():
            if one.xid is not None and base64.urlsafe_b64decode(xid_base64(one.xid)) == wanted:
                return one.xid
        return None


def _member_row(member: Member) -> dict[str, object]:
    row: dict[str, object] = {"nodeID": member.node_id}
    if member.primary is not None:
        # `live` is what older versions of Artemis call it; it tells both.
        row["live"] = row["primary"] = f"{member.primary.host}:{member.primary.port}"
    if member.backup is not None:
        row["backup"] = f"{member.backup.host}:{member.backup.port}"
    return row


def _session_row(session: Session) -> dict[str, object]:
    row: dict[str, object] = {
        "sessionID": session.name,
        "creationTime": session.created_ms,
        "consumerCount": len(session.consumers),
        "metadata": session.metadata,
    }
    if session.user is not None:
        row["validatedUser"] = row["principal"] = session.user
    return row
