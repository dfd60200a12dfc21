"""Two brokers on one store: one owner at a time, whatever stops, stands still or is cut off."""

import asyncio
import random
from unittest import mock

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from broker.storage.node_state import BackupWatch
from jdbcstore.node import NodeManager
from tests.sim.__main__ import results
from tests.sim.loop import SimLoop
from tests.sim.network import Network
from tests.sim.node import environment_of
from tests.sim.pair import Pair, pair_store
from tests.sim.planted import KeepsItsLease
from tests.sim.run import Planted, run_story
from tests.sim.shrink import without
from tests.sim.sql_pair import OPTIONS
from tests.sim.story import Story, story_of
from tests.sim.threads import Threads
from tests.sim.workloads import clients_of

KINDS = ("lease", "lock")
QUICK_SEEDS = 6
LEASE_S = OPTIONS.lock_expiration_ms / 1000
# More than a lease, less than what makes a client give its connection up.
LONG_S = 2.5
# A story of a pair takes more than one of a node.
STORIES = ("pairs", "members", "links")
SOAK_SEEDS = {"pairs": 20_000, "members": 5_000, "links": 5_000}

WRITTEN_BY_HAND = """
seed 3
nodes a b
pair a b lease             # b waits for a; the database is a-store
seconds 8
client one_at_a_time plain
client acknowledging plain
client in_transactions fan
at 1 pause a 2.5           # its lease expires, and b takes over
at 5 partition b a-store 2 # and then b is cut off
"""


class TwoNodes:
    """A pair, and a client on another machine."""

    def __init__(self, kind, seed=1, names=("a", "b"), **options):
        self.loop = SimLoop(random.Random(seed))
        Threads(self.loop)
        self.network = Network(self.loop)
        self.store = pair_store(kind, self.network, "store", random.Random(seed))
        self.pair = Pair(self.network, names, self.store, random.Random(seed), options)
        self.process = self.loop.process("client", self.network.host("client"))
        self.loop.run_until_complete(self.pair.start())

    def run(self, work):
        return self.loop.run_until_complete(self.process.spawn(work))

    def client(self, uri=None, **options):
        environment = environment_of(self.process, random.Random(1))
        return AsyncClient(uri or self.pair.uri, environment=environment, **options)

    def active(self):
        return [one.name for one in self.pair.nodes if one.is_active]

    def hosts(self):
        return self.pair.primary.host, self.store.host

    async def send(self, body):
        async with self.client() as client, await client.session() as session:
            if not (await session.query_queue("q")).exists:
                await session.create_queue("q", "q")
            await session.producer("q").send(body)

    async def received(self):
        """What is in the queue, acknowledged."""
        found = []
        async with (
            self.client() as client,
            await client.session(AckMode.AUTO) as session,
            await session.consumer("q") as consumer,
        ):
            while (one := await consumer.receive(1)) is not None:
                found.append(await one.read())
        return found

    async def until(self, *names, timeout_s=20):
        """Wait until one of these is active; one that stands still does not know that it is not."""
        async with asyncio.timeout(timeout_s):
            while not set(names) & set(self.active()):  # noqa: ASYNC110 -- a broker has no event of it.
                await asyncio.sleep(0.05)


@pytest.fixture(params=KINDS)
def two(request):
    made = TwoNodes(request.param)
    yield made
    made.loop.close()


@pytest.fixture
def leased():
    made = TwoNodes("lease")
    yield made
    made.loop.close()


@pytest.fixture
def locked():
    made = TwoNodes("lock")
    yield made
    made.loop.close()


def test_the_backup_waits_while_the_primary_serves(two):
    async def work():
        await two.send(b"x")
        await asyncio.sleep(10)
        assert two.active() == ["a"]
        assert two.pair.backup.broker.is_started
        assert await two.received() == [b"x"]

    two.run(work())


@pytest.mark.parametrize("fault", ["kill", "power_off"])
def test_the_backup_has_all_that_was_confirmed(two, fault):
    async def work():
        await two.send(b"x")
        getattr(two.pair.primary, fault)()
        await two.until("b")
        assert await two.received() == [b"x"]
        assert two.pair.backup.storage.activation == 2

    two.run(work())


@pytest.fixture(params=KINDS)
def without_failback(request):
    made = TwoNodes(request.param, allow_failback=False)
    yield made
    made.loop.close()


