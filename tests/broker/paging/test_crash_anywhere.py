"""Random work on paged addresses, a crash in the midst of it, and what is found then."""

import asyncio
import functools

import pytest

from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.paging import loading, paging, transactions
from broker.sessions.session import SessionOptions
from broker.settings.policies import AddressFullPolicy
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage import page_writer
from journal.errors import JournalError
from tests.broker.bench import Sink, message
from tests.broker.paging.ledger import ASKED, DONE, OPEN, UNDONE, Ledger, Sent, Unit
from tests.broker.paging.world import Crash, World, chance_of

# Queues by their addresses; those of `c` come and go.
ADDRESSES = {"a": ("a1", "a2"), "b": ("b1",), "c": ("c1",)}
XA = {"is_xa": True, "auto_commit_sends": False, "auto_commit_acks": False}
# Seeds that are tried at most until a planted bug is found; the rarest takes some hundreds.
PLANTED_MAX = 5000
TRANSACTED = {"auto_commit_sends": False, "auto_commit_acks": False}


def options(chance):
    repository = SettingsRepository()
    repository.add(
        "#",
        AddressSettings(
            max_size_messages=3,
            page_size_bytes=chance.choice([300, 1000]),
            max_read_page_messages=chance.choice([3, -1]),
            max_delivery_attempts=-1,
            address_full_policy=AddressFullPolicy.PAGE,
        ),
    )
    return {"settings": repository, "purge_page_folders": chance.random() < 0.5}


class Taker(Sink):
    """A consumer: what it has got and not acknowledged, by number."""

    def __init__(self, broker_run, queue, session):
        super().__init__()
        self._run = broker_run
        self.queue = queue
        self.session = session
        self.has = {}
        self.consumer = session.create_consumer(0, queue, self)
        session.start()
        self.consumer.receive_credits(-1)

    def deliver(self, consumer, message, delivery_count):
        number = message.get("n")
        units = self._run.ledger.acknowledged.get((self.queue, number), ())
        assert not any(unit.state == DONE for unit in units), f"{number} came again"
        self.has[number] = message.message_id
        return 100


