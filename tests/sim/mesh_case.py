"""A story of a large mesh as text, and how its brokers are configured.

    seed 7
    seed 7 nodes 50 calm messages 10

`nodes` are so many, `messages` are what each sender sends, `calm` has no faults. With `full` every
second node has room for a few messages of a queue, and lets who sends more wait. All else follows
from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from broker.config import BrokerConfig
from broker.config.cluster import ClusterConfig, ClusterConnection, StaticConnectors
from broker.config.core import SecurityConfig
from broker.config.ha import PrimaryOnly, ScaleDown
from broker.config.transport import TransportConfig
from broker.model.routing_type import RoutingType
from broker.settings.policies import AddressFullPolicy
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from tests.sim.node import PORT

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

NODES = 5
MESSAGES = 12
CONNECTION = "mesh"
# Every node has it.
QUEUE = "start"
# The home of the seed has it; elsewhere it is deleted while it is empty, and made again.
FLEETING = "fleeting"
# A topic, durable subscriptions at so many nodes, and the one that these share.
NEWS = "news"
HOLDERS = 3
SHARED = "shared"
# Up to so many nodes each one lists all others; of more it lists a few.
LISTED_MAX = 8
LISTED = 2
# Of a node that is full: messages, and bytes that a link sends ahead.
ROOM = 3
WINDOW = 600


@dataclass(frozen=True)
class MeshCase:
    """See the module's text."""

    seed: int = 1
    nodes: int = NODES
    messages: int = MESSAGES
    is_calm: bool = False
    is_full: bool = False

    def __str__(self) -> str:
        words = [f"seed {self.seed}"]
        if self.nodes != NODES:
            words.append(f"nodes {self.nodes}")
        if self.messages != MESSAGES:
            words.append(f"messages {self.messages}")
        if self.is_calm:
            words.append("calm")
        if self.is_full:
            words.append("full")
        return " ".join(words)

    @classmethod
    def parse(cls, text: str) -> MeshCase:
        """Read one.

        Raises:
            ValueError: it says something that is not known.
        """
        case, words = cls(), iter(text.split())
        for word in words:
            if word in ("seed", "nodes", "messages"):
                case = replace(case, **{word: int(next(words))})
            elif word == "calm":
                case = replace(case, is_calm=True)
            elif word == "full":
                case = replace(case, is_full=True)
            else:
                raise ValueError(f"a case has no {word!r}")
        return case

    @property
    def names(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    @property
    def roomy(self) -> tuple[str, ...]:
        """The nodes that may be sent to: who has to wait for room may wait for ever."""
        return self.names[::2] if self.is_full else self.names

    @property
    def command(self) -> str:
        """What runs it again."""
        return f'python -m tests.sim.mesh --case "{self}"'


def request_of(queue: str) -> QueueRequest:
    """Give what makes a queue."""
    return QueueRequest(
        name=queue,
        address=queue,
        routing_type=RoutingType.ANYCAST,
        auto_create_address=True,
        auto_delete=False,
    )


def holders_of(names: Sequence[str]) -> Sequence[str]:
    """Give the nodes with durable subscriptions."""
    return names[-HOLDERS:]


def subscriptions_at(name: str) -> tuple[str, ...]:
    """Give the durable subscriptions of such a node."""
    return (f"d.{name}", SHARED)


def subscription_request(name: str) -> QueueRequest:
    """Give what makes a durable subscription."""
    return QueueRequest(
        name=name,
        address=NEWS,
        routing_type=RoutingType.MULTICAST,
        auto_create_address=True,
        auto_delete=False,
    )


def options_of(
    case: MeshCase, name: str, seeded: random.Random, *, is_home: bool, scales_down: bool
) -> dict[str, Any]:
    """Give the options of a broker.

    Args:
        case: that it is part of.
        name: of its node.
        seeded: chooses which others it lists.
        is_home: it keeps FLEETING.
        scales_down: a stop in good order moves its messages to another node.
    """
    is_holder = name in holders_of(case.names)
    is_large = case.nodes > LISTED_MAX
    settings: SettingsRepository[Any] = SettingsRepository()
    settings.add("#", AddressSettings(max_delivery_attempts=-1, redistribution_delay_ms=0))
    limits: dict[str, Any] = {}
    if case.is_full:
        limits["producer_window_size_bytes"] = WINDOW
        if name not in case.roomy and not is_home:
            full = AddressSettings(
                address_full_policy=AddressFullPolicy.BLOCK, max_size_messages=ROOM
            )
            settings.add(QUEUE, full)
            settings.add(FLEETING, full)
    connectors = tuple(
        TransportConfig(name=one, scheme="tcp", host=one, port=PORT) for one in case.names
    )
    connection = ClusterConnection(
        name=CONNECTION,
        connector_ref=name,
        retry_interval_ms=100,
        max_retry_interval_ms=2_000 if is_large else 500,
        check_period_ms=4_000 if is_large else 1_500,
        connection_ttl_ms=12_000 if is_large else 4_000,
        call_timeout_ms=5_000,
        notification_interval_ms=200,
        static_connectors=StaticConnectors(connector_refs=_listed(case, name, seeded)),
        discovery_group_ref=None,
        **limits,
    )
    policy = PrimaryOnly(scale_down=ScaleDown(discovery_group_ref=None)) if scales_down else None
    return {
        "settings": settings,
        "queues": (
            *map(request_of, (QUEUE, FLEETING) if is_home else (QUEUE,)),
            *map(subscription_request, subscriptions_at(name) if is_holder else ()),
        ),
        "bridges": (),
        "configuration": BrokerConfig(
            cluster=ClusterConfig(
                connectors=connectors, cluster_connections=(connection,), ha_policy=policy
            ),
            security=SecurityConfig(
                security_enabled=False, cluster_user="cluster", cluster_password="secret"
            ),
        ),
    }


def _listed(case: MeshCase, name: str, seeded: random.Random) -> tuple[str, ...]:
    """The one before it, so that all are connected, and others."""
    names = case.names
    others = [one for one in names if one != name]
    if case.nodes <= LISTED_MAX:
        return tuple(others)
    before = names[names.index(name) - 1]
    return tuple(dict.fromkeys((before, *seeded.sample(others, LISTED))))