@pytest.fixture(params=KINDS)
def patient(request):
    made = TwoNodes(request.param, failback_delay=3_000, failover_on_shutdown=True)
    yield made
    made.loop.close()


def test_the_primary_that_comes_back_gets_its_place(two):
    """The backup waits again, and takes over a second time."""

    async def work():
        await two.send(b"x")
        two.pair.primary.kill()
        await two.until("b")
        await two.send(b"y")
        process = two.pair.backup.process
        await two.pair.primary.start()
        await two.until("a")
        assert two.active() == ["a"]
        assert two.pair.backup.process is process
        assert two.pair.backup.broker.is_started
        await two.send(b"z")
        two.pair.primary.kill()
        await two.until("b")
        assert await two.received() == [b"x", b"y", b"z"]
        assert two.pair.backup.exits == []
        assert two.pair.backup.storage.activation == 4

    two.run(work())


def test_the_primary_that_comes_back_waits_for_a_backup_without_failback(without_failback):
    two = without_failback

    async def work():
        two.pair.primary.kill()
        await two.until("b")
        await two.pair.primary.start()
        await asyncio.sleep(5)
        assert two.active() == ["b"]
        two.pair.backup.kill()
        await two.until("a")

    two.run(work())


def test_a_backup_gives_its_place_when_the_delay_is_over(patient):
    async def work():
        patient.pair.primary.kill()
        await patient.until("b")
        await patient.pair.primary.start()
        await asyncio.sleep(2.5)
        assert patient.active() == ["b"]
        await patient.until("a", timeout_s=5)

    patient.run(work())


def test_a_backup_that_gave_its_place_to_one_that_died_takes_it_again(two):
    """The primary dies as soon as it has the lock, and has not served."""

    async def work():
        await two.send(b"x")
        two.pair.primary.kill()
        await two.until("b")
        await two.pair.primary.start()
        while two.active() == ["b"]:  # noqa: ASYNC110 -- a broker has no event of it.
            await asyncio.sleep(0.01)
        two.pair.primary.kill()
        assert two.active() == []
        await two.until("b")
        assert await two.received() == [b"x"]

    two.run(work())


def test_with_failover_on_shutdown_the_backup_takes_over_at_a_stop(patient):
    async def work():
        await patient.send(b"x")
        await patient.pair.primary.stop()
        await patient.until("b", timeout_s=LEASE_S + 2)
        assert await patient.received() == [b"x"]

    patient.run(work())


@pytest.fixture(params=KINDS)
def three(request):
    made = TwoNodes(request.param, names=("a", "b", "c"))
    yield made
    made.loop.close()


def test_a_second_backup_takes_over_from_the_first(three):
    """And gives its place to the primary, which the first backup takes over from again."""

    async def work():
        primary = three.pair.primary
        await three.send(b"x")
        primary.kill()
        # Which one waits first is not said.
        await three.until("b", "c", timeout_s=LEASE_S + 2)
        first = next(one for one in three.pair.nodes if one.is_active)
        second = next(one for one in three.pair.nodes[1:] if one is not first)
        await asyncio.sleep(3)
        assert three.active() == [first.name]
        await three.send(b"y")
        first.kill()
        await three.until(second.name, timeout_s=LEASE_S + 2)
        await three.send(b"z")
        await first.start()
        await asyncio.sleep(3)
        assert three.active() == [second.name]
        await primary.start()
        await three.until("a")
        assert three.active() == ["a"]
        await asyncio.sleep(3)
        primary.kill()
        second.kill()
        await three.until(first.name, timeout_s=LEASE_S + 2)
        assert await three.received() == [b"x", b"y", b"z"]

    three.run(work())


def test_after_a_stop_in_good_order_the_backup_goes_on_waiting(two):
    async def work():
        await two.send(b"x")
        await two.pair.primary.stop()
        await asyncio.sleep(10)
        assert two.active() == []
        await two.pair.primary.start()
        await two.until("a")
        assert await two.received() == [b"x"]

    two.run(work())


def test_a_stop_ends_a_backup_that_waits(two):
    async def work():
        await two.pair.backup.stop()
        assert two.pair.backup.process is None
        assert two.active() == ["a"]

    two.run(work())


