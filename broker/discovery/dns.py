"""Discovery by DNS: every address that a name stands for is a broker.

For platforms that keep such a name themselves, as Kubernetes does for a headless service. Brokers
need no broadcast group. All listen on the same port, with the same parameters; A and AAAA records
are asked for, every `period`. An address that the name stands for no more is silent, and its entry
ends after refresh-timeout. An entry's node id is made of address and port: which broker it is, the
first connection tells.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from broker.discovery.datagram import Broadcast, encode_broadcast
from broker.discovery.endpoints import EndpointParameter
from broker.model.transport_configuration import TransportConfiguration
from broker.settings.value_types import INT, TEXT, at_least, between

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.discovery.endpoints import Broadcaster, Endpoint, Receiver
    from broker.environment import Environment
    from broker.settings.value_types import ValueType

__all__ = ["DNS", "DnsEndpoint"]

log = logging.getLogger("broker")

_PORT: Final = 61616
# Shorter than the default refresh-timeout, 10 s: two answers may be lost.
_PERIOD_MS: Final = 3000
_POSITIVE: Final[ValueType[int]] = at_least(INT, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsEndpoint:
    """A name.

    Attributes:
        host: the name.
        port: that the brokers listen on.
        period_ms: ms between two questions.
        connector_parameters: of every broker's connector, such as `sslEnabled`.
    """

    host: str
    port: int = _PORT
    period_ms: int = _PERIOD_MS
    connector_parameters: Mapping[str, str] = field(default_factory=dict)

    async def open_broadcaster(self) -> Broadcaster:
        """Refuse: names are made known elsewhere.

        Raises:
            OSError: always.
        """
        raise OSError("DNS has no broadcasts: the platform keeps the name")

    async def open_receiver(self, received: Callable[[bytes], None]) -> Receiver:
        """Ask from now on."""
        return _Resolver(self, received)

    def datagram(self, address: str) -> bytes:
        """Give what the broker at this address would broadcast."""
        place = f"{address}:{self.port}"
        connector = TransportConfiguration(
            place,
            parameters={**self.connector_parameters, "host": address, "port": str(self.port)},
        )
        return encode_broadcast(Broadcast(f"dns:{place}", f"dns:{place}", (connector,)))


class _Resolver:
    """Asks until it is closed."""

    def __init__(self, endpoint: DnsEndpoint, received: Callable[[bytes], None]) -> None:
        self._endpoint = endpoint
        self._received = received
        self._task = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        endpoint = self._endpoint
        loop = asyncio.get_running_loop()
        has_failed = False
        while True:
            try:
                found = await loop.getaddrinfo(
                    endpoint.host, endpoint.port, type=socket.SOCK_STREAM
                )
                has_failed = False
            except OSError as error:
                if not has_failed:
                    log.warning("discovery: the name %s is unknown: %s", endpoint.host, error)
                has_failed = True
                found = []
            for address in dict.fromkeys(str(one[4][0]) for one in found):
                self._received(endpoint.datagram(address))
            await asyncio.sleep(endpoint.period_ms / 1000)

    def close(self) -> None:
        """Ask no more."""
        self._task.cancel()


class _Dns:
    """An `EndpointFactory`."""

    name = "dns"
    broadcasts = False
    parameters: Mapping[str, EndpointParameter] = {
        "host": EndpointParameter(TEXT, is_required=True),
        "port": EndpointParameter(between(INT, 1, 65535), _PORT),
        "period": EndpointParameter(_POSITIVE, _PERIOD_MS),
        "connectorParameters": EndpointParameter(TEXT, ""),
    }

    def endpoint(self, values: Mapping[str, Any], environment: Environment) -> Endpoint:
        """Make one."""
        del environment
        query = str(values["connectorParameters"]).replace(";", "&")
        return DnsEndpoint(
            host=values["host"],
            port=values["port"],
            period_ms=values["period"],
            connector_parameters=dict(parse_qsl(query, keep_blank_values=True)),
        )


DNS = _Dns()
