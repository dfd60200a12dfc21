"""What carries broadcasts: UDP multicast, or another endpoint that is found by entry point.

    [project.entry-points."quiver.broker.discovery_endpoints"]
    shared-folder = "broker.discovery.shared_folder:SHARED_FOLDER"

An endpoint has the role of JGroups in Artemis: a way to hear of each other where the network has
no multicast. Any distribution that is installed can bring one. The entry point names an
`EndpointFactory`; an endpoint of it opens a broadcaster, a receiver or both:

    broadcast group ─▶ broadcaster.broadcast(datagram) ┄┄▶ received(datagram) ─▶ discovery group
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from broker.entry_points import installed
from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.environment import Environment
    from broker.settings.value_types import ValueType

__all__ = [
    "GROUP",
    "JGROUPS_REFUSED",
    "Broadcaster",
    "Endpoint",
    "EndpointFactory",
    "EndpointParameter",
    "Receiver",
    "endpoint_named",
    "installed_endpoints",
    "read_endpoint_parameters",
]

GROUP: Final = "quiver.broker.discovery_endpoints"
_MEMBERS: Final = ("name", "broadcasts", "parameters", "endpoint")
JGROUPS_REFUSED: Final = "JGroups is a library of Java and not part of this broker"
"""Begins the error where JGroups is configured; the names of the endpoints follow."""


class Broadcaster(Protocol):
    """Sends the datagrams of one broadcast group."""

    async def broadcast(self, data: bytes) -> None:
        """Send one.

        Raises:
            OSError: it could not be sent; the next one may.
        """

    async def close(self) -> None:
        """Send no more, and take back what others could still read. Idempotent."""


class Receiver(Protocol):
    """Hears datagrams until it is closed."""

    def close(self) -> None:
        """Hear no more. Idempotent."""


class Endpoint(Protocol):
    """A way on which datagrams go from brokers to others."""

    async def open_broadcaster(self) -> Broadcaster:
        """Begin to send.

        Raises:
            OSError: it is not possible on this machine.
        """

    async def open_receiver(self, received: Callable[[bytes], None]) -> Receiver:
        """Begin to hear.

        Args:
            received: called with each datagram, in the event loop's thread.

        Raises:
            OSError: it is not possible on this machine.
        """


class EndpointParameter(NamedTuple):
    """A property of `<endpoint>` in broker.xml, or a parameter of a `discovery://` URI.

    Attributes:
        kind: its type and range.
        default: where it is not given; None has none.
        is_required: it has to be given.
    """

    kind: ValueType[Any]
    default: object = None
    is_required: bool = False


class EndpointFactory(Protocol):
    """What an entry point names: all that is known of a kind of endpoint before one is opened."""

    @property
    def name(self) -> str:
        """As in broker.xml, and the entry point's name."""

    @property
    def broadcasts(self) -> bool:
        """Whether broadcast groups can use it; else brokers are made known by other means."""

    @property
    def parameters(self) -> Mapping[str, EndpointParameter]:
        """By name."""

    def endpoint(self, values: Mapping[str, Any], environment: Environment) -> Endpoint:
        """Make one; nothing is opened yet.

        Args:
            values: of all parameters, by name.
            environment: clock, network, chance of the process.

        Raises:
            ValueError: the values do not fit together.
        """


def installed_endpoints() -> dict[str, EndpointFactory]:
    """Give the endpoints that are installed, by name and in the order of the names.

    Raises:
        BrokerError: an entry point cannot be loaded, lacks a member, or has the name of another;
            the text names it.
    """
    return installed(GROUP, _MEMBERS, "an endpoint")


def _broken(text: str) -> BrokerError:
    return BrokerError(ErrorCode.ILLEGAL_STATE, text)


def endpoint_named(name: str) -> EndpointFactory:
    """Give the endpoint of a name.

    Raises:
        ValueError: there is none; it names those that are installed.
        BrokerError: as `installed_endpoints()`.
    """
    installed = installed_endpoints()
    if name not in installed:
        raise ValueError(f"no endpoint {name!r}; installed are {', '.join(installed) or 'none'}")
    return installed[name]


def read_endpoint_parameters(factory: EndpointFactory, texts: Mapping[str, str]) -> dict[str, Any]:
    """Give the value of each parameter of an endpoint.

    Raises:
        ValueError: one is unknown, missing, or not a value of its kind; it names that.
    """
    unknown = sorted(texts.keys() - factory.parameters.keys())
    if unknown:
        known = ", ".join(factory.parameters)
        raise ValueError(f"endpoint {factory.name} has no parameter {unknown[0]}; it has {known}")
    values: dict[str, Any] = {}
    for name, parameter in factory.parameters.items():
        if name not in texts:
            if parameter.is_required:
                raise ValueError(f"endpoint {factory.name} needs {name}")
            values[name] = parameter.default
            continue
        try:
            values[name] = parameter.kind.parse(texts[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return values