def test_what_stood_still_beyond_its_lease_writes_nothing_and_ends(leased):
    """Its client's send waits in its socket, and is refused, or gets no answer."""

    async def work():
        primary = leased.pair.primary
        async with leased.client("tcp://a:61616", connection_ttl=60_000) as client:
            session = await client.session()
            await session.create_queue("q", "q")
            process = primary.process
            process.pause()
            sending = asyncio.ensure_future(session.producer("q").send(b"late"))
            await leased.until("b")
            process.go_on()
            with pytest.raises(ClientError):
                await sending
        await asyncio.sleep(1)
        assert primary.process is not process
        assert [type(one).__name__ for one in primary.exits] == ["LeaseLost"]
        await leased.until("a")
        assert await leased.received() == []

    leased.run(work())


def test_a_pause_shorter_than_the_lease_changes_nothing(leased):
    async def work():
        leased.pair.primary.process.pause()
        await asyncio.sleep(LEASE_S / 3)
        leased.pair.primary.process.go_on()
        await leased.send(b"x")
        await asyncio.sleep(3)
        assert leased.active() == ["a"]
        assert leased.pair.primary.exits == []

    leased.run(work())


def test_a_file_lock_is_held_by_who_stands_still(locked):
    async def work():
        await locked.send(b"x")
        locked.pair.primary.process.pause()
        await asyncio.sleep(30)
        assert locked.active() == ["a"]
        locked.pair.primary.process.go_on()
        assert await locked.received() == [b"x"]

    locked.run(work())


def test_who_is_cut_off_from_the_store_for_long_loses_it(without_failback):
    two = without_failback

    async def work():
        await two.send(b"x")
        two.network.cut(*two.hosts())
        await two.until("b")
        two.network.heal()
        async with two.client("tcp://b:61616") as client, await client.session() as session:
            await session.producer("q").send(b"y")
        await asyncio.sleep(10)
        assert two.active() == ["b"]
        assert len(two.pair.primary.exits) == 1
        assert await two.received() == [b"x", b"y"]

    two.run(work())


def test_who_is_cut_off_from_the_store_for_a_moment_goes_on(two):
    async def work():
        await two.send(b"x")
        two.network.cut(*two.hosts())
        sending = asyncio.ensure_future(two.send(b"y"))
        await asyncio.sleep(LEASE_S / 2)
        two.network.heal()
        await sending
        await asyncio.sleep(3)
        assert two.active() == ["a"]
        assert await two.received() == [b"x", b"y"]

    two.run(work())


def test_a_commit_whose_answer_was_lost_is_found_again(leased):
    """The writer's connection is given up, and the batch looked for over another one."""

    async def work():
        await leased.send(b"x")
        node, store = leased.hosts()
        leased.network.cut(store, node, both=False)
        sending = asyncio.ensure_future(leased.send(b"y"))
        await asyncio.sleep(0.6)
        leased.network.heal()
        await sending
        assert await leased.received() == [b"x", b"y"]
        return leased.pair.primary.storage._stores[1]._writer.outages

    assert leased.run(work()) >= 1


def test_what_serves_the_store_may_end_and_come_back(two):
    async def work():
        await two.send(b"x")
        two.store.kill(is_power=True)
        sending = asyncio.ensure_future(two.send(b"y"))
        await asyncio.sleep(0.5)
        await two.store.start()
        await sending
        assert two.active() == ["a"]
        assert await two.received() == [b"x", b"y"]

    two.run(work())


@pytest.mark.parametrize("step_ms", [-20_000, 20_000])
def test_the_database_s_clock_steps_and_one_has_the_lease(leased, step_ms):
    async def work():
        await leased.send(b"x")
        leased.store.host.clock_offset_ms += step_ms
        await asyncio.sleep(5)
        assert len(leased.active()) == 1
        leased.store.host.clock_offset_ms -= step_ms
        await asyncio.sleep(30)
        assert len(leased.active()) == 1
        assert await leased.received() == [b"x"]

    leased.run(work())


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_a_broker_s_own_clock_says_nothing_about_its_lease(leased, step_ms):
    async def work():
        leased.pair.primary.host.clock_offset_ms += step_ms
        await asyncio.sleep(10)
        assert leased.active() == ["a"]
        assert leased.pair.primary.exits == []

    leased.run(work())


def test_a_machine_without_power_gives_its_file_lock_up_after_a_while(locked):
    async def work():
        await locked.send(b"x")
        locked.pair.primary.power_off()
        await asyncio.sleep(1)
        assert locked.active() == []
        await locked.until("b")
        assert await locked.received() == [b"x"]

    locked.run(work())


