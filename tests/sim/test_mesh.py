"""A mesh of three brokers under faults: after healing nothing is lost, doubled or stranded.

Messages are sent to one broker; consumers that acknowledge nothing come and go at the others, so
messages are distributed and redistributed meanwhile. At the end one consumer at `c` takes them all.
"""

import asyncio
import contextlib
import random
from collections import Counter
from functools import partial
from unittest import mock

import pytest

from broker.bridges.core import bridge
from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from broker.config import BrokerConfig
from broker.config.cluster import ClusterConfig, ClusterConnection, StaticConnectors
from broker.config.core import SecurityConfig
from broker.config.transport import TransportConfig
from broker.model.routing_type import RoutingType
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from tests.sim.bridge_cases import CHAIN, Case
from tests.sim.bridge_run import OPTIONS, Run
from tests.sim.node import PORT, environment_of
from tests.sim.test_bridges import AcknowledgesAtOnce

SEEDS = 3
SOAK_SEEDS = 2_000
PLANTED_SEEDS = 60
QUEUE = "start"
QUIET_S = 5.0
DRAINS_S = 300.0


def mesh_options(name):
    settings = SettingsRepository()
    settings.add("#", AddressSettings(max_delivery_attempts=-1, redistribution_delay_ms=0))
    connectors = tuple(
        TransportConfig(name=one, scheme="tcp", host=one, port=PORT) for one in CHAIN
    )
    connection = ClusterConnection(
        name="mesh",
        connector_ref=name,
        retry_interval_ms=100,
        max_retry_interval_ms=500,
        check_period_ms=1_500,
        connection_ttl_ms=4_000,
        call_timeout_ms=5_000,
        notification_interval_ms=200,
        static_connectors=StaticConnectors(
            connector_refs=tuple(one for one in CHAIN if one != name)
        ),
        discovery_group_ref=None,
    )
    queue = QueueRequest(
        name=QUEUE,
        address=QUEUE,
        routing_type=RoutingType.ANYCAST,
        auto_create_address=True,
        auto_delete=False,
    )
    return {
        "settings": settings,
        "queues": (queue,),
        "bridges": (),
        "configuration": BrokerConfig(
            cluster=ClusterConfig(connectors=connectors, cluster_connections=(connection,)),
            security=SecurityConfig(
                security_enabled=False, cluster_user="cluster", cluster_password="secret"
            ),
        ),
    }


class MeshRun(Run):
    """One story; see the module's text."""

    def __init__(self, case):
        super().__init__(case)
        for name, node in self.nodes.items():
            node.options = mesh_options(name)
        self._wanders = True

    async def _send(self):
        wandering = asyncio.ensure_future(self._wander())
        try:
            await super()._send()
        finally:
            self._wanders = False
            await wandering

    async def _wander(self):
        """Consume here and there, and acknowledge nothing."""
        seeded = random.Random(f"wander {self.case.seed}")
        environment = environment_of(self._client, seeded)
        while self._wanders:
            place = seeded.choice(CHAIN)
            try:
                async with AsyncClient(
                    f"tcp://{place}:{PORT}", environment=environment, **OPTIONS
                ) as client:
                    session = await client.session(AckMode.INDIVIDUAL)
                    await session.consumer(QUEUE)
                    await asyncio.sleep(seeded.uniform(0.1, 1.0))
            except (ClientError, OSError):
                await asyncio.sleep(0.1)

    async def _arrived(self):
        return True

    def _left(self):
        """What waits anywhere, by node and queue."""
        return {
            (name, queue.name): queue.message_count
            for name, node in self.nodes.items()
            if node.broker is not None and node.is_active
            for queue in node.broker.parts.postoffice.addresses.queues.values()
            if queue.message_count and not queue.name.startswith(("notif.", "answers."))
        }

    async def _look(self):
        environment = environment_of(self._client, random.Random(1))
        came = []
        deadline = self.loop.time() + DRAINS_S
        async with AsyncClient(f"tcp://c:{PORT}", environment=environment, **OPTIONS) as client:
            session = await client.session()
            async with await session.consumer(QUEUE) as consumer:
                while self.loop.time() < deadline:
                    received = await consumer.receive(QUIET_S)
                    if received is not None:
                        came.append((await received.read())[:4].decode())
                    elif not self._left():
                        break
        for place, count in self._left().items():
            self.problem(f"stranded: {count} in {place}")
        found = Counter(came)
        for key in self._confirmed:
            if not found[key]:
                self.problem(f"lost: {key}")
        for key, count in found.items():
            if count > 1:
                self.problem(f"duplicated: {key} came {count} times")
            if key not in self._unknown and key not in self._confirmed:
                self.problem(f"unexpected: {key}")


def wrong(seeds, *patches):
    """What is wrong with the first story that goes wrong."""
    for seed in seeds:
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch())
            result = MeshRun(Case(seed)).run()
        if result.problems:
            return [f"seed {seed}: {one}" for one in result.problems]
    return []


@pytest.mark.slow
def test_seeds_find_nothing_wrong():
    assert wrong(range(1, SEEDS + 1)) == []


@pytest.mark.soak
def test_many_seeds_find_nothing_wrong(effort):
    assert wrong(range(1, effort(SOAK_SEEDS) + 1)) == []


@pytest.mark.soak
def test_a_planted_fault_is_found():
    """A message is acknowledged when it is sent."""
    patch = partial(mock.patch.object, bridge, "Forwarding", AcknowledgesAtOnce)

    found = wrong(range(1, PLANTED_SEEDS + 1), patch)

    assert any("lost" in one for one in found), found
