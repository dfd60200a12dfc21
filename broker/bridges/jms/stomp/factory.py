"""Connects by STOMP 1.2 with stomp.py, which the extra `stomp` installs.

    [target]
    provider = "stomp"
    url = "stomp://localhost:61613"
    queue = "/queue/orders"          as the broker writes it
    host = "/"                       virtual host; the URL's, if absent
    keeps-duplicate-ids = false      whether the broker drops a second _AMQ_DUPL_ID
    subscribe-headers = {}           more headers of SUBSCRIBE, such as a prefetch

ONCE_AND_ONLY_ONCE needs a broker that keeps duplicate ids, as a target; STOMP has no two-phase
commit and does not name a broker for good, so it cannot be a source of it.
"""

from __future__ import annotations

import itertools
import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from broker.bridges.jms.errors import BridgeConfigError, ConnectionLost
from broker.bridges.jms.providers import Capabilities, DestinationKind, SessionKind
from broker.bridges.jms.stomp.conversion import frame_of, message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import Credentials, Destination, Subscription

__all__ = ["StompConnectionFactory", "stomp_factory"]

PORT: Final = 61613
_ANSWER_S: Final = 30.0  # How long the broker may take for a receipt.
_HEARTBEAT_MS: Final = 10_000
_SETTINGS: Final = {
    "url": str,
    "host": str,
    "keeps-duplicate-ids": bool,
    "subscribe-headers": dict,
}


def stomp_factory(settings: dict[str, Any]) -> Callable[[], object]:
    """Give the connection factory factory of a side whose provider is `stomp`.

    Args:
        settings: of the side; see the module's text.

    Raises:
        BridgeConfigError: a setting is missing, not known or not valid; stomp.py is missing.
    """
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise BridgeConfigError(f"provider stomp has no setting {name!r}")
        if not isinstance(value, _SETTINGS[name]):
            raise BridgeConfigError(f"{name} is {value!r}; it must be {_SETTINGS[name].__name__}")
    if "url" not in settings:
        raise BridgeConfigError("url is missing, such as stomp://localhost:61613")
    made = StompConnectionFactory(
        settings["url"],
        virtual_host=settings.get("host"),
        keeps_duplicate_ids=settings.get("keeps-duplicate-ids", False),
        subscribe_headers=settings.get("subscribe-headers", {}),
    )
    return lambda: made


@dataclass(frozen=True, slots=True)
class StompConnectionFactory:
    """See the module's text. A `BlockingConnectionFactory`.

    Attributes:
        url: stomp://HOST:PORT.
        virtual_host: of CONNECT; None is the URL's host.
        keeps_duplicate_ids: whether the broker drops a second message with the same _AMQ_DUPL_ID.
        subscribe_headers: more headers of SUBSCRIBE.

    Raises:
        BridgeConfigError: the URL is wrong, or stomp.py is missing.
    """

    url: str
    virtual_host: str | None = None
    keeps_duplicate_ids: bool = False
    subscribe_headers: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _stomp()
        self._place()

    def _place(self) -> tuple[str, int]:
        try:
            parts = urlsplit(self.url)
            port = parts.port or PORT
        except ValueError as error:
            raise BridgeConfigError(f"url {self.url!r}: {error}") from error
        if parts.scheme != "stomp" or not parts.hostname:
            raise BridgeConfigError(f"url is {self.url!r}; it must be stomp://HOST:PORT")
        return parts.hostname, port

    def connect(self, credentials: Credentials) -> StompConnection:
        """Connect; see `ConnectionFactory`."""
        return StompConnection(self, self._place(), credentials)


def _stomp() -> Any:
    try:
        import stomp
    except ImportError as error:
        raise BridgeConfigError(
            "provider stomp needs stomp.py: pip install 'quiver-mq[stomp]'"
        ) from error
    return stomp


