"""The queues of all nodes, for an audit; small enough for the driver and each worker."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Cluster", "Queue", "frame_of", "queues_of"]

# $.artemis.internal.sf.<cluster connection>.<node id of the target>
_STORE_AND_FORWARD: Final = re.compile(r"^\$\.artemis\.internal\.sf\..*\.([0-9a-fA-F-]{36})$")
_WANTED: Final = (
    *("QUEUE_BINDING_RECORD", "ADDRESS_BINDING_RECORD", "BRIDGE_RECORD"),
    *("QUEUE_STATUS_RECORD", "ADDRESS_STATUS_RECORD"),
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What brokers are to one another.

    Attributes:
        node_ids: of each node whose id is known (`server.lock`), as UUID.
        bridge_queues: queues that bridges consume from, of broker.xml and JMS bridges; each by its
            name, which is one of every node, or as NODE:QUEUE. Those of the bindings, and a
            cluster's own, are known.
    """

    node_ids: Mapping[str, str] = field(default_factory=dict)
    bridge_queues: tuple[str, ...] = ()

    def is_bridge_queue(self, node: str, queue: str | None) -> bool:
        """Whether it is one of the bridge queues."""
        return queue in self.bridge_queues or f"{node}:{queue}" in self.bridge_queues


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue, or the id of an unknown one.

    Attributes:
        node: whose it is.
        queue_id: of it.
        queue: its name; None: it has no binding.
        address: that it is bound to.
        is_exclusive: one consumer has all of it.
        is_paused: it, or its address, for good.
        is_multicast: its routing type.
        forwards: a bridge consumes from it.
        target: the node that it forwards to; None: any.
        is_checked: it forwards, and that its target is among the nodes is known, or taken for it.
        acknowledged_id: the newest message that was acknowledged in it.
    """

    node: str
    queue_id: int
    queue: str | None = None
    address: str | None = None
    is_exclusive: bool = False
    is_paused: bool = False
    is_multicast: bool = False
    forwards: bool = False
    target: str | None = None
    is_checked: bool = False
    acknowledged_id: int | None = None


def queues_of(bindings: DataFrame, cluster: Cluster) -> list[Queue]:
    """Give the queues; a job of Spark's.

    Args:
        bindings: of the source `bindings`.
        cluster: what the nodes are to one another.
    """
    from pyspark.sql import functions as f

    rows = (
        bindings.where(f.col("record_type").isin(*_WANTED))
        .select("node", "record_id", "record_type", "name", "address", "routing_types", "json")
        .collect()
    )
    bridged: set[tuple[str, str]] = set()
    # The newest record counts.
    statuses: dict[tuple[str, str, int], tuple[int, bool]] = {}
    for row in rows:
        told: dict[str, Any] = json.loads(row.json) if row.json else {}
        if row.record_type == "BRIDGE_RECORD":
            bridged.add((row.node, told.get("queueName", "")))
        elif row.record_type in _STATUS_OF:
            key = (row.node, row.record_type, int(told.get(_STATUS_OF[row.record_type], -1)))
            status = (row.record_id, told.get("status") == "PAUSED")
            statuses[key] = max(statuses.get(key, status), status)
    paused = {key for key, (_, is_paused) in statuses.items() if is_paused}
    addresses = {
        (row.node, row.address)
        for row in rows
        if row.record_type == "ADDRESS_BINDING_RECORD"
        and (row.node, "ADDRESS_STATUS_RECORD", row.record_id) in paused
    }
    nodes = {one.lower(): node for node, one in cluster.node_ids.items()}
    found = []
    for row in rows:
        if row.record_type != "QUEUE_BINDING_RECORD":
            continue
        match = _STORE_AND_FORWARD.match(row.name or "")
        target = nodes.get(match[1].lower()) if match else None
        is_named = (row.node, row.name) in bridged or cluster.is_bridge_queue(row.node, row.name)
        found.append(
            Queue(
                row.node,
                row.record_id,
                row.name,
                row.address,
                is_exclusive=str(json.loads(row.json).get("exclusive")).lower() == "true",
                is_paused=(row.node, "QUEUE_STATUS_RECORD", row.record_id) in paused
                or (row.node, row.address) in addresses,
                is_multicast="MULTICAST" in (row.routing_types or ()),
                forwards=match is not None or is_named,
                target=target,
                # Of a cluster's queue whose target is not among the nodes nothing can be said.
                is_checked=is_named or target is not None,
            )
        )
    return found


# What says of whom the status is.
_STATUS_OF: Final = {"QUEUE_STATUS_RECORD": "queueId", "ADDRESS_STATUS_RECORD": "addressId"}


def frame_of(spark: SparkSession, queues: Sequence[Queue]) -> DataFrame:
    """The queues as a frame, to be broadcast."""
    import pyarrow as pa
    from pyspark.sql import functions as f

    kinds = {"queue_id": pa.int64(), "acknowledged_id": pa.int64()}
    schema = pa.schema(
        [
            (
                one.name,
                kinds.get(one.name) or (pa.bool_() if one.type == "bool" else pa.string()),
            )
            for one in fields(Queue)
        ]
    )
    rows = [{one.name: getattr(queue, one.name) for one in fields(Queue)} for queue in queues]
    return f.broadcast(spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema)))