class Work:
    """What clients do with one broker."""

    def __init__(self, world, seed):
        self.world = world
        self.chance = world.chance
        self.ledger = Ledger()
        self.made = {queue: 0 for queues in ADDRESSES.values() for queue in queues}
        self._next = seed * 100_000
        self._names = 0
        self._takers = []
        self._prepared = []

    def expect(self):
        return self.ledger.copy(), dict(self.made)

    def session(self, **wanted):
        self._names += 1
        assert self.world.broker.failure is None
        return self.world.broker.clients.create_session(
            f"s{self._names}", None, SessionOptions(**wanted), set()
        )

    def make(self, address):
        session = self.session()
        for queue in ADDRESSES[address]:
            self.made[queue] += 1
            kind = RoutingType.MULTICAST
            session.administration.create_queue(
                QueueRequest(name=queue, address=address, routing_type=kind)
            )
        made = {(queue, self.made[queue]) for queue in ADDRESSES[address]}
        session.context.after(lambda error: self.ledger.made.update(made))

    # --- what clients do ----------------------------------------------------------------------

    def put(self, session, unit, address, done, durable_share=0.8):
        """Send one message to an address."""
        chance, number = self.chance, self._next
        self._next += 1
        is_durable = chance.random() < durable_share
        one = message("x" * chance.choice([5, 100]), address, durable=is_durable, n=number)
        queues = {queue: self.made[queue] for queue in ADDRESSES[address]}
        self.ledger.sent[number] = Sent(unit, is_durable, queues)
        if chance.random() < 0.15:
            session.uploads.begin(Message.decode_headers(one.encode_headers()))
            session.uploads.append(b"large" * 10)
            session.uploads.end(-1, done)
        else:
            session.send(one, done)

    def address(self):
        return self.chance.choice(list(ADDRESSES))

    def send(self):
        session, address = self.session(), self.address()
        durable_share = self.chance.choice([0, 0.8, 1])
        for _ in range(self.chance.randint(1, 8)):
            unit = Unit(state=ASKED, is_alone=True)
            done = functools.partial(settle, unit)
            self.put(session, unit, address, done, durable_share)

    def acknowledge_some(self, taker, unit_of, done_of):
        picked = [number for number in taker.has if self.chance.random() < 0.7]
        for number in picked:
            unit = unit_of()
            self.ledger.acknowledge(taker.queue, number, unit)
            message_id = taker.has.pop(number)
            taker.session.acknowledge(0, message_id, done_of(unit), is_individual=True)

    def consume(self):
        queue = self.chance.choice(list(self.made))
        self._takers.append(Taker(self, queue, self.session()))

    def take(self):
        if self._takers:
            taker = self.chance.choice(self._takers)
            self.acknowledge_some(
                taker,
                lambda: Unit(state=ASKED, is_alone=True),
                lambda unit: functools.partial(settle, unit),
            )

    def leave(self):
        if self._takers:
            taker = self._takers.pop(self.chance.randrange(len(self._takers)))
            taker.session.close(has_failed=False)

    def fill(self, session, unit):
        for address in self.chance.sample(list(ADDRESSES), 2):
            for _ in range(self.chance.randint(0, 6)):
                self.put(session, unit, address, ignore)

    async def transaction(self):
        unit, session = Unit(), self.session(**TRANSACTED)
        taker = Taker(self, self.chance.choice(list(self.made)), session)
        self.fill(session, unit)
        for _ in range(self.chance.randint(0, 6)):
            await self.world.turn()
        self.acknowledge_some(taker, lambda: unit, lambda unit: ignore)
        session.stop()
        if self.chance.random() < 0.7:
            unit.state = ASKED
            session.commit(functools.partial(settle, unit))
        else:
            unit.state = UNDONE
            session.rollback(ignore)
        session.close(has_failed=False)

    async def prepare(self):
        session = self.session(**XA)
        unit = Unit(Xid(1, b"b", session.name.encode()))
        session.xa.start(unit.xid)
        taker = Taker(self, self.chance.choice(list(self.made)), session)
        self.fill(session, unit)
        for _ in range(self.chance.randint(0, 6)):
            await self.world.turn()
        self.acknowledge_some(taker, lambda: unit, lambda unit: ignore)
        session.stop()
        tx = session.tx
        session.xa.end(unit.xid, has_failed=False)
        unit.prepared = ASKED
        self.ledger.prepared[unit.xid] = unit

        def done(error):
            if error is None:
                unit.prepared = DONE
                self._prepared.append(unit)

        session.xa.prepare(unit.xid, done)
        unit.is_recorded = tx.has_records
        session.close(has_failed=False)

    def decide(self):
        if self._prepared:
            unit = self._prepared.pop(self.chance.randrange(len(self._prepared)))
            session = self.session(**XA)
            if self.chance.random() < 0.5:
                unit.state = ASKED
                session.xa.commit(unit.xid, False, functools.partial(settle, unit))
            else:
                unit.state = UNDONE
                session.xa.rollback(unit.xid, ignore)

    def make_anew(self):
        """Delete an address with all that is in it, and make it again at once."""
        deleted = [(queue, self.made[queue]) for queue in ADDRESSES["c"]]
        for one in deleted:
            self.ledger.deleted[one] = False
        for taker in [one for one in self._takers if one.queue in ADDRESSES["c"]]:
            self._takers.remove(taker)
            taker.session.close(has_failed=False)
        self.world.broker.parts.postoffice.addresses.delete("c", force=True)
        self.world.broker.parts.storage.after(lambda error: self.confirm(error, deleted))
        self.make("c")

    def confirm(self, error, deleted):
        assert error is None
        for one in deleted:
            self.ledger.deleted[one] = True

    async def live(self, turns):
        deeds = [self.send] * 4 + [self.take] * 4 + [self.consume, self.leave, self.decide]
        deeds += [self.transaction, self.prepare, self.make_anew]
        for _ in range(turns):
            deed = self.chance.choice(deeds)
            done = deed()
            if done is not None:
                await done
            for _ in range(self.chance.randint(0, 4)):
                await self.world.turn()


