"""The options of the source `broker`, read once."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from broker.client import Client
from broker.client.uri import parse_uri
from broker.model.routing_type import RoutingType
from journal.errors import OptionError
from pipeline.options import flag_of, integer_of, one_of, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BrokerOptions"]

_OF_ALL: Final = ("url", "user", "password", "address", "reconnectTimeoutMs")
_OF_READS: Final = (*_OF_ALL, "queue", "selector")
_OF_STREAMS: Final = (
    *_OF_ALL,
    *("queue", "maxRecordsPerTrigger", "failOnDataLoss", "minPartitions"),
)
_OF_WRITES: Final = (*_OF_ALL, "routingType", "jobId", "idCacheSize")
# What Spark itself reads and hands on.
_OF_SPARK: Final = ("checkpointLocation", "path")
_ROUTING_TYPES: Final = {"ANYCAST": RoutingType.ANYCAST, "MULTICAST": RoutingType.MULTICAST}
# A checkpoint names every message of a batch, so that a batch without an end would not do.
RECORDS_PER_TRIGGER: Final = 10_000
# Longer than a broker takes to start on a large journal, or a backup to take over.
RECONNECT_TIMEOUT_MS: Final = 300_000
# Each task looks through the queue by itself.
PARTITIONS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """What a query says of a running broker.

    Attributes:
        url: as the client takes it, `tcp://host:port?name=value`; its users, timeouts, reconnects.
        user: in place of the URL's.
        password: likewise; never shown.
        reconnect_timeout_ms: how long an outage of the broker may take, the first connect included;
            0: none.
        address: what is read or followed, or written to where a row has no address of its own.
        queue: what is read, or consumed by a stream; of a stream with an address, the queue of the
            query's own.
        selector: of a batch: which messages; None: all.
        max_records_per_trigger: of a stream: messages a batch.
        min_partitions: of a stream: tasks that read a batch, where it has so many messages.
        fails_on_data_loss: of a stream: a message that is gone before it was read ends the query.
        routing_type: of what is written, where a row has none.
        job_id: of a batch write: names its rows over all of its runs.
        id_cache_size: of what is written: duplicate ids that addresses keep; None: asked for.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    reconnect_timeout_ms: int = RECONNECT_TIMEOUT_MS
    address: str | None = None
    queue: str | None = None
    selector: str | None = None
    max_records_per_trigger: int = RECORDS_PER_TRIGGER
    min_partitions: int = 1
    fails_on_data_loss: bool = True
    routing_type: RoutingType | None = None
    job_id: str = ""
    id_cache_size: int | None = None

    @classmethod
    def of_read(cls, given: Mapping[str, str]) -> BrokerOptions:
        """Of `spark.read`.

        Raises:
            OptionError: an option that there is not, or a value that it cannot have.
        """
        values = values_of(given, _OF_READS)
        if ("address" in values) == ("queue" in values):
            raise OptionError("one of the options address and queue says what is read")
        return replace(
            _connection(values), queue=values.get("queue"), selector=values.get("selector")
        )

    @classmethod
    def of_stream(cls, given: Mapping[str, str]) -> BrokerOptions:
        """Of `spark.readStream`.

        Raises:
            OptionError: as for of_read().
        """
        values = values_of(given, _OF_STREAMS)
        if "queue" not in values:
            raise OptionError(
                "the option queue names the queue that is consumed; with an address it is made,"
                " for this query alone"
            )
        return replace(
            _connection(values),
            queue=values["queue"],
            max_records_per_trigger=_least(1, values, "maxRecordsPerTrigger", RECORDS_PER_TRIGGER),
            min_partitions=_partitions(values),
            fails_on_data_loss=flag_of(values, "failOnDataLoss", default=True),
        )

    @classmethod
    def of_write(cls, given: Mapping[str, str]) -> BrokerOptions:
        """Of `write` and `writeStream`.

        Raises:
            OptionError: as for of_read().
        """
        values = values_of(
            {name: value for name, value in given.items() if not _is_of_spark(name)}, _OF_WRITES
        )
        kind = None
        if "routingType" in values:
            kind = _ROUTING_TYPES[one_of(values, "routingType", tuple(_ROUTING_TYPES))]
        size = _least(1, values, "idCacheSize", 1) if "idCacheSize" in values else None
        return replace(
            _connection(values),
            routing_type=kind,
            job_id=values.get("jobId") or str(uuid.uuid4()),
            id_cache_size=size,
        )

    @property
    def node(self) -> str:
        """Host and port, of the first where the URL has several."""
        return parse_uri(self.url).connectors[0].name or ""

    def client(self) -> Client:
        """A client, to be closed; nothing is connected yet."""
        given: dict[str, object] = {}
        if self.user is not None:
            given["user"] = self.user
        if self.password is not None:
            given["password"] = self.password
        return Client(self.url, **given)  # type: ignore[arg-type] # options of the client


def _connection(values: Mapping[str, str]) -> BrokerOptions:
    if "url" not in values:
        raise OptionError("no url; such as tcp://localhost:61616")
    try:
        parse_uri(values["url"])
    except ValueError as error:
        raise OptionError(f"url: {error}") from error
    return BrokerOptions(
        values["url"],
        values.get("user"),
        values.get("password"),
        reconnect_timeout_ms=_least(0, values, "reconnectTimeoutMs", RECONNECT_TIMEOUT_MS),
        address=values.get("address"),
    )


def _partitions(values: Mapping[str, str]) -> int:
    count = _least(1, values, "minPartitions", 1)
    if count > PARTITIONS_MAX:
        raise OptionError(f"minPartitions={count}: must be {PARTITIONS_MAX} or less")
    return count


def _is_of_spark(name: str) -> bool:
    return name.lower() in {one.lower() for one in _OF_SPARK}


def _least(least: int, values: Mapping[str, str], name: str, default: int) -> int:
    value = integer_of(values, name, default)
    if value < least:
        raise OptionError(f"{name}={value}: must be {least} or more")
    return value
