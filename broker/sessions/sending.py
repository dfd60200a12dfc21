"""What a message passes that a session sends and no cached route takes.

    prefixes ─▶ permission ─▶ marks ─▶ address made on request ─▶ flow control ─▶ post office
                                                                     └─▶ route for the next one

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.model.address import split_fqqn
from broker.routing.postoffice import Routing

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.model.routing_type import RoutingType
    from broker.ports import Management, Settings
    from broker.queues.flow_control import FlowControl
    from broker.routing.administration import Administration
    from broker.routing.cached_routes import CachedRoute
    from broker.routing.postoffice import PostOffice
    from broker.sessions.permissions import Permissions
    from broker.sessions.send_marks import SendMarks
    from broker.sessions.session_options import SessionOptions
    from broker.storage.context import OperationContext
    from broker.transactions.transaction import Transaction

__all__ = ["Sending"]

# Names are chosen by clients: what is remembered for them is dropped when there are that many.
_ROUTES_MAX: Final = 100


class Sending:
    """See the module's text.

    Args:
        user: who was authenticated; None is anonymous.
        options: how the client wants it.
        context: what the session waits by.
        permissions: of the user.
        postoffice: where messages go.
        administration: makes queues and addresses.
        flow_control: what producers may send when something is full.
        marks: what is written into messages.
        management: answers messages to the management address; None without one.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.

    Attributes:
        default_address: where a message without an address goes.
        routes: what the next message to an address need not ask again.
    """

    def __init__(
        self,
        user: str | None,
        options: SessionOptions,
        context: OperationContext,
        permissions: Permissions,
        *,
        postoffice: PostOffice,
        administration: Administration,
        flow_control: FlowControl,
        marks: SendMarks,
        management: Management | None,
        clock_ms: Callable[[], int],
        settings: Settings,
    ) -> None:
        self._user = user
        self._context = context
        self._permissions = permissions
        self._postoffice = postoffice
        self._addresses = postoffice.addresses
        self._administration = administration
        self._flow_control = flow_control
        self._marks = marks
        self._management = management
        self._clock_ms = clock_ms
        self._settings = settings
        self._prefixes = options.prefixes
        self._has_prefixes = bool(options.prefixes)
        self.default_address = options.default_address
        self.routes: dict[str | None, CachedRoute] = {}

    def prepare(
        self, address: str, routing_type: RoutingType | None
    ) -> tuple[str, RoutingType | None]:
        """Give an address without its prefix, and the routing type that it may mean.

        The address is made if it is missing and its settings say so.

        Raises:
            BrokerError: the user may not send there, or there is no such address.
        """
        plain, by_prefix = self._prefixes.split(address)
        if by_prefix is not None:
            routing_type = by_prefix
        name, queue = split_fqqn(plain)
        self._permissions.check("send", name, queue)
        self._prepare_address(name, queue, routing_type)
        return plain, routing_type

    def send(self, message: Message, tx: Transaction | None) -> Routing:
        """Send a message that has its id.

        Raises:
            BrokerError: it is refused.
            JournalError: it is too large for the storage, or that has failed.
        """
        if self._has_prefixes:
            self._prefixes.remove_from(message)
        name = message.address
        if name is None:
            name = message.address = self.default_address
            if name is None:
                raise BrokerError(ErrorCode.ADDRESS_DOES_NOT_EXIST, "the message has no address")
        elif self.default_address is None:
            self.default_address = name
        address, queue = split_fqqn(name)
        management = self._management
        if management is not None and address == management.address:
            self._permissions.check("manage", address, queue)
            management.handle(self._user, message)
            self._context.note()
            return Routing.ROUTED
        until_s = self._permissions.check("send", address, queue)
        self._marks.put(message, self._user, self._settings.match(address), self._clock_ms)
        named = self._postoffice.named_queues.targets(message)
        for other, name_there in named:
            if other != address:
                self._permissions.check("send", other, name_there)
        if not named or address not in self._addresses.by_name:
            self._prepare_address(address, queue, message.routing_type)
        if not self._flow_control.admits(address, message):
            return Routing.NO_BINDINGS
        result = self._postoffice.route(message, self._context, tx)
        if until_s is not None and queue is None and tx is None:
            self._remember_route(address, until_s)
        return result

    def _remember_route(self, address: str, until_s: float) -> None:
        known = self.routes.get(address)
        if known is not None and known.holds(self._addresses.version):
            return
        route = None
        if not self._marks.are_put(self._settings.match(address)):
            route = self._postoffice.cached_route(address, until_s)
        if route is None:
            self.routes.pop(address, None)
            return
        if len(self.routes) >= _ROUTES_MAX:
            self.routes.clear()
        self.routes[address] = route

    def _prepare_address(
        self, address: str, queue: str | None, routing_type: RoutingType | None
    ) -> None:
        found = self._addresses.by_name.get(address)
        if found is not None:
            # Nearly always: it is there, with a queue. Then nothing is made or refused, even where
            # the message gets nowhere, by its routing type or the queue that it names (as
            # PostOfficeImpl.simpleRoute).
            if self._postoffice.has_queues(address):
                return
            if found.diverts and queue is None and routing_type in found.routing_types:
                return
        if found is None:
            self._permissions.check("createAddress", address, None)
        self._administration.prepare_for_send(address, queue, routing_type)
        self._context.note()