class StompConnection:
    """A connection; see `Connection`. Used by one thread; stomp.py's own thread receives.

    Args:
        factory: that made it.
        place: host and port.
        credentials: who the bridge is.
    """

    def __init__(
        self, factory: StompConnectionFactory, place: tuple[str, int], credentials: Credentials
    ) -> None:
        self.factory = factory
        self.lost: Exception | None = None
        self._receipts: dict[str, threading.Event] = {}
        self._numbers = itertools.count(1)
        self._subscriptions: dict[str, queue.SimpleQueue[tuple[Mapping[str, str], bytes]]] = {}
        self.wire = _stomp().Connection12(
            [place],
            vhost=factory.virtual_host or place[0],
            heartbeats=(_HEARTBEAT_MS, _HEARTBEAT_MS),
            reconnect_attempts_max=1,
            auto_decode=False,
            auto_content_length=False,
        )
        # Not a subclass of stomp.py's listener, which mypy cannot see: it calls what is there.
        self.wire.set_listener("", _Listener(self))
        headers = {} if credentials.client_id is None else {"client-id": credentials.client_id}
        try:
            self.wire.connect(
                credentials.user_name, credentials.password, wait=True, headers=headers
            )
        except Exception as error:
            raise ConnectionLost(
                f"{factory.url}: {self._reason() or str(error) or type(error).__name__}"
            ) from error
        self.capabilities = Capabilities(keeps_duplicate_ids=factory.keeps_duplicate_ids)

    def _reason(self) -> Exception | None:
        """What stomp.py's thread was told meanwhile."""
        return self.lost

    # --- from stomp.py's thread ---------------------------------------------------------------

    def received(self, headers: Mapping[str, str], body: bytes) -> None:
        """Take a message."""
        waiting = self._subscriptions.get(headers.get("subscription", ""))
        if waiting is not None:
            waiting.put((headers, body))

    def confirmed(self, receipt: str) -> None:
        """Take a receipt."""
        event = self._receipts.get(receipt)
        if event is not None:
            event.set()

    def failed(self, error: Exception) -> None:
        """The connection is over, or the broker has said why it will be."""
        if self.lost is None:
            self.lost = error
        for event in tuple(self._receipts.values()):
            event.set()

    # --- from the bridge's thread -------------------------------------------------------------

    def check(self) -> None:
        """See that the connection works.

        Raises:
            ConnectionLost: it does not.
        """
        if self.lost is not None:
            raise ConnectionLost(str(self.lost))

    def expect(self) -> str:
        """Give a receipt to ask for."""
        receipt = str(next(self._numbers))
        self._receipts[receipt] = threading.Event()
        return receipt

    def wait(self, receipt: str) -> None:
        """Wait until the broker has done what asked for this receipt.

        Raises:
            ConnectionLost: it has not.
        """
        came = self._receipts[receipt].wait(_ANSWER_S)
        del self._receipts[receipt]
        self.check()
        if not came:
            raise ConnectionLost(f"no receipt within {_ANSWER_S:.0f} s")

    def subscribe(self, headers: dict[str, str], destination: str) -> tuple[str, Any]:
        """Begin to receive; the subscription's id, and where its messages come."""
        subscription = str(next(self._numbers))
        waiting: queue.SimpleQueue[tuple[Mapping[str, str], bytes]] = queue.SimpleQueue()
        self._subscriptions[subscription] = waiting
        receipt = self.expect()
        self.wire.subscribe(
            destination, subscription, ack="client", headers={**headers, "receipt": receipt}
        )
        self.wait(receipt)
        return subscription, waiting

    def session(self, kind: SessionKind) -> StompSession:
        """Give a session; see `Connection`."""
        if kind is SessionKind.TWO_PHASE:
            raise BridgeConfigError("STOMP has no two-phase commit")
        transaction = f"t{next(self._numbers)}" if kind is SessionKind.TRANSACTED else None
        return StompSession(self, transaction)

    def duplicate_ids_max(self, destination: Destination) -> int | None:
        """Not known by STOMP; see `Connection`."""
        return None

    def close(self) -> None:
        """Disconnect; what was not acknowledged or committed is undone."""
        if self.lost is None:
            self.lost = ConnectionLost("closed")
        self.wire.disconnect()


