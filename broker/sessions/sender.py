"""One end of a session that sends: to one address, or to the one that each message names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.model.routing_type import RoutingType
    from broker.routing.postoffice import Routing
    from broker.storage.context import After

__all__ = ["Sender"]


class SendingSession(Protocol):
    """What a sender needs of its session."""

    def send(self, message: Message, done: After, *arguments: object) -> Routing:
        """Send a message.

        Raises:
            BrokerError: it is refused.
            JournalError: the storage has failed.
        """


class Sender:
    """See the module's text; `Session.create_sender()` makes one.

    Args:
        session: of the client.
        address: where all messages go; None is an anonymous sender.
        routing_type: of all messages; None leaves each its own.

    Attributes:
        address: as given.
    """

    __slots__ = ("_routing_type", "_session", "address")

    def __init__(
        self, session: SendingSession, address: str | None, routing_type: RoutingType | None
    ) -> None:
        self._session = session
        self.address = address
        self._routing_type = routing_type

    def send(self, message: Message, done: After, *arguments: object) -> Routing:
        """Send a message; `done(error, *arguments)` once it is durable, as far as it is to be.

        Raises:
            BrokerError: as for Session.send(); or the sender is anonymous, and the message has no
                address.
            JournalError: as for Session.send().
        """
        if self.address is not None:
            if message.address != self.address:
                message.address = self.address
        elif message.address is None:
            raise BrokerError(
                ErrorCode.ADDRESS_DOES_NOT_EXIST, "a message of an anonymous sender has no address"
            )
        if self._routing_type is not None and message.routing_type is not self._routing_type:
            message.routing_type = self._routing_type
        return self._session.send(message, done, *arguments)
