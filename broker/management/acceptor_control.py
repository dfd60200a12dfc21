"""An acceptor, managed: `acceptor.NAME` (AcceptorControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.config.errors import ConfigError
from broker.config.tls import server_context
from broker.management.errors import ManagementError
from broker.management.invocation import Control, operation
from broker.management.transports import ACCEPTOR_CLASS, acceptor_parameters
from broker.management.waiting import awaited
from broker.notifications import NotificationType

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.config.transport import TransportConfig
    from broker.management.access import ManagedBroker
    from broker.management.invocation import Getters
    from broker.transport.acceptor import Acceptor

__all__ = ["AcceptorControl"]


class AcceptorControl(Control):
    """See the module's text.

    Args:
        broker: that has it.
        acceptor: to manage.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self.acceptor.options.name,
        "getFactoryClassName": lambda self: ACCEPTOR_CLASS,
        "getParameters": lambda self: acceptor_parameters(self.acceptor, self._configured),
        "isStarted": lambda self: self.acceptor.is_listening,
        "getConnectionCount": lambda self: len(self.acceptor.connections),
    }

    def __init__(self, broker: ManagedBroker, acceptor: Acceptor) -> None:
        self._broker = broker
        self.acceptor = acceptor

    @property
    def _configured(self) -> TransportConfig | None:
        for one in self._broker.options.configuration.cluster.acceptors:
            if one.name == self.acceptor.options.name:
                return one
        return None

    def _tell(self, kind: NotificationType) -> None:
        options = self.acceptor.options
        self._broker.parts.notifications.acceptor(kind, options.host, self.acceptor.port)

    @operation("start")
    def start(self) -> Generator[float, None, None]:
        """Listen again, where it was stopped."""
        if not self.acceptor.is_listening:
            yield from awaited(self.acceptor.start())
            self._tell(NotificationType.ACCEPTOR_STARTED)

    @operation("stop")
    def stop(self) -> Generator[float, None, None]:
        """Listen no more and close its connections, that of the request too if it came so."""
        if self.acceptor.is_listening:
            self._tell(NotificationType.ACCEPTOR_STOPPED)
            yield from awaited(self.acceptor.stop())
            self.acceptor.close_connections()

    @operation("reload")
    def reload(self) -> Generator[float, None, None]:
        """Read certificates and keys again, for connections that come from now on."""
        configured = self._configured
        if self.acceptor.options.ssl is None or configured is None:
            return
        try:
            context = server_context(configured, self._broker.options.configuration.etc)
        except ConfigError as error:
            raise ManagementError(f"the old certificate stays: {error}") from None
        yield from awaited(self.acceptor.reload(context))
