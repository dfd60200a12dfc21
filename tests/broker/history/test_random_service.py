"""A `broker run` that is killed, stopped and started again under random clients: see checker.py.

Length: `effort` of ten minutes for each store. QUIVER_SEED tries something else.
"""

import asyncio
import os
import random
import signal
import time

import pytest

from broker.client import AckMode
from tests.broker.history import consumers, producers
from tests.broker.history.checker import problems
from tests.broker.history.world import ADDRESSES, ORDERED, QUEUES, World
from tests.interop.our_broker import OurBroker

SEED = int(os.environ.get("QUIVER_SEED", "4"))
# Of what is wrong, lines that are told.
SHOWN = 30
FULL_S = 600
LEAST_S = 6
# Long beside what it takes; a broker or a client that hangs is found all the same.
ENDS_S = 300
SMALL_PAGES = """<address-settings>
  <address-setting match="paged">
    <max-size-messages>40</max-size-messages>
    <page-size-bytes>20K</page-size-bytes>
    <address-full-policy>PAGE</address-full-policy>
    <max-delivery-attempts>-1</max-delivery-attempts>
  </address-setting>"""
CHANGES = (
    # Messages go back so often that they would end among the dead letters.
    ("<max-delivery-attempts>10<", "<max-delivery-attempts>-1<"),
    ("<address-settings>", SMALL_PAGES),
)
# The lease of a broker that was killed ends by itself, and the next one waits for it.
SHORT_LEASE = (
    "</database-store>",
    (
        "<jdbc-lock-expiration>1500</jdbc-lock-expiration>"
        "<jdbc-lock-renew-period>400</jdbc-lock-renew-period></database-store>"
    ),
)


class Service:
    """One broker through many runs, and its clients."""

    def __init__(self, broker, world, *, is_kept):
        self.broker = broker
        self.world = world
        self.is_kept = is_kept
        self.runs = dict.fromkeys(("kills", "kills_while_starting", "stops"), 0)
        world.user, world.password = broker.USER, broker.PASSWORD

    async def start(self):
        await asyncio.to_thread(self.broker.start)
        world = self.world
        world.broker_run += 1
        world.uri = self.broker.uri
        world.is_over = False
        if world.broker_run == 1 or not self.is_kept:
            await world.make_queues()
        async with world.client() as client, await client.session(AckMode.XA) as session:
            await world.decide(session)

    async def live(self, *, is_whole):
        """A run under load, to its end; a whole one goes on without load."""
        world = self.world
        seeded = world.seeded
        await self.start()
        works = [
            (seeded.choice(producers.STYLES), address)
            for address in ADDRESSES
            if address != "out"
            for _ in range(seeded.randrange(1, 3))
        ]
        works += [
            (seeded.choice(consumers.STYLES), queue)
            for queue in QUEUES
            for _ in range(1 if queue in ORDERED else 2)
            if seeded.random() < 0.9
        ]
        async with asyncio.timeout(ENDS_S), asyncio.TaskGroup() as group:
            for style, place in works:
                group.create_task(world.keep(lambda style=style, place=place: style(world, place)))
            await asyncio.sleep(seeded.uniform(0.2, 4))
            if not is_whole:
                await self.end(signal.SIGKILL if world.chance(0.75) else signal.SIGTERM)
            # Else everybody goes home.
            world.is_over = True
        world.end_run()

    async def end(self, how):
        world = self.world
        if how == signal.SIGTERM:
            # What is refused from here on is refused with a reason.
            world.is_over = True
            self.runs["stops"] += 1
        else:
            self.runs["kills"] += 1
        status = await asyncio.to_thread(self.broker.end, how)
        world.is_over = True
        if status != (0 if how == signal.SIGTERM else -how):
            world.history.problems.append(f"ended: with status {status}")

    async def die_while_starting(self):
        self.runs["kills_while_starting"] += 1
        await asyncio.to_thread(self.broker.start_and_kill, self.world.seeded.uniform(0.05, 1.5))

    async def empty(self):
        """Without load, take all that is there."""
        options = {"ack_batch_size": 0, "block_on_acknowledge": True}
        world = self.world
        world.is_over = False
        async with world.client() as client:
            async with await client.session(AckMode.XA) as session:
                await world.decide(session)
            async with await client.session(AckMode.CLIENT, **options) as session:
                await consumers.drain(world, session)

    async def run(self, seconds):
        """Lives until the time is over; what was wrong."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.world.chance(0.15):
                await self.die_while_starting()
            await self.live(is_whole=False)
        await self.start()
        await self.empty()
        await self.end(signal.SIGTERM)
        return problems(self.world.history, ORDERED)

    async def run_without_store(self, seconds):
        """The same of a broker that keeps nothing: each run is checked alone."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            is_whole = self.world.chance(0.5)
            await self.live(is_whole=is_whole)
            if is_whole:
                await self.empty()
                await self.end(signal.SIGKILL)
            found = problems(self.world.history, ORDERED, is_complete=is_whole)
            if found:
                return found
            # What comes of this run in the next one was never sent.
            self.world.begin_anew()
        return []


SOAK = pytest.mark.soak


@pytest.fixture(
    params=[
        "files",
        pytest.param("postgresql", marks=SOAK),
        pytest.param("nothing", marks=SOAK),
    ]
)
def service(request, tmp_path, new_database):
    options = {"files": (), "nothing": ("--no-persistence",)}.get(request.param)
    changes = CHANGES
    if options is None:
        options = ("--jdbc", new_database("postgresql").jdbc_url)
        changes = (*CHANGES, SHORT_LEASE)
    broker = OurBroker(tmp_path, *changes, options=options, starts=False)
    world = World(random.Random(SEED), has_large=request.param == "files")
    yield Service(broker, world, is_kept=request.param != "nothing")
    broker.ensure_ended()


@pytest.mark.slow
def test_random_clients_and_kills_lose_and_double_nothing(service, effort, figures, request):
    world = service.world
    print(f"seed {SEED}")

    run = service.run if service.is_kept else service.run_without_store
    found = asyncio.run(run(effort(FULL_S, least=LEAST_S)))

    figures(
        f"random clients, kept in {request.node.callspec.params['service']}",
        **service.runs,
        **world.counts,
    )
    shown = "\n".join(found[:SHOWN])
    assert not found, f"seed {SEED}; {len(found)} in all\n{shown}"
    assert world.counts["deliveries"]
    assert "Traceback" not in service.broker.log()
