"""A JMS bridge on a simulated machine, as `broker bridge run` has it, under a service manager.

    node = JMSBridgeNode(network, link, seeded, cache)
    await node.start()   node.kill()   await node.start()   …

Engine, coordinator, transaction log and Core client are the real ones; the log's store is one in
memory. A bridge that gives up ends its process, and is started again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker.bridges.jms.blocking.providers import adapted
from broker.bridges.jms.connecting import Factories
from broker.bridges.jms.coordinator import Coordinator
from broker.bridges.jms.core.factory import CoreConnectionFactory
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.engine import Engine
from broker.bridges.jms.errors import BridgeError
from broker.bridges.jms.options import ExactlyOnce, JMSBridgeOptions, QualityOfService
from broker.bridges.jms.providers import Destination
from broker.bridges.jms.state import BridgeState
from tests.sim.bridge_cases import (
    AT_MOST_ONCE,
    DUPLICATE_IDS,
    DUPLICATES_OK,
    QUEUES,
    TWO_PHASE,
)
from tests.sim.node import PORT, SYNC_S, environment_of
from tests.sim.record_log import Disk, RecordLog
from tests.sim.served import ServedNode
from tests.sim.store import MemoryStore

if TYPE_CHECKING:
    import random

    from tests.sim.bridge_cases import Link
    from tests.sim.loop import Process, SimLoop
    from tests.sim.network import Host, Network

WAYS = {
    AT_MOST_ONCE: (QualityOfService.AT_MOST_ONCE, ExactlyOnce.AUTO),
    DUPLICATES_OK: (QualityOfService.DUPLICATES_OK, ExactlyOnce.AUTO),
    DUPLICATE_IDS: (QualityOfService.ONCE_AND_ONLY_ONCE, ExactlyOnce.DUPLICATE_IDS),
    TWO_PHASE: (QualityOfService.ONCE_AND_ONLY_ONCE, ExactlyOnce.TWO_PHASE),
}
LOOK_S = 0.5
RECEIVE_S = 1.0
# A broker gives a silent connection up long after the bridge, and may get late what that has sent.
TTL_MS = 10_000
# A coordinator waits for that twice as long, as it does with the defaults of both.
SETTLED_S = 2 * TTL_MS / 1000
ANSWER_MS = 2_000
BATCHES = (1, 3, 8)
BATCH_MS = 50
# What the client does itself with a lost connection: nothing, its sessions begin anew, or are
# reattached.
CLIENTS = ("", "&reconnectAttempts=3", "&reconnectAttempts=3&confirmationWindowSize=2000")
RETRIES = "&retryInterval=100&maxRetryInterval=500"


class LogStorage:
    """What a bridge keeps: its transaction log."""

    def __init__(self, seeded: random.Random, loop: SimLoop) -> None:
        self.seeded = seeded
        self.disk = Disk(seeded)
        self.disk.sync_s = seeded.choice(SYNC_S)
        self.log = RecordLog(self.disk)
        self.loop = loop
        self.store_type = MemoryStore

    def open_store(self) -> MemoryStore:
        """A store of it, not open."""
        return self.store_type(self.log, clock=self.loop.time)

    def crash(self, *, is_power: bool) -> int:
        """Leave one of the states that a crash may; how many records were lost."""
        self.disk.fails = self.disk.fails_to_sync = False
        return self.log.crash(self.seeded, is_power=is_power)


class JMSBridgeNode(ServedNode):
    """See the module's text.

    Args:
        network: it is part of.
        link: whose bridge it is.
        seeded: decides its parameters, what its disk does, and its ids.

    Attributes:
        engine: of the process that runs; None while none does.
        coordinator: likewise.
    """

    def __init__(self, network: Network, link: Link, seeded: random.Random) -> None:
        def storage(host: Host, seeded: random.Random) -> LogStorage:
            del host
            return LogStorage(seeded, network.loop)

        assert link.host is not None, "a JMS bridge has one"
        super().__init__(network, link.host, seeded, storage=storage)
        self._link = link
        self.engine: Engine | None = None
        self.coordinator: Coordinator | None = None
        quality, exactly_once = WAYS[link.kind]
        self.parameters = JMSBridgeOptions(
            name=link.host,
            quality_of_service=quality,
            exactly_once=exactly_once,
            max_batch_size=seeded.choice(BATCHES),
            max_batch_time=BATCH_MS,
            failure_retry_interval=100,
            failover_timeout=ANSWER_MS,
        )
        self._query = f"connectionTTL={TTL_MS}&clientFailureCheckPeriod=3000"
        self._query += f"&callTimeout={ANSWER_MS}{RETRIES}{seeded.choice(CLIENTS)}"

    @property
    def is_active(self) -> bool:
        """Whether it has come so far that it can be stopped."""
        return self.engine is not None

    _is_there = is_active

    @property
    def why(self) -> str | None:
        """Why it moves nothing."""
        return "it does not run" if self.engine is None else self.engine.why()

    @property
    def again_count(self) -> int:
        """Messages of batches that failed and came again, of the process that runs."""
        return 0 if self.engine is None else self.engine.counters.retried

    @property
    def is_settled(self) -> bool:
        """Whether it moves what comes, has nothing on its way, and knows no open transaction."""
        engine, coordinator = self.engine, self.coordinator
        # It is idle while it connects, too, and while it closes its connections.
        if engine is None or engine._idle.is_set() or engine._in_flight.since_s is not None:
            return False
        return coordinator is None or not (coordinator.in_doubt or coordinator._doubtful)

    async def _run(self, process: Process) -> Exception:
        environment = environment_of(process, self.seeded)
        if self._link.kind == TWO_PHASE:
            decisions = DecisionLog(self.storage.open_store(), environment.ids)
            decisions.open()
            self.coordinator = Coordinator(decisions, self.name, environment.clock)

        def factory(broker: str) -> Any:
            uri = f"tcp://{broker}:{PORT}?{self._query}"
            made = CoreConnectionFactory(uri, environment=environment)
            return lambda: made

        engine = Engine(
            self.parameters,
            Factories(
                source=factory(self._link.source),
                target=factory(self._link.target),
                source_destination=lambda: Destination.queue(QUEUES[self._link.source]),
                target_destination=lambda: Destination.queue(QUEUES[self._link.target]),
            ),
            clock=environment.clock,
            call=asyncio.to_thread,
            adapt=adapted,
            transactions=self.coordinator,
            receive_s=RECEIVE_S,
        )
        self.engine = engine
        engine.start()
        while engine.state is not BridgeState.FAILED:  # noqa: ASYNC110 - as the command does.
            await asyncio.sleep(LOOK_S)
        why = engine.why()
        await self._stop()
        return BridgeError(why)

    async def _stop(self) -> None:
        assert self.engine is not None, "it runs"
        try:
            await self.engine.stop()
        finally:
            if self.coordinator is not None:
                self.coordinator.decisions.close()

    def _end(self, *, is_power: bool = False) -> None:
        self.engine = self.coordinator = None
        super()._end(is_power=is_power)