def settle(unit, error):
    assert error is None
    unit.state = DONE


def ignore(error):
    assert error is None


# --- after the crash ---------------------------------------------------------------------------


async def drained(work, world):
    """Take everything out of all queues: numbers of each, in order."""
    found = {}
    for queue in world.broker.parts.postoffice.addresses.queues.values():
        if queue.name not in work.made:
            continue
        await world.until(lambda one=queue: one.has_at_most(10**9))
        sink = found[queue.name] = Sink()
        session = work.session()
        consumer = session.create_consumer(0, queue.name, sink)
        session.start()
        consumer.receive_credits(-1)
        seen = 0

        def take(one=queue, sink=sink, session=session):
            nonlocal seen
            for got in sink.got[seen:]:
                session.acknowledge(0, got.message_id, ignore, is_individual=True)
            seen = len(sink.got)
            return one.message_count == 0

        await world.until(take)
        session.close(has_failed=False)
    return {name: [one.get("n") for one in sink.got] for name, sink in found.items()}


async def look_at(world, seed, crash):
    """Start on what a crash left, go on with it, and compare it with the ledger."""
    ledger, made = crash.expected
    await world.broker.start()
    work = Work(world, seed)
    addresses = world.broker.parts.postoffice.addresses
    # Some begin to read while pages are still being counted.
    for xid, unit in ledger.prepared.items():
        is_in_doubt = xid in world.broker.parts.transactions.in_doubt()
        if unit.state == OPEN:
            may_be_gone = unit.prepared == ASKED or not unit.is_recorded
            assert is_in_doubt or may_be_gone, f"{unit} is gone"
        if not is_in_doubt:
            if unit.state == OPEN:
                unit.state = UNDONE
            continue
        assert unit.state != DONE, f"{unit} is in doubt again"
        session = work.session(**XA)
        if unit.state == UNDONE or (unit.state == OPEN and work.chance.random() < 0.5):
            session.xa.rollback(xid, ignore)
            unit.state = UNDONE
        else:
            session.xa.commit(xid, False, ignore)
            unit.state = DONE
    assert world.broker.parts.transactions.in_doubt() == ()
    later = {}
    for address, queues in ADDRESSES.items():
        for queue in queues:
            assert queue in addresses.queues or (queue, made[queue] - 1) in ledger.deleted
        if all(queue in addresses.queues for queue in queues):
            session = work.session()
            for number in range(10):
                name = f"{address}{number}"
                session.send(message("later" * 5, address, n=name), ignore)
                for queue in queues:
                    later.setdefault(queue, set()).add(name)
    await world.until(lambda: world.broker.parts.storage.completions.is_idle)
    found = await drained(work, world)
    for queue in found:
        new = [one for one in found[queue] if isinstance(one, str)]
        assert len(new) == len(set(new)), f"doubled in {queue}"
        assert set(new) == later[queue], f"lost in {queue}"
        found[queue] = [one for one in found[queue] if not isinstance(one, str)]
        ledger.check(queue, made[queue], found[queue])
    ledger.check_whole({queue: set(found.get(queue, ())) for queue in made})
    assert world.broker.failure is None
    await world.broker.stop()


async def look_at_the_rest(world):
    """Nothing is left behind, on the disk or in the journal."""
    await world.broker.start()
    await world.until(lambda: not world.pages_left())
    await world.until(lambda: not list(world.folder.glob("largemessages/*")))
    await world.until(lambda: len(world.messages) == 0)
    await world.broker.stop()


