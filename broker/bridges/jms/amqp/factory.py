"""Connects by AMQP 1.0 with python-qpid-proton, which the extra `amqp` installs.

    [target]
    provider = "amqp"
    url = "amqp://localhost:5672"                 amqps://…?trustStorePath=ca.pem is TLS
    queue = "orders"                              as the broker writes it
    host = "/"                                    virtual host; the URL's host, if absent
    keeps-duplicate-ids = false                   whether the broker drops a second _AMQ_DUPL_ID

By amqps:// the URL may have parameters of the Core client's connectors: those in TLS_PARAMETERS.
Without trustStorePath the system's authorities count. Files are read at each connection.

ONCE_AND_ONLY_ONCE needs a broker that keeps duplicate ids, as a target; AMQP 1.0 has no two-phase
commit and does not name a broker for good, so it cannot be a source of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from broker.bridges.jms.errors import BridgeConfigError, ConnectionLost
from broker.bridges.jms.providers import Capabilities, SessionKind
from broker.client.aio.transport import tls_context
from broker.environment import Environment
from broker.model.transport_configuration import TransportConfiguration

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from broker.bridges.jms.amqp.session import AmqpSession
    from broker.bridges.jms.amqp.wire import Wire
    from broker.bridges.jms.providers import Credentials, Destination
    from broker.model.transport_configuration import ParameterValue

__all__ = ["AmqpConnection", "AmqpConnectionFactory", "amqp_factory"]

_PORTS: Final = {"amqp": 5672, "amqps": 5671}
_TLS: Final = "amqps"
TLS_PARAMETERS: Final = (
    *("trustStorePath", "trustStorePassword", "trustAll", "verifyHost", "sniHost"),
    *("keyStorePath", "keyStorePassword", "keyStoreAlias"),
)
_SETTINGS: Final = {"url": str, "host": str, "keeps-duplicate-ids": bool}


def amqp_factory(settings: dict[str, Any]) -> Callable[[], object]:
    """Give the connection factory factory of a side whose provider is `amqp`.

    Args:
        settings: of the side; see the module's text.

    Raises:
        BridgeConfigError: a setting is missing, not known or not valid; Proton is missing.
    """
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise BridgeConfigError(f"provider amqp has no setting {name!r}")
        if not isinstance(value, _SETTINGS[name]):
            raise BridgeConfigError(f"{name} is {value!r}; it must be {_SETTINGS[name].__name__}")
    if "url" not in settings:
        raise BridgeConfigError("url is missing, such as amqp://localhost:5672")
    made = AmqpConnectionFactory(
        settings["url"],
        virtual_host=settings.get("host"),
        keeps_duplicate_ids=settings.get("keeps-duplicate-ids", False),
    )
    return lambda: made


@dataclass(frozen=True, slots=True)
class AmqpConnectionFactory:
    """See the module's text. Two that are equal lead to the same broker.

    Attributes:
        url: amqp://HOST:PORT, or amqps://HOST:PORT?name=value for TLS.
        virtual_host: of the open frame; None is the URL's host.
        keeps_duplicate_ids: whether the broker drops a second message with the same _AMQ_DUPL_ID.
        environment: clock, ids and network.

    Raises:
        BridgeConfigError: the URL is wrong, or Proton is missing.
    """

    url: str
    virtual_host: str | None = None
    keeps_duplicate_ids: bool = False
    environment: Environment = field(default_factory=Environment, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._place()
        try:
            import proton  # noqa: F401
        except ImportError as error:
            raise BridgeConfigError(
                "provider amqp needs python-qpid-proton: pip install 'quiver-mq[amqp]'"
            ) from error

    def _place(self) -> tuple[str, int]:
        try:
            parts = urlsplit(self.url)
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise BridgeConfigError(f"url {self.place!r}: {error}") from error
        if parts.scheme not in _PORTS or not parts.hostname:
            raise BridgeConfigError(
                f"url is {self.place!r}; it must be amqp://HOST:PORT or amqps://HOST:PORT"
            )
        known = TLS_PARAMETERS if parts.scheme == _TLS else ()
        for name in self._parameters():
            if name not in known:
                raise BridgeConfigError(
                    f"url {self.place!r}: no parameter {name!r}; amqps:// has "
                    f"{', '.join(TLS_PARAMETERS)}"
                )
        return parts.hostname, port

    @property
    def place(self) -> str:
        """The URL without its parameters, which may hold passwords."""
        return self.url.partition("?")[0]

    @property
    def hint(self) -> str:
        """What a broker that closes without a word may have missed."""
        if urlsplit(self.url).scheme == _TLS:
            return "; does it want a certificate of the client (keyStorePath)?"
        return "; does the port expect TLS (amqps://)?"

    def _parameters(self) -> dict[str, str]:
        query = urlsplit(self.url).query.replace(";", "&")
        return dict(parse_qsl(query, keep_blank_values=True))

    def _tls(self) -> ssl.SSLContext | None:
        """Read the files of certificates.

        Raises:
            OSError: a file cannot be read.
            ValueError: a keystore is damaged, or has another password.
        """
        if urlsplit(self.url).scheme != _TLS:
            return None
        parameters: dict[str, ParameterValue] = {**self._parameters(), "sslEnabled": "true"}
        return tls_context(TransportConfiguration(self.place, parameters=parameters))

    async def connect(self, credentials: Credentials) -> AmqpConnection:
        """Connect; see `ConnectionFactory`."""
        from broker.bridges.jms.amqp.wire import Wire

        host, port = self._place()
        container = credentials.client_id or f"quiver-bridge-{self.environment.ids.random_uuid()}"
        try:
            wire = await self.environment.network.connect(
                lambda: Wire(self.virtual_host or host, container, credentials),
                host,
                port,
                ssl=self._tls(),
                server_hostname=self._parameters().get("sniHost"),
            )
        except (OSError, ValueError) as error:
            # The peer of a TLS handshake may go without a word.
            reason = str(error) or "closed in the TLS handshake; does the port expect TLS?"
            raise ConnectionLost(f"{self.place}: {reason}") from error
        made = AmqpConnection(self, wire)
        try:
            await made.opened()
        except BaseException:
            await wire.close()
            raise
        return made


class AmqpConnection:
    """A connection; see `Connection`.

    Args:
        factory: that made it.
        wire: its socket and engine.
    """

    def __init__(self, factory: AmqpConnectionFactory, wire: Wire) -> None:
        self._factory = factory
        self._wire = wire
        self.capabilities = Capabilities(keeps_duplicate_ids=factory.keeps_duplicate_ids)

    async def opened(self) -> None:
        """Wait until the broker has let the client in.

        Raises:
            ConnectionLost: it has not.
        """
        from proton import Endpoint

        connection = self._wire.connection
        try:
            await self._wire.until(lambda: bool(connection.state & Endpoint.REMOTE_ACTIVE))
        except ConnectionLost as error:
            hint = self._factory.hint if self._wire.is_refused else ""
            raise ConnectionLost(f"{self._factory.place}: {error}{hint}") from error

    @property
    def lost(self) -> Exception | None:
        """Why it has ended by itself."""
        return self._wire.lost

    async def session(self, kind: SessionKind) -> AmqpSession:
        """Give a session; see `Connection`."""
        from broker.bridges.jms.amqp.session import AmqpSession

        if kind is SessionKind.TWO_PHASE:
            raise BridgeConfigError("AMQP 1.0 has no two-phase commit")
        return AmqpSession(self._wire, kind, self._factory.environment)

    async def duplicate_ids_max(self, destination: Destination) -> int | None:
        """Not known by AMQP; see `Connection`."""
        return None

    async def close(self) -> None:
        """Close it; what was not acknowledged or committed is undone."""
        await self._wire.close()