class _Listener:
    """What stomp.py calls."""

    def __init__(self, connection: StompConnection) -> None:
        self._connection = connection

    def on_message(self, frame: Any) -> None:
        body = frame.body
        self._connection.received(frame.headers, body if isinstance(body, bytes) else body.encode())

    def on_receipt(self, frame: Any) -> None:
        self._connection.confirmed(frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        body = frame.body
        text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
        # Some say in the body what the header says.
        said = dict.fromkeys(one.strip() for one in (frame.headers.get("message", ""), text))
        self._connection.failed(ConnectionLost(f"the broker says: {' '.join(said)}".strip()))

    def on_disconnected(self) -> None:
        self._connection.failed(ConnectionLost("the connection is lost"))

    def on_heartbeat_timeout(self) -> None:
        self._connection.failed(ConnectionLost("no heartbeat of the broker"))


class StompSession:
    """A session; see `Session`.

    Args:
        connection: that it belongs to.
        transaction: name of its transactions; None has none.
    """

    def __init__(self, connection: StompConnection, transaction: str | None) -> None:
        self._connection = connection
        self._transaction = transaction
        self._is_begun = False
        self._receivers: list[StompReceiver] = []

    def receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> StompReceiver:
        """Subscribe; messages are acknowledged all up to the last one."""
        headers = {
            str(name): str(text)
            for name, text in self._connection.factory.subscribe_headers.items()
        }
        if selector is not None:
            headers["selector"] = selector
        if subscription is not None:
            # Artemis's name, and ActiveMQ's.
            headers["durable-subscription-name"] = subscription.name
            headers["activemq.subscriptionName"] = subscription.name
        if destination.kind is DestinationKind.QUEUE:
            headers["subscription-type"] = "ANYCAST"
        made = StompReceiver(
            self._connection, *self._connection.subscribe(headers, destination.name)
        )
        self._receivers.append(made)
        return made

    def sender(self, destination: Destination) -> StompSender:
        """Give what sends there."""
        return StompSender(self._connection, destination, self.begin)

    def begin(self) -> dict[str, str]:
        """Begin the transaction, if there is one to begin; the headers of what belongs to it."""
        if self._transaction is None:
            return {}
        if not self._is_begun:
            self._connection.check()
            self._connection.wire.begin(self._transaction)
            self._is_begun = True
        return {"transaction": self._transaction}

    def stop(self) -> None:
        """Nothing: what the broker sends ahead waits here."""

    def start(self) -> None:
        """Nothing; see `stop()`."""

    def acknowledge(self) -> None:
        """Acknowledge all that was received; returns once the broker has."""
        for receiver in self._receivers:
            receiver.acknowledge()

    def commit(self) -> None:
        """Commit what was sent and received."""
        headers = self.begin()
        for receiver in self._receivers:
            receiver.acknowledge(headers["transaction"])
        receipt = self._connection.expect()
        self._connection.wire.commit(self._transaction, headers={"receipt": receipt})
        self._is_begun = False
        self._connection.wait(receipt)

    def close(self) -> None:
        """Nothing: the connection's end undoes it."""


class StompReceiver:
    """Receives from one subscription.

    Args:
        connection: that it belongs to.
        subscription: its id.
        waiting: messages that have come.
    """

    def __init__(
        self,
        connection: StompConnection,
        subscription: str,
        waiting: queue.SimpleQueue[tuple[Mapping[str, str], bytes]],
    ) -> None:
        self._connection = connection
        self._subscription = subscription
        self._waiting = waiting
        self._last: str | None = None

    def receive(self, timeout_s: float) -> JMSMessage | None:
        """Give the next message."""
        try:
            headers, body = self._waiting.get(timeout=max(timeout_s, 0.001))
        except queue.Empty:
            self._connection.check()
            return None
        self._last = headers["ack"]
        return message_of(headers, body)

    def acknowledge(self, transaction: str | None = None) -> None:
        """Acknowledge all that was received.

        Outside of a transaction it returns once the broker has.
        """
        last, self._last = self._last, None
        if last is None:
            return
        if transaction is not None:
            self._connection.wire.ack(last, transaction)
            return
        receipt = self._connection.expect()
        self._connection.wire.ack(last, receipt=receipt)
        self._connection.wait(receipt)


class StompSender:
    """Sends to one destination.

    Args:
        connection: that it belongs to.
        destination: where to.
        begin: begins a transaction; gives its headers.
    """

    def __init__(
        self,
        connection: StompConnection,
        destination: Destination,
        begin: Callable[[], dict[str, str]],
    ) -> None:
        self._connection = connection
        self._destination = destination
        self._begin = begin
        self._unconfirmed: list[str] = []

    def send(self, message: JMSMessage) -> None:
        """Send; outside of a transaction each has a receipt, as its confirmation."""
        self._connection.check()
        headers, body = frame_of(message)
        transaction = self._begin()
        headers |= transaction
        is_queue = self._destination.kind is DestinationKind.QUEUE
        headers["destination-type"] = "ANYCAST" if is_queue else "MULTICAST"
        if not transaction:
            receipt = self._connection.expect()
            self._unconfirmed.append(receipt)
            headers["receipt"] = receipt
        self._connection.wire.send(self._destination.name, body, headers=headers)

    def confirmed(self) -> None:
        """Wait for the receipts."""
        waiting, self._unconfirmed = self._unconfirmed, []
        for receipt in waiting:
            self._connection.wait(receipt)