async def live_and_crash(world, seed):
    await world.broker.start()
    work = Work(world, seed)
    for address in ADDRESSES:
        work.make(address)
    await world.until(lambda: world.broker.parts.storage.completions.is_idle)
    world.expect = work.expect
    world.crash_chance = 0.01
    await work.live(world.chance.randint(10, 40))
    world.expect = None
    assert world.broker.failure is None
    await world.broker.stop()


def run(folder, seed, monkeypatch):
    """One broker_run, and what each of its crashes left."""
    chance = chance_of(seed)
    monkeypatch.setattr(loading, "_COUNTED_AT_ONCE", chance.choice([0, 1 << 25]))
    monkeypatch.setattr(page_writer, "_FILLING_SIZE_MAX", chance.choice([500, 1 << 24]))
    folder = folder / str(seed)
    folder.mkdir()
    with monkeypatch.context() as patched:
        world = World(folder / "data", chance, patched, **options(chance))
        asyncio.run(live_and_crash(world, seed))
    crashes = world.crashes
    for crash in crashes[:5]:
        with monkeypatch.context() as patched:
            world = World(crash.folder, chance, patched, crash, **options(chance))
            asyncio.run(look_at(world, seed, crash))
        rest = Crash(crash.folder, world.bindings.ops, world.messages.ops, None)
        with monkeypatch.context() as patched:
            world = World(crash.folder, chance, patched, rest, **options(chance))
            asyncio.run(look_at_the_rest(world))
    return len(crashes)


def run_all(folder, seeds, monkeypatch):
    return sum(run(folder, seed, monkeypatch) for seed in seeds)


def test_nothing_confirmed_is_lost_doubled_or_invented(tmp_path, monkeypatch, effort):
    assert run_all(tmp_path, range(effort(2000, least=12)), monkeypatch) > 0


# --- it finds what it is for -------------------------------------------------------------------


def forget_at_once(patched):
    """A transaction goes with its first page, though others are not counted yet."""
    real = transactions.PageTransactions.__init__

    def init(self, appends):
        real(self, appends)
        self._is_all_counted = True

    patched.setattr(transactions.PageTransactions, "__init__", init)


def append_to_any_page(patched):
    """Records that are ahead of the last page are not looked at."""
    patched.setattr(loading.PageLoader, "_is_ahead", lambda store, page: False)


def give_new_folders(patched):
    """An address that is made anew has a folder of its own at once, and its pages begin with 1.

    A start would get past that: it deletes the page whose queues are gone.
    """
    patched.setattr(
        paging.Paging,
        "_new_store",
        lambda self, name, memory: self.add_store(name, memory, self.new_folder(name)),
    )
    patched.setattr(loading.PageLoader, "_drop_unused", lambda loader, folder, number: False)


def delete_behind_the_folder(patched):
    """Pages of a deleted address are still deleted by themselves."""
    real = paging.Paging.address_deleted

    def address_deleted(self, name):
        store = self.stores.get(name)
        pages = {} if store is None else dict(store.pages)
        real(self, name)
        if store is not None:
            store.pages.update(pages)

    patched.setattr(paging.Paging, "address_deleted", address_deleted)


def assert_found(plant, folder, monkeypatch):
    with monkeypatch.context() as patched:
        plant(patched)
        with pytest.raises((AssertionError, JournalError)):
            run_all(folder, range(PLANTED_MAX), monkeypatch)


@pytest.mark.parametrize("plant", [forget_at_once, delete_behind_the_folder])
def test_a_planted_bug_is_found(tmp_path, monkeypatch, plant):
    assert_found(plant, tmp_path, monkeypatch)


@pytest.mark.slow
def test_a_planted_bug_that_shows_seldom_is_found(tmp_path, monkeypatch):
    assert_found(give_new_folders, tmp_path, monkeypatch)


@pytest.mark.soak
def test_a_planted_bug_that_hardly_ever_shows_is_found(tmp_path, monkeypatch):
    assert_found(append_to_any_page, tmp_path, monkeypatch)
