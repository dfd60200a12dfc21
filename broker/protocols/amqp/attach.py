"""Links that a peer attaches and detaches: what each is for, and what is left of it.

    receiver of the peer    a source: queue, subscription, dynamic node     ─▶ OutgoingLink
    sender of the peer      a target: address, any (null), dynamic node     ─▶ IncomingLink
                            the coordinator of transactions                 ─▶ CoordinatorLink

The answer echoes what was asked for, as far as it is honoured. What is refused is answered without
source or target, and detached with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from proton import Condition, Link, Terminus, symbol

from broker.errors import BrokerError
from broker.protocols.amqp.conditions import INVALID_FIELD, AmqpError, of_attach
from broker.protocols.amqp.incoming import IncomingLink
from broker.protocols.amqp.nodes import Source, Subscription
from broker.protocols.amqp.outgoing import OutgoingLink
from broker.protocols.amqp.termini import (
    ends_with_link,
    filters_of,
    read_filters,
    symbols,
    value_of,
)
from broker.protocols.amqp.transactions import CAPABILITIES, CoordinatorLink

if TYPE_CHECKING:
    from proton import Receiver, Sender

    from broker.protocols.amqp.links import LinkConnection, OurLink
    from broker.protocols.amqp.peer_session import PeerSession
    from broker.protocols.peer import Sessions

__all__ = ["Attachments"]

_CONSUMER_PRIORITY: Final = "consumer-priority="
_TUNNELLING: Final = "$ACTIVEMQ_ARTEMIS_"


class Attachments:
    """See the module's text.

    Args:
        connection: of the peer.
        sessions: the broker.
    """

    def __init__(self, connection: LinkConnection, sessions: Sessions) -> None:
        self._connection = connection
        self._sessions = sessions

    def attach(self, of: PeerSession, link: Link) -> None:
        """Answer a link that the peer attaches."""
        link.snd_settle_mode = link.remote_snd_settle_mode
        # Artemis settles first whatever the peer asks for.
        link.rcv_settle_mode = link.remote_rcv_settle_mode
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        try:
            if link.name is None:
                raise AmqpError(INVALID_FIELD, "a link without a name")
            if link.is_sender:
                self._attach_outgoing(of, link)
            else:
                self._attach_incoming(of, link)
        except AmqpError as error:
            self._refuse(link, error)
        except BrokerError as error:
            self._refuse(link, of_attach(error))

    @staticmethod
    def _refuse(link: Link, error: AmqpError) -> None:
        """Answer without source or target, then detach."""
        if link.is_sender:
            link.source.type = Terminus.UNSPECIFIED
        else:
            link.target.type = Terminus.UNSPECIFIED
        link.open()
        link.condition = Condition(error.condition, error.text)
        link.close()

    # --- senders of the peer ------------------------------------------------------------------

    def _attach_incoming(self, of: PeerSession, link: Receiver) -> None:
        target = link.remote_target
        if target.type == Terminus.COORDINATOR:
            self._attach_coordinator(of, link)
            return
        address = target.address or None
        capabilities = symbols(value_of(target.capabilities))
        routing_type = None
        if target.dynamic:
            address, routing_type = of.nodes.dynamic_target(capabilities)
            link.target.address = address
            link.target.dynamic = True
        elif address is not None:
            if address.startswith(_TUNNELLING):
                raise AmqpError("amqp:not-implemented", f"{address} is not spoken here")
            routing_type = of.nodes.target(address, capabilities)
        producer = self._sessions.new_producer(address)
        ours = IncomingLink(
            self._connection, of.session, link, of.nodes, address, routing_type, producer, of.large
        )
        of.session.producers[producer.number] = producer
        of.links[link] = ours
        link.open()
        ours.top_up()

    def _attach_coordinator(self, of: PeerSession, link: Receiver) -> None:
        link.target.type = Terminus.COORDINATOR
        link.rcv_settle_mode = Link.RCV_FIRST
        capabilities = link.target.capabilities
        capabilities.clear()
        _put_symbols(capabilities, CAPABILITIES)
        ours = CoordinatorLink(
            self._connection, of.session, link, self._connection.parameters["amqpCredits"]
        )
        of.links[link] = ours
        link.open()
        ours.top_up()

    # --- receivers of the peer ----------------------------------------------------------------

    def _attach_outgoing(self, of: PeerSession, link: Sender) -> None:
        remote = link.remote_source
        found, is_browser, address = self._source(of, link)
        if remote.type != Terminus.UNSPECIFIED:
            link.source.address = address if remote.dynamic else remote.address
        is_settled = link.remote_snd_settle_mode == Link.SND_SETTLED
        ours = OutgoingLink(self._connection, of.session, link, found, is_settled=is_settled)
        try:
            ours.begin(is_browser=is_browser, priority=_priority(link, address))
        except BrokerError as error:
            if found.is_temporary:
                of.session.administration.delete_queue(found.queue)
            raise BrokerError(
                error.code, f"AMQ119005: error creating consumer, {error.text}"
            ) from error
        of.links[link] = ours
        link.open()

    def _source(self, of: PeerSession, link: Sender) -> tuple[Source, bool, str]:
        """Give where a link takes from, whether it only looks, and the address.

        Raises:
            AmqpError: it is refused.
            BrokerError: likewise.
        """
        remote = link.remote_source
        if remote.type == Terminus.UNSPECIFIED:
            return self._known(of, link)
        if remote.dynamic:
            name = of.nodes.dynamic_source()
            return Source(name, is_temporary=True), False, name
        address = remote.address
        if not address:
            raise AmqpError(INVALID_FIELD, "a source has no address, and is not dynamic")
        filters = read_filters(remote.filter)
        capabilities = symbols(value_of(remote.capabilities))
        name = address.partition("?")[0] if _CONSUMER_PRIORITY in address else address
        found = of.nodes.source(
            name,
            capabilities,
            filters,
            Subscription(
                link.name,
                remote.durability in (Terminus.CONFIGURATION, Terminus.DELIVERIES),
                "shared" in capabilities,
                "global" in capabilities,
            ),
        )
        honoured = link.source.filter
        honoured.clear()
        kept = {
            key: value
            for key, value in filters.honoured.items()
            if found.is_subscription or not filters.is_no_local or "local" not in str(key)
        }
        if kept:
            honoured.put_object(kept)
        if filters.is_no_local and found.is_subscription:
            self._connection.leaves_out_local = True
        copies = remote.distribution_mode == Terminus.DIST_MODE_COPY
        return found, copies and not found.is_subscription, address

    def _known(self, of: PeerSession, link: Sender) -> tuple[Source, bool, str]:
        """Give the subscription that a link without a source names."""
        queue = of.nodes.known(link.name)
        source = link.source
        source.type = Terminus.SOURCE
        source.address = queue.name
        source.durability = Terminus.DELIVERIES
        source.expiry_policy = Terminus.EXPIRE_NEVER
        source.distribution_mode = Terminus.DIST_MODE_COPY
        source.capabilities.clear()
        _put_symbols(source.capabilities, ("topic",))
        selector, is_no_local = of.nodes.filters_of(queue.binding.filter or None)
        honoured = filters_of(selector, is_no_local=is_no_local)
        source.filter.clear()
        if honoured:
            source.filter.put_object(honoured)
        if is_no_local:
            self._connection.leaves_out_local = True
        return Source(queue.name, is_subscription=True, is_durable=True), False, queue.name

    # --- the end ------------------------------------------------------------------------------

    def detach(self, of: PeerSession, link: Link, *, is_closing: bool) -> None:
        """The peer detaches a link, or closes it: then what it made goes, too."""
        ours = of.links.pop(link, None)
        if ours is not None:
            ends = is_closing or ends_with_link(link.remote_source)
            self.close(of, ours, removes=ends)
            if is_closing and link.remote_target.dynamic and link.is_receiver:
                self._remove(of, link.target.address)
        if is_closing:
            link.close()
        else:
            link.detach()
        link.free()

    def close(self, of: PeerSession, ours: OurLink, *, removes: bool = False) -> None:
        """End our side of a link; `removes` what it made, unless others use it."""
        ours.close()
        if not isinstance(ours, OutgoingLink):
            return
        consumer = ours.consumer
        if not consumer.is_closed:
            of.session.close_consumer(consumer.consumer_id)
        source = ours.source
        if source.is_temporary or (removes and source.is_durable):
            self._remove(of, source.queue)

    @staticmethod
    def _remove(of: PeerSession, name: str | None) -> None:
        if name is None:
            return
        administration = of.session.administration
        queue = administration.query_queue(name).queue
        if queue is None or queue.consumer_count:
            return
        administration.delete_queue(name)

    def session_ends(self, of: PeerSession) -> None:
        """What the session's links made for themselves alone goes with it."""
        for ours in of.links.values():
            if isinstance(ours, OutgoingLink) and ours.source.is_temporary:
                consumer = ours.consumer
                if not consumer.is_closed:
                    of.session.close_consumer(consumer.consumer_id)
                self._remove(of, ours.source.queue)


def _priority(link: Sender, address: str) -> int:
    """Give the consumer's priority, by a property of the link or a parameter of the address."""
    found = link.remote_properties
    if isinstance(found, dict):
        value = found.get(symbol("priority"))
        if isinstance(value, int) and not isinstance(value, bool):
            return max(-(2**31), min(int(value), 2**31 - 1))
    _, given, text = address.partition(_CONSUMER_PRIORITY)
    text = text.partition("&")[0]
    return int(text) if given and text.lstrip("-").isdigit() and len(text) < 10 else 0


def _put_symbols(data: Any, names: tuple[str, ...]) -> None:  # noqa: ANN401 - the engine's.
    data.put_array(False, type(data).SYMBOL)
    data.enter()
    for name in names:
        data.put_symbol(name)
    data.exit()
