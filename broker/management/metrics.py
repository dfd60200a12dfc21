"""What a broker counts, for Prometheus; read when it is asked for, from the broker's own objects.

    artemis_…    as Artemis's metrics plugin calls it: broker, address and queue as labels
    quiver_…     beyond Artemis

A broker with very many queues would answer with megabytes: only those with most messages have
series of their own, unless all are asked for; the sums of all are always there. Queues of addresses
with enable-metrics false have none. A broker that is not active yet tells of itself alone.

Threads: the event loop's alone: a collector run by another thread would see half a change.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.core import Metric

    from broker.management.access import ManagedBroker
    from broker.queues.queue import Queue
    from broker.routing.address import Address

__all__ = ["SERIES_MAX", "Metrics"]

# Queues, and addresses, with series of their own; about 150 KiB of text.
SERIES_MAX: Final = 100


class _Item(NamedTuple):
    name: str
    text: str
    value: Callable[..., float]


_BROKER: Final = (
    _Item(
        "artemis_active",
        "Whether clients may come",
        lambda one: one.lifecycle.is_active and not one.lifecycle.is_in_doubt,
    ),
    _Item("artemis_connection_count", "Open connections", lambda one: len(one.clients.connections)),
    _Item(
        "artemis_total_connection_count",
        "Connections since the start",
        lambda one: one.clients.connection_count_total,
    ),
    _Item("artemis_session_count", "Open sessions", lambda one: len(one.clients.sessions)),
    _Item(
        "artemis_total_session_count",
        "Sessions since the start",
        lambda one: one.clients.session_count_total,
    ),
)
# Of the pair that it may be one of; see broker.server.lifecycle.
_PAIR: Final = (
    _Item(
        "quiver_ha_state_since_seconds",
        "When it took its HA state, seconds since 1970",
        lambda one: one.lifecycle.ha_since_ms / 1000,
    ),
    _Item(
        "quiver_ha_transitions",
        "Changes of the HA state since the process began",
        lambda one: one.lifecycle.ha_transitions,
    ),
    _Item(
        "quiver_ha_takeover_seconds",
        "From the lock to the first client, last time; below 0 before",
        lambda one: one.lifecycle.takeover_ms / 1000,
    ),
    _Item(
        "quiver_ha_outage_seconds",
        "From the last sign of life of the owner before to the first client, last time, or while "
        "it was in doubt; below 0 where that is not known",
        lambda one: one.lifecycle.outage_ms / 1000,
    ),
    _Item(
        "quiver_ha_proof_age_seconds",
        "Since its lock or lease was proved last; below 0 without one, as of a backup that waits",
        lambda one: -1 if one.ownership is None else one.ownership.proof_age_s(),
    ),
    _Item(
        "quiver_ha_epoch",
        "Owners that its folder has had; 0 without one",
        lambda one: 0 if one.ownership is None else one.ownership.epoch,
    ),
)
# Of addresses and queues, which are there once the broker has loaded them.
_LOADED: Final = (
    _Item(
        "artemis_address_memory_usage",
        "Bytes of all messages in memory",
        lambda one: one.parts.postoffice.addresses.memory.size,
    ),
    _Item(
        "quiver_address_memory_limit_bytes",
        "global-max-size; -1 without limit",
        lambda one: one.parts.postoffice.addresses.memory.size_max,
    ),
    _Item(
        "quiver_addresses",
        "Addresses",
        lambda one: len(one.parts.postoffice.addresses.by_name),
    ),
    _Item("quiver_queues", "Queues", lambda one: len(one.parts.postoffice.addresses.queues)),
    _Item(
        "quiver_messages",
        "Messages in all queues",
        lambda one: sum(
            queue.message_count for queue in one.parts.postoffice.addresses.queues.values()
        ),
    ),
    _Item(
        "quiver_consumers",
        "Consumers of all queues",
        lambda one: sum(
            queue.consumer_count for queue in one.parts.postoffice.addresses.queues.values()
        ),
    ),
)
_COUNTED: Final = (
    _Item(
        "quiver_duplicates_rejected",
        "Messages whose duplicate id had been seen",
        lambda counters: counters.duplicates,
    ),
    _Item(
        "quiver_messages_unrouted",
        "Messages that no queue wanted",
        lambda counters: counters.unrouted,
    ),
    _Item(
        "quiver_messages_redistributed",
        "Messages that went to another broker for want of a consumer here",
        lambda counters: counters.redistributed,
    ),
    _Item(
        "quiver_stale_routes",
        "Messages that another broker sent to a queue which was gone",
        lambda counters: counters.stale_routes,
    ),
    _Item("quiver_messages_expired", "Messages that expired", lambda counters: counters.expired),
    _Item(
        "quiver_messages_killed",
        "Messages delivered too often",
        lambda counters: counters.killed,
    ),
    _Item(
        "quiver_messages_dropped",
        "Messages that full addresses dropped",
        lambda counters: counters.dropped,
    ),
)
_QUEUE: Final = (
    _Item("artemis_message_count", "Messages", lambda one: one.message_count),
    _Item(
        "artemis_delivering_message_count",
        "Delivered and not acknowledged",
        lambda one: one.delivering_count,
    ),
    _Item("artemis_scheduled_message_count", "Not due yet", lambda one: one.scheduled_count),
    _Item("artemis_messages_added", "Messages since the start", lambda one: one.added_count),
    _Item(
        "artemis_messages_acknowledged",
        "Acknowledged since the start",
        lambda one: one.acknowledged_count,
    ),
    _Item("artemis_messages_expired", "Expired since the start", lambda one: one.expired_count),
    _Item("artemis_messages_killed", "Delivered too often", lambda one: one.killed_count),
    _Item("artemis_consumer_count", "Consumers", lambda one: one.consumer_count),
)
_ADDRESS: Final = (
    _Item("artemis_address_size", "Bytes of messages in memory", lambda one: one.memory.size),
    _Item("artemis_routed_message_count", "Messages to a queue", lambda one: one.routed_count),
    _Item("artemis_unrouted_message_count", "Messages to no queue", lambda one: one.unrouted_count),
)
# Of a broker with cluster connections.
_STRANDED: Final = (
    "quiver_messages_stranded",
    "Messages that waited too long although a consumer of the cluster takes them",
)
# Name, text, and column of what a cluster connection knows of each other node.
_PEER: Final = (
    ("quiver_cluster_peer_connected", "Whether the node is reached", "connected"),
    ("quiver_cluster_peer_messages_waiting", "Messages that wait for the node", "waiting"),
    ("quiver_cluster_peer_messages_acknowledged", "Messages that it has confirmed", "acknowledged"),
    ("quiver_cluster_peer_messages_sent_back", "Messages that it refused", "sentBack"),
    ("quiver_cluster_peer_messages_stranded", "Waiting, and the node is gone", "stranded"),
    ("quiver_cluster_peer_queues", "Queues of the node that are known", "queues"),
    ("quiver_cluster_peer_consumers", "Consumers of these queues", "consumers"),
)
# Name, text, and attribute of a JMS bridge's control.
_JMS_BRIDGE: Final = (
    ("quiver_jms_bridge_started", "Whether the bridge was started", "started"),
    ("quiver_jms_bridge_failed", "Whether it is without a connection", "failed"),
    ("quiver_jms_bridge_messages", "Messages moved since its start", "messageCount"),
    ("quiver_jms_bridge_aborted", "Messages of failed batches", "abortedMessageCount"),
    ("quiver_jms_bridge_retried", "Of these, messages that come again", "retriedMessageCount"),
    ("quiver_jms_bridge_in_doubt", "Transactions that are decided and not over", "inDoubtCount"),
    ("quiver_jms_bridge_lag_ms", "Age of the last message, or of one on its way", "lag"),
)


class _Collector:
    """Implements prometheus_client's Collector for one answer."""

    def __init__(self, broker: ManagedBroker, series_max: int) -> None:
        self._broker = broker
        self._series_max = series_max

    def collect(self) -> Iterator[Metric]:
        broker = self._broker
        yield from self._gauges(_BROKER)
        yield from self._gauges(_PAIR)
        yield self._of_state()
        if not broker.lifecycle.is_loaded:
            return
        yield from self._gauges(_LOADED)
        for item in _COUNTED:
            counter = CounterMetricFamily(item.name, item.text, labels=("broker",))
            counter.add_metric((broker.options.name,), float(item.value(broker.parts.counters)))
            yield counter
        yield from self._of_duplicates()
        yield from self._of_queues()
        yield from self._of_addresses()
        yield from self._of_pages()
        yield from self._of_bridges()
        yield from self._of_jms_bridges()
        yield from self._of_cluster()

    def _of_state(self) -> Metric:
        gauge = GaugeMetricFamily(
            "quiver_ha_state", "1 for the present HA state", labels=("broker", "state", "role")
        )
        lifecycle, options = self._broker.lifecycle, self._broker.options
        role = "backup" if options.is_backup else "primary"
        for state in type(lifecycle.ha_state):
            labels = (options.name, state.value, role)
            gauge.add_metric(labels, float(state is lifecycle.ha_state))
        return gauge

    def _gauges(self, items: Iterable[_Item]) -> Iterator[Metric]:
        broker = self._broker
        for item in items:
            gauge = GaugeMetricFamily(item.name, item.text, labels=("broker",))
            gauge.add_metric((broker.options.name,), float(item.value(broker)))
            yield gauge

    def _is_measured(self, address: str) -> bool:
        return self._broker.settings.match(address).enable_metrics

    def _most(
        self, rows: Iterable[Queue | Address], weight: Callable[..., int]
    ) -> list[Queue | Address]:
        if self._series_max < 0:
            return list(rows)
        return heapq.nlargest(self._series_max, rows, key=weight)

    def _of_queues(self) -> Iterator[Metric]:
        name = self._broker.options.name
        queues = (
            one
            for one in self._broker.parts.postoffice.addresses.queues.values()
            if self._is_measured(one.binding.address)
        )
        found: list[Queue] = self._most(queues, lambda one: one.message_count)  # type: ignore[assignment] # what goes in comes out
        for item in _QUEUE:
            gauge = GaugeMetricFamily(item.name, item.text, labels=("broker", "address", "queue"))
            for queue in found:
                labels = (name, queue.binding.address, queue.name)
                gauge.add_metric(labels, float(item.value(queue)))
            yield gauge

    def _addresses(self) -> list[Address]:
        addresses = (
            one
            for one in self._broker.parts.postoffice.addresses.by_name.values()
            if self._is_measured(one.name)
        )
        return self._most(addresses, lambda one: one.memory.size)  # type: ignore[return-value] # what goes in comes out

    def _of_addresses(self) -> Iterator[Metric]:
        name = self._broker.options.name
        found = self._addresses()
        for item in _ADDRESS:
            gauge = GaugeMetricFamily(item.name, item.text, labels=("broker", "address"))
            for address in found:
                gauge.add_metric((name, address.name), float(item.value(address)))
            yield gauge

    def _of_pages(self) -> Iterator[Metric]:
        name = self._broker.options.name
        pages = GaugeMetricFamily(
            "artemis_number_of_pages", "Pages of an address", labels=("broker", "address")
        )
        paging = self._broker.parts.paging
        for address in self._addresses() if paging is not None else ():
            store = paging.stores.get(address.name) if paging is not None else None
            if store is not None:
                pages.add_metric((name, address.name), float(len(store.pages)))
        yield pages

    def _of_bridges(self) -> Iterator[Metric]:
        name = self._broker.options.name
        labels = ("broker", "bridge", "queue")
        connected = GaugeMetricFamily(
            "quiver_bridge_connected", "Whether a bridge has a connection", labels=labels
        )
        pending = GaugeMetricFamily(
            "quiver_bridge_messages_pending", "Sent and not confirmed by the target", labels=labels
        )
        acknowledged = CounterMetricFamily(
            "quiver_bridge_messages_acknowledged", "Confirmed by the target", labels=labels
        )
        for bridge in self._broker.bridges.by_name.values():
            status = bridge.status
            values = (name, status.name, status.queue)
            connected.add_metric(values, float(status.is_connected))
            pending.add_metric(values, float(status.pending_count))
            acknowledged.add_metric(values, float(status.acknowledged_count))
        yield from (connected, pending, acknowledged)

    def _of_cluster(self) -> Iterator[Metric]:
        connections = self._broker.cluster.connections
        yield from self._of_stranded()
        labels = ("broker", "cluster_connection", "node")
        for name, text, column in _PEER if connections else ():
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for connection in connections.values():
                for row in connection.peer_rows():
                    values = (self._broker.options.name, connection.config.name, str(row["nodeID"]))
                    gauge.add_metric(
                        values,
                        float(
                            str(int(row[column] is True) if column == "connected" else row[column])
                        ),
                    )
            yield gauge

    def _of_stranded(self) -> Iterator[Metric]:
        stranded = self._broker.cluster.stranded
        if stranded is None:
            return
        gauge = GaugeMetricFamily(*_STRANDED, labels=("broker", "address", "queue"))
        queues = self._broker.parts.postoffice.addresses.queues
        for name, found in stranded.by_queue.items():
            queue = queues.get(name)
            if queue is not None:
                labels = (self._broker.options.name, queue.binding.address, name)
                gauge.add_metric(labels, float(found.count))
        yield gauge

    def _of_jms_bridges(self) -> Iterator[Metric]:
        labels = (self._broker.options.name,)
        found = {name: one.attributes() for name, one in self._broker.jms_bridges.items()}
        for name, text, attribute in _JMS_BRIDGE if found else ():
            gauge = GaugeMetricFamily(name, text, labels=("broker", "bridge"))
            for bridge, attributes in found.items():
                if attributes[attribute] is not None:
                    gauge.add_metric((*labels, bridge), float(attributes[attribute]))
            yield gauge

    def _of_duplicates(self) -> Iterator[Metric]:
        """Where duplicate ids are refused, and how many are remembered."""
        name = self._broker.options.name
        rejected = CounterMetricFamily(
            "quiver_address_duplicates_rejected",
            "Messages to an address whose duplicate id had been seen",
            labels=("broker", "address"),
        )
        remembered = GaugeMetricFamily(
            "quiver_address_duplicate_ids",
            "Duplicate ids that an address remembers",
            labels=("broker", "address"),
        )
        for address in self._addresses():
            cache = self._broker.parts.postoffice.duplicates.find(address.name)
            if cache is not None:
                rejected.add_metric((name, address.name), float(cache.rejected_count))
                remembered.add_metric((name, address.name), float(len(cache)))
        yield rejected
        yield remembered


class Metrics:
    """Everything as text.

    Args:
        broker: to measure.
    """

    def __init__(self, broker: ManagedBroker) -> None:
        self._broker = broker

    def answer(self, accept: str | None, *, is_whole: bool = False) -> tuple[str, bytes]:
        """Give content type and text.

        Args:
            accept: of the request; OpenMetrics where it wants that.
            is_whole: series for all queues and addresses.
        """
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(self._broker, -1 if is_whole else SERIES_MAX))
        ProcessCollector(registry=registry)
        encoder, content_type = choose_encoder(accept or "")
        return content_type, encoder(registry)
