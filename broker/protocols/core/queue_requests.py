"""Requests about queues and addresses: created, deleted, asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.routing_type import RoutingType
from broker.protocols.core import packet_queue as queues
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.answers import Answers
    from broker.protocols.core.packet import Packet
    from broker.sessions.queries import QueueQuery
    from broker.sessions.session import Session

__all__ = ["QUEUE_REQUESTS"]

# Of a name that is the management address: it exists, and is not counted (ActiveMQServerImpl).
_NOT_COUNTED: Final = -1
# Clients before version 129 tell the kind of a queue by its name.
_ANYCAST_PREFIXES: Final = ("jms.queue.", "jms.tempqueue.")

# Attributes that a queue's packet and a QueueRequest have by the same name.
_SAME_NAMES: Final = (
    "exclusive",
    "last_value",
    "last_value_key",
    "non_destructive",
    "consumers_before_dispatch",
    "delay_before_dispatch",
    "group_rebalance",
    "group_buckets",
    "auto_delete",
    "auto_delete_delay",
    "auto_delete_message_count",
    "group_first_key",
    "ring_size",
    "enabled",
    "group_rebalance_pause_dispatch",
)


class _QueueRequests:
    """Handles the packets of packet_queue for a session's channel."""

    def __init__(self) -> None:
        self._handlers: dict[type[Packet], Callable[..., None]] = {
            queues.CreateAddress: self._create_address,
            queues.CreateQueue: self._create_queue,
            queues.CreateSharedQueueV1: self._create_shared_queue_v1,
            queues.CreateSharedQueue: self._create_shared_queue,
            queues.DeleteQueue: self._delete_queue,
            queues.QueueQuery: self._query_queue,
            queues.BindingQuery: self._query_binding,
        }

    @property
    def kinds(self) -> tuple[type[Packet], ...]:
        """Which packets."""
        return tuple(self._handlers)

    def handle(self, session: Session, answers: Answers, packet: Packet, size: int) -> None:
        """Do what a packet asks for, and answer.

        Raises:
            BrokerError: it is refused.
        """
        self._handlers[type(packet)](session, answers, packet, size)

    def _create_address(
        self, session: Session, answers: Answers, packet: queues.CreateAddress, size: int
    ) -> None:
        session.administration.create_address(
            packet.address, packet.routing_types, is_auto_created=packet.auto_created
        )
        self._done(answers, packet.requires_response, size)

    @staticmethod
    def _done(answers: Answers, requires_response: bool, size: int) -> None:
        if requires_response:
            answers.answer(size)
        else:
            answers.silently(size)

    def _create_queue(
        self, session: Session, answers: Answers, packet: queues.CreateQueue, size: int
    ) -> None:
        session.administration.create_queue(
            QueueRequest(
                name=packet.queue,
                address=packet.address,
                filter=packet.filter,
                is_durable=packet.durable,
                is_temporary=packet.temporary,
                is_auto_created=packet.auto_created,
                user=session.user,
                routing_type=packet.routing_type or self._type_by_name(packet.address),
                max_consumers=packet.max_consumers,
                purge_on_no_consumers=packet.purge_on_no_consumers,
                **{name: getattr(packet, name) for name in _SAME_NAMES},
            )
        )
        self._done(answers, packet.requires_response, size)

    @staticmethod
    def _type_by_name(address: str) -> RoutingType | None:
        return RoutingType.ANYCAST if address.startswith(_ANYCAST_PREFIXES) else None

    def _create_shared_queue_v1(
        self, session: Session, answers: Answers, packet: queues.CreateSharedQueueV1, size: int
    ) -> None:
        session.administration.create_queue(
            QueueRequest(
                name=packet.queue,
                address=packet.address,
                filter=packet.filter,
                is_durable=packet.durable,
                user=session.user,
            ),
            is_shared=True,
        )
        self._done(answers, packet.requires_response, size)

    def _create_shared_queue(
        self, session: Session, answers: Answers, packet: queues.CreateSharedQueue, size: int
    ) -> None:
        session.administration.create_queue(
            QueueRequest(
                name=packet.queue,
                address=packet.address,
                filter=packet.filter,
                is_durable=packet.durable,
                # As Artemis: a shared one is deleted when it is not used, unless it is durable.
                is_auto_created=not packet.durable,
                user=session.user,
                routing_type=packet.routing_type,
                max_consumers=packet.max_consumers,
                purge_on_no_consumers=packet.purge_on_no_consumers,
                **{name: getattr(packet, name) for name in _SAME_NAMES},
            ),
            is_shared=True,
        )
        self._done(answers, packet.requires_response, size)

    def _delete_queue(
        self, session: Session, answers: Answers, packet: queues.DeleteQueue, size: int
    ) -> None:
        session.administration.delete_queue(packet.queue)
        answers.answer(size)

    def _query_queue(
        self, session: Session, answers: Answers, packet: queues.QueueQuery, size: int
    ) -> None:
        answers.answer(size, self.describe(session.administration.query_queue(packet.queue)))

    def describe(self, found: QueueQuery) -> queues.QueueQueryResponse:
        """Give the answer about a queue name."""
        settings, queue = found.settings, found.queue
        if queue is None:
            return queues.QueueQueryResponse(
                exists=found.is_management,
                durable=found.is_management,
                consumer_count=_NOT_COUNTED if found.is_management else 0,
                message_count=_NOT_COUNTED if found.is_management else 0,
                address=found.address,
                name=found.name,
                auto_create_queues=settings.auto_create_queues,
                purge_on_no_consumers=settings.default_purge_on_no_consumers,
                routing_type=RoutingType.MULTICAST,
                max_consumers=settings.default_max_consumers,
                exclusive=settings.default_exclusive_queue,
                last_value=settings.default_last_value_queue,
                default_consumer_window_size=settings.default_consumer_window_size,
                last_value_key=settings.default_last_value_key,
                non_destructive=settings.default_non_destructive,
                consumers_before_dispatch=settings.default_consumers_before_dispatch,
                delay_before_dispatch=settings.default_delay_before_dispatch_ms,
            )
        binding = queue.binding
        return queues.QueueQueryResponse(
            exists=True,
            durable=queue.is_durable,
            temporary=queue.is_temporary,
            consumer_count=queue.consumer_count,
            message_count=queue.message_count,
            filter=binding.filter,
            address=binding.address,
            name=queue.name,
            auto_create_queues=settings.auto_create_queues,
            auto_created=binding.auto_created,
            purge_on_no_consumers=binding.purge_on_no_consumers,
            routing_type=binding.routing_type,
            max_consumers=binding.max_consumers,
            default_consumer_window_size=settings.default_consumer_window_size,
            configuration_managed=binding.configuration_managed,
            **{name: getattr(binding, name) for name in _SAME_NAMES},
        )

    def _query_binding(
        self, session: Session, answers: Answers, packet: queues.BindingQuery, size: int
    ) -> None:
        found = session.administration.query_address(packet.address)
        settings, address = found.settings, found.address
        types = set() if address is None else address.routing_types
        answers.answer(
            size,
            queues.BindingQueryResponse(
                exists=address is not None or found.is_management,
                queue_names=found.queues,
                auto_create_queues=settings.auto_create_queues,
                auto_create_addresses=settings.auto_create_addresses,
                default_purge_on_no_consumers=settings.default_purge_on_no_consumers,
                default_max_consumers=settings.default_max_consumers,
                default_exclusive=settings.default_exclusive_queue,
                default_last_value=settings.default_last_value_queue,
                default_last_value_key=settings.default_last_value_key,
                default_non_destructive=settings.default_non_destructive,
                default_consumers_before_dispatch=settings.default_consumers_before_dispatch,
                default_delay_before_dispatch=settings.default_delay_before_dispatch_ms,
                supports_multicast=RoutingType.MULTICAST in types or found.is_management,
                supports_anycast=RoutingType.ANYCAST in types or found.is_management,
            ),
        )


QUEUE_REQUESTS: Final = _QueueRequests()
