"""Settings of a client: Artemis's parameters of a connection URI, with their defaults."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.model.connector_parameters import CONNECTOR_PARAMETERS
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

WINDOW_DEFAULT: Final = 1024 * 1024


def _parameter(name: str, default: float | bool | str | None) -> Any:  # noqa: ANN401
    """Declare an option that a URI calls `name`; the field's declared type is what holds."""
    return dataclasses.field(default=default, metadata={"parameter": name})


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How a client behaves. Times are ms as in the URIs, sizes are bytes, -1 is no limit.

    Attributes:
        user: who the client is, where no session says otherwise.
        password: its password.
        client_id: told to the broker with each session.
        connection_ttl: the broker gives a silent connection up after so long.
        check_period: how often a ping goes out and the broker's silence is looked at.
        call_timeout: how long an answer may take.
        call_failover_timeout: how long a call waits for a reconnect that is under way.
        min_large_message_size: from here on a body travels in chunks of this size.
        compress_large_message: whether such bodies are compressed.
        compression_level: 0 … 9, -1 is zlib's default.
        consumer_window_size: bytes that the broker may send ahead; 0 is a message at a time.
        producer_window_size: bytes asked for at a time before sending.
        confirmation_window_size: bytes until handled packets are confirmed; with it a session
            survives a lost connection. -1: no confirmations, no reattaching.
        block_on_acknowledge: whether acknowledging waits for the broker.
        block_on_durable_send: whether sending a durable message waits until it is durable.
        block_on_non_durable_send: the same of others.
        auto_group: whether all messages of a producer are one group.
        group_id: put all messages into this group.
        pre_acknowledge: the broker acknowledges before it sends.
        ack_batch_size: bytes of messages that one acknowledgement may wait for.
        retry_interval: wait before the second attempt to connect.
        retry_interval_multiplier: and so much longer before each next one.
        max_retry_interval: but never longer.
        reconnect_attempts: rounds after a lost connection; -1 for ever.
        initial_connect_attempts: rounds at first; -1 for ever.
        failover_attempts: rounds over the other members of the cluster after these; -1 for ever.
        use_topology: whether connections are spread over the cluster's members, once known.
        balancing_policy: Artemis's class name, or `package.module:Class`; `balancing.py`.
        refresh_timeout: silence after which discovery gives a broker up.
        initial_wait_timeout: how long a connection waits until discovery has heard of a broker.
        ha: whether a backup is tried; kept because Artemis has it, it always is.
    """

    user: str | None = _parameter("user", None)
    password: str | None = dataclasses.field(
        default=None, repr=False, metadata={"parameter": "password"}
    )
    client_id: str | None = _parameter("clientID", None)
    connection_ttl: int = _parameter("connectionTTL", 60_000)
    check_period: int = _parameter("clientFailureCheckPeriod", 30_000)
    call_timeout: int = _parameter("callTimeout", 30_000)
    call_failover_timeout: int = _parameter("callFailoverTimeout", 30_000)
    min_large_message_size: int = _parameter("minLargeMessageSize", 100 * 1024)
    compress_large_message: bool = _parameter("compressLargeMessage", False)
    compression_level: int = _parameter("compressionLevel", -1)
    consumer_window_size: int = _parameter("consumerWindowSize", WINDOW_DEFAULT)
    producer_window_size: int = _parameter("producerWindowSize", 64 * 1024)
    confirmation_window_size: int = _parameter("confirmationWindowSize", -1)
    block_on_acknowledge: bool = _parameter("blockOnAcknowledge", False)
    block_on_durable_send: bool = _parameter("blockOnDurableSend", True)
    block_on_non_durable_send: bool = _parameter("blockOnNonDurableSend", False)
    auto_group: bool = _parameter("autoGroup", False)
    group_id: str | None = _parameter("groupID", None)
    pre_acknowledge: bool = _parameter("preAcknowledge", False)
    ack_batch_size: int = _parameter("ackBatchSize", 1024 * 1024)
    retry_interval: int = _parameter("retryInterval", 2_000)
    retry_interval_multiplier: float = _parameter("retryIntervalMultiplier", 1.0)
    max_retry_interval: int = _parameter("maxRetryInterval", 2_000)
    reconnect_attempts: int = _parameter("reconnectAttempts", 0)
    initial_connect_attempts: int = _parameter("initialConnectAttempts", 1)
    failover_attempts: int = _parameter("failoverAttempts", 0)
    use_topology: bool = _parameter("useTopologyForLoadBalancing", True)
    balancing_policy: str = _parameter(
        "connectionLoadBalancingPolicyClassName", "RoundRobinConnectionLoadBalancingPolicy"
    )
    refresh_timeout: int = _parameter("refreshTimeout", 10_000)
    initial_wait_timeout: int = _parameter("initialWaitTimeout", 10_000)
    ha: bool = _parameter("ha", False)

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} is at least {least}, not {getattr(self, name)}")

    @property
    def call_timeout_s(self) -> float | None:
        """Seconds that an answer may take, None without limit."""
        return None if self.call_timeout < 0 else self.call_timeout / 1000

    @property
    def call_failover_timeout_s(self) -> float | None:
        """Seconds that a call waits for a reconnect, None without limit."""
        return None if self.call_failover_timeout < 0 else self.call_failover_timeout / 1000

    def retry_delay_s(self, attempt: int) -> float:
        """Give the wait behind attempt 0, 1, 2 …, in seconds."""
        interval = float(self.retry_interval)
        # Not a power at once: of a large number of attempts it would be too large for a float.
        for _ in range(attempt):
            interval *= self.retry_interval_multiplier
            if interval >= self.max_retry_interval or self.retry_interval_multiplier <= 1:
                break
        return min(interval, self.max_retry_interval) / 1000


class ClientSettings(TypedDict, total=False):
    """Keyword arguments of clients and of `session()`, for type checkers: see ClientOptions."""

    user: str | None
    password: str | None
    client_id: str | None
    connection_ttl: int
    check_period: int
    call_timeout: int
    call_failover_timeout: int
    min_large_message_size: int
    compress_large_message: bool
    compression_level: int
    consumer_window_size: int
    producer_window_size: int
    confirmation_window_size: int
    block_on_acknowledge: bool
    block_on_durable_send: bool
    block_on_non_durable_send: bool
    auto_group: bool
    group_id: str | None
    pre_acknowledge: bool
    ack_batch_size: int
    retry_interval: int
    retry_interval_multiplier: float
    max_retry_interval: int
    reconnect_attempts: int
    initial_connect_attempts: int
    failover_attempts: int
    use_topology: bool
    balancing_policy: str
    refresh_timeout: int
    initial_wait_timeout: int
    ha: bool


_LEAST: Final = {
    "connection_ttl": -1,
    "check_period": -1,
    "min_large_message_size": 1,
    "consumer_window_size": -1,
    "producer_window_size": -1,
    "confirmation_window_size": -1,
    "ack_batch_size": 0,
    "retry_interval": 0,
    "retry_interval_multiplier": 0,
    "max_retry_interval": 0,
    "reconnect_attempts": -1,
    "initial_connect_attempts": -1,
    "failover_attempts": -1,
    "refresh_timeout": 1,
    "initial_wait_timeout": 1,
}

_BY_PARAMETER: Final = {
    item.metadata["parameter"]: item for item in dataclasses.fields(ClientOptions)
}


def is_option(parameter: str) -> bool:
    """Whether a URI's parameter is an option of the client, not one of a transport."""
    return parameter in _BY_PARAMETER


def check_parameters(names: Iterable[str], *own: str) -> None:
    """Refuse a parameter that neither this client nor Artemis's has.

    Args:
        names: in a URI.
        *own: those that its scheme has beside the client's.

    Raises:
        ValueError: one is unknown; the text asks for the one that is most like it.
    """
    known = {*_BY_PARAMETER, *CONNECTOR_PARAMETERS, *own}
    for name in names:
        if name not in known:
            raise ValueError(f"no parameter {name}{nearest(name, known, '{}')}")


def with_parameters(options: ClientOptions, parameters: dict[str, str]) -> ClientOptions:
    """Give the options with what a URI says.

    Raises:
        ValueError: a value that is none of its option's kind, or out of its range.
    """
    if not parameters:
        return options
    values: dict[str, object] = {}
    for parameter, text in parameters.items():
        item = _BY_PARAMETER[parameter]
        try:
            values[item.name] = _parse(str(item.type), text)
        except ValueError as error:
            raise ValueError(f"{parameter}={text}: {error}") from error
    return dataclasses.replace(options, **values)  # type: ignore[arg-type] # checked by _parse


def _parse(kind: str, text: str) -> object:
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError("true or false is wanted")
        return text.lower() == "true"
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    return text
