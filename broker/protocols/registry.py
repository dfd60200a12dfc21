"""The protocols that a broker can speak, found by entry point.

    [project.entry-points."quiver.broker.protocols"]
    CORE = "broker.protocols.core.factory:CORE"

A protocol is a folder and one such line in any distribution that is installed. The line names a
`ProtocolManagerFactory`: what its first bytes are, which parameters its acceptors take, what speaks
it. The broker makes one manager of each, and that makes a handler for each connection:

    factory.detect(first bytes) ─▶ manager.connect(peer) ─▶ handler.receive(bytes) …

A handler does no I/O. It calls the session's API, and nothing below it.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from broker.entry_points import installed
from broker.errors import BrokerError, ErrorCode
from broker.settings.value_types import TEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Handler, Peer, Sessions
    from broker.settings.value_types import ValueType

__all__ = [
    "GROUP",
    "PREFIXES",
    "AcceptorParameter",
    "Detection",
    "ProtocolManager",
    "ProtocolManagerFactory",
    "WebSocketUse",
    "connected_elsewhere",
    "installed_protocols",
    "read_parameters",
    "scan_sessions",
    "unavailable",
    "web_socket_use",
]

GROUP: Final = "quiver.broker.protocols"
# What a factory has to have, to be told of early.
_MEMBERS: Final = ("name", "detection_size", "preamble_size", "parameters", "detect", "manager")


class Detection(enum.Enum):
    """Whether a connection speaks a protocol, by its first bytes."""

    YES = enum.auto()
    NO = enum.auto()
    MORE = enum.auto()
    """It may: more bytes are needed."""


class AcceptorParameter(NamedTuple):
    """A parameter in an acceptor's URI.

    Attributes:
        kind: its type and range.
        default: where the URI does not have it.
        meaning: what it does, with the unit; for the reference manual.
    """

    kind: ValueType[Any]
    default: object
    meaning: str = ""


class WebSocketUse(NamedTuple):
    """How a protocol is spoken inside a WebSocket.

    Attributes:
        subprotocols: names that clients offer in Sec-WebSocket-Protocol.
        takes_text: its bytes may come and go in messages of text, too.
    """

    subprotocols: tuple[str, ...]
    takes_text: bool


PREFIXES: Final = {
    "anycastPrefix": AcceptorParameter(
        TEXTS, (), "Prefixes of names, by commas: what follows is an anycast address."
    ),
    "multicastPrefix": AcceptorParameter(
        TEXTS, (), "Prefixes of names, by commas: what follows is a multicast address."
    ),
}
"""Parameters of every protocol whose clients may put such a prefix before names; for
`broker.sessions.prefixes`."""


class ProtocolManager(Protocol):
    """What speaks one protocol for a broker."""

    def connect(self, peer: Peer, parameters: Mapping[str, Any]) -> Handler:
        """Make the handler of a connection whose first bytes were this protocol's.

        Args:
            peer: its socket.
            parameters: of its acceptor, all that the factory has, by name.
        """

    def check(self) -> None:
        """From time to time, for what belongs to no open connection: lost sessions, say."""

    # `scan_sessions()` is had by those whose sessions outlive connections, and expire;
    # `connected_elsewhere(client_id, at_ms)` by those where an id is connected once in a cluster.


class ProtocolManagerFactory(Protocol):
    """What an entry point names: all that is known of a protocol before it is spoken."""

    @property
    def name(self) -> str:
        """As in an acceptor's `protocols`, and the entry point's name: CORE, AMQP."""

    @property
    def detection_size(self) -> int:
        """Bytes that detect() needs at most."""

    @property
    def preamble_size(self) -> int:
        """Bytes at the beginning that the handler is not given: they say the protocol only."""

    @property
    def parameters(self) -> Mapping[str, AcceptorParameter]:
        """Of its acceptors, by name, beside those that all acceptors have."""

    # `web_socket: WebSocketUse` is had by those that are spoken inside WebSockets, too.

    def detect(self, first: bytes) -> Detection:
        """Say whether a connection that begins with these bytes speaks it.

        Args:
            first: 1 to `detection_size` bytes. MORE to as many as that is taken for NO.
        """

    def manager(self, sessions: Sessions) -> ProtocolManager:
        """Give what speaks it for a broker."""


def web_socket_use(factory: ProtocolManagerFactory) -> WebSocketUse:
    """Say how a protocol is spoken inside a WebSocket; without a subprotocol where it is not."""
    use = getattr(factory, "web_socket", None)
    return use if isinstance(use, WebSocketUse) else WebSocketUse((), takes_text=False)


def scan_sessions(manager: ProtocolManager) -> None:
    """Let the sessions of a protocol expire; nothing where they end with their connections."""
    scan = getattr(manager, "scan_sessions", None)
    if scan is not None:
        scan()


def connected_elsewhere(manager: ProtocolManager, client_id: str, at_ms: int) -> None:
    """A client has come to another broker; nothing where an id may be connected more than once."""
    tell = getattr(manager, "connected_elsewhere", None)
    if tell is not None:
        tell(client_id, at_ms)


def installed_protocols() -> dict[str, ProtocolManagerFactory]:
    """Give the protocols that are installed, by name and in the order of the names.

    Raises:
        BrokerError: an entry point cannot be loaded, is not a protocol, or has the name of another;
            or there is none at all. The text names the entry point.
    """
    found = installed(GROUP, _MEMBERS, "a protocol")
    if not found:
        raise _broken(f"no entry point {GROUP} is installed: install the distribution again")
    return found


def unavailable(factory: ProtocolManagerFactory) -> str | None:
    """Give why a protocol cannot be spoken though it is installed; None where it can.

    A factory may have an attribute of that name: a package of Python that it needs is missing, say.
    """
    found: str | None = getattr(factory, "unavailable", None)
    return found


def _broken(text: str) -> BrokerError:
    return BrokerError(ErrorCode.ILLEGAL_STATE, text)


def read_parameters(factory: ProtocolManagerFactory, texts: Mapping[str, str]) -> dict[str, Any]:
    """Give the value of each parameter of a protocol.

    Args:
        factory: of the protocol.
        texts: parameters of an acceptor, by name; those of others are left out.

    Raises:
        ValueError: a text is not a value of its parameter; it names that.
    """
    values: dict[str, Any] = {}
    for name, parameter in factory.parameters.items():
        try:
            values[name] = parameter.kind.parse(texts[name]) if name in texts else parameter.default
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return values