def test_a_lock_that_was_forgotten_is_taken_again_by_who_had_it(locked):
    async def work():
        await locked.send(b"x")
        locked.pair.backup.process.pause()
        locked.store.forget_locks()
        await asyncio.sleep(1)
        locked.pair.backup.process.go_on()
        await asyncio.sleep(2)
        assert locked.active() == ["a"]
        assert locked.pair.primary.exits == []
        assert await locked.received() == [b"x"]

    locked.run(work())


def test_who_lost_its_lock_to_another_answers_nothing_more(locked):
    """The server forgot it while the owner stood still; what it writes then is not seen."""

    async def work():
        primary = locked.pair.primary
        async with locked.client("tcp://a:61616", connection_ttl=60_000) as client:
            session = await client.session()
            await session.create_queue("q", "q")
            process = primary.process
            process.pause()
            locked.store.forget_locks()
            await locked.until("b")
            sending = asyncio.ensure_future(session.producer("q").send(b"late"))
            process.go_on()
            with pytest.raises(ClientError):
                await sending
        await locked.until("a")
        assert [type(one).__name__ for one in primary.exits] == ["NodeLockLost"]
        assert await locked.received() == []

    locked.run(work())


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_that_does_not_take_over_is_seen(kind):
    def refused(*_):
        return False

    planted = Planted(
        patches=(
            lambda: mock.patch.object(BackupWatch, "may_take_over", refused),
            lambda: mock.patch.object(NodeManager, "_activate", refused),
        )
    )
    story = Story.parse(f"seed 2\nnodes a b\npair a b {kind}\nseconds 8\nat 1 kill a 12")

    result = run_story(story, planted)

    assert [one.word for one in result.violations] == ["late"]


def test_what_who_has_not_the_lease_writes_is_seen():
    planted = Planted(pair_storage=KeepsItsLease)
    story = Story.parse(
        "seed 2\nnodes a b\npair a b lease\nseconds 8\nclient many_in_flight plain\nat 1 pause a 3"
    )

    result = run_story(story, planted)

    assert "two owners" in {one.word for one in result.violations}


def test_a_pair_is_written_by_hand():
    story = Story.parse(WRITTEN_BY_HAND)

    result = run_story(story)

    assert [str(one) for one in result.violations] == []
    assert Story.parse(str(story)) == story
    assert result.counts["deliveries"] > 0


def test_a_second_backup_may_be_left_out_of_a_story():
    story = Story.parse("nodes a b c\npair a b c lock\nat 1 kill b 1\nat 2 kill c 1")

    assert without(story, node="c").pairs == (("a", "b", "lock"),)
    assert without(without(story, node="c"), node="b").pairs == ()
    assert without(story, node="a").pairs == ()


def test_a_seed_of_a_pair_happens_again():
    story = story_of("pairs", 3, styles=clients_of, messages=60)

    assert run_story(story).trace_hash == run_story(story).trace_hash


@pytest.mark.parametrize("line", ["pair a b", "pair a x lease", "pair a b tape", "pair a lock"])
def test_a_pair_that_makes_no_sense_is_refused(line):
    with pytest.raises(ValueError, match="pair"):
        Story.parse(f"nodes a b\n{line}")


@pytest.mark.parametrize("name", STORIES)
def test_seeds_find_nothing_wrong(name):
    stories = [
        story_of(name, seed, styles=clients_of, messages=40) for seed in range(1, QUICK_SEEDS + 1)
    ]

    wrong = [f"{one.story}\n{found}" for one in results(stories, 1) for found in one.violations]

    assert wrong == []


@pytest.mark.soak
@pytest.mark.parametrize("name", STORIES)
def test_many_seeds_find_nothing_wrong(name, effort, figures):
    seeds = range(1, 1 + effort(SOAK_SEEDS[name]))
    stories = [story_of(name, seed, styles=clients_of, messages=200) for seed in seeds]

    failed, outages_ms = [], []
    for one in results(stories, 1):
        outages_ms.append(round(one.outage_s * 1000))
        if one.violations:
            failed.append(one)

    figures(f"simulation, {name}", seeds=len(seeds), failed=len(failed), outage_ms=outages_ms)
    wrong = [f"{one.story}\n{found}" for one in failed[:3] for found in one.violations]
    assert wrong == []
