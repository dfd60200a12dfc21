"""Large messages on a database, moved: other clients go on meanwhile, and a crash at any row that
is copied loses and doubles nothing."""

import asyncio
import contextlib
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from broker.model.routing_type import RoutingType
from broker.records.binding_records import Divert
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from jdbcstore.blobs import SqlFiles
from jdbcstore.options import DatabaseStoreOptions
from journal.errors import JournalIOError
from tests.broker.bench import message
from tests.broker.test_recovery import BrokerRun, durable

MIB = 1 << 20
SIZE = 3 * MIB + 17
DEADLINE_S = 60
DIVERT = Divert(
    name="d",
    address="q",
    routing_name="d",
    exclusive=True,
    forwarding_address="to",
    filter=None,
    transformer=None,
    routing_type=RoutingType.PASS,
)
HOWS = pytest.mark.parametrize("how", ["expired", "killed", "moved", "diverted"])


class Copying:
    """Stands before every row that is copied, and lets it pass when the test says so."""

    def __init__(self, monkeypatch):
        self.has_begun = threading.Event()
        self.may_pass = threading.Event()
        self.on_row = lambda: None
        self.failure = None
        copy_rows = SqlFiles.copy_rows

        def slowly(files, source, target):
            self.has_begun.set()
            # It ends by itself, so that a loop that stands still is seen to have done so.
            self.may_pass.wait(DEADLINE_S)
            for size in copy_rows(files, source, target):
                self.on_row()
                if self.failure is not None:
                    raise self.failure
                yield size

        monkeypatch.setattr(SqlFiles, "copy_rows", slowly)


@pytest.fixture
def copying(monkeypatch):
    gate = Copying(monkeypatch)
    yield gate
    gate.may_pass.set()


class World(BrokerRun):
    """A broker on SQLite with a queue `q`, from which messages go to `to` one way or another."""

    def __init__(self, folder, how="killed"):
        self.database = Path(folder) / "broker.sqlite"
        self.database.parent.mkdir(exist_ok=True)
        settings = SettingsRepository()
        settings.add(
            "#",
            AddressSettings(max_delivery_attempts=1, expiry_address="to", dead_letter_address="to"),
        )
        store = DatabaseStoreOptions(
            connection_url=f"sqlite:///{self.database}",
            lock_expiration_ms=60_000,
            ride_out_ms=60_000,
        )
        diverts = (DIVERT,) if how == "diverted" else ()
        super().__init__(folder, store=store, settings=settings, diverts=diverts)

    def queue_of(self, name):
        return self.broker.parts.postoffice.addresses.queues[name]

    async def begin(self):
        for name in ("q", "to", "other"):
            await self.queue(name)

    async def send_large(self, size=SIZE, **properties):
        session = self.session()
        large = message("", address="q", **properties)
        large.is_large = True
        large.body = b""
        session.uploads.begin(large)
        session.uploads.append(body(size))
        there = asyncio.Event()
        while not session.uploads.finish(there.set):
            await there.wait()
            there.clear()
        await durable(session.uploads.end, size)

    def out(self, reference, how):
        """Let a reference go `how`; a task."""
        if how == "moved":
            return asyncio.ensure_future(
                self.drive(
                    self.broker.parts.dead_letters.move_to_queue(reference, self.queue_of("to"))
                )
            )
        if how == "expired":
            self.broker.parts.dead_letters.expire(reference)
        else:
            self.queue_of("q").take(reference)
            reference.delivery_count = 1
            self.queue_of("q").give_back([reference])
        return asyncio.ensure_future(asyncio.sleep(0))

    @staticmethod
    async def drive(moving):
        while True:
            try:
                delay_s = next(moving)
            except StopIteration as end:
                return end.value
            await asyncio.sleep(delay_s)

    async def until(self, condition):
        async with asyncio.timeout(DEADLINE_S):
            while not condition():  # noqa: ASYNC110 - it has no event.
                await asyncio.sleep(0.005)

    def contents(self, name):
        return [content(one) for one in self.queue_of(name).references()]


def body(size):
    return b"".join(number.to_bytes(4, "big") * 1024 for number in range(size // 4096 + 1))[:size]


def content(reference):
    large = reference.message.large
    if large is None:
        return bytes(reference.message.body)
    return b"".join(large.read(at, MIB) for at in range(0, large.size, MIB))


def crash_copy(database, folder):
    """The database as a crash leaves it now, for a broker whose lease has ended."""
    folder.mkdir()
    with (
        contextlib.closing(sqlite3.connect(database)) as source,
        contextlib.closing(sqlite3.connect(folder / database.name)) as target,
    ):
        source.backup(target)
        tables = {
            row[0].upper(): row[0]
            for row in target.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        target.execute(
            f"UPDATE {tables['NODE_MANAGER_STORE']} "
            "SET HOLDER_ID = NULL, HOLDER_EXPIRATION_TIME = NULL"
        )
        target.commit()
    return folder


def bodies_in(database):
    """Names of the bodies that are in a database."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return {row[0] for row in connection.execute("SELECT FILENAME FROM LARGE_MESSAGES")}


@HOWS
def test_others_go_on_while_a_body_is_copied(tmp_path, copying, how):
    async def live():
        async with World(tmp_path, how) as world:
            await world.begin()
            if how == "diverted":
                task = asyncio.ensure_future(world.send_large())
            else:
                await world.send_large()
                await world.send(message("behind", address="q"))
                large, small = world.queue_of("q").references()
                task = world.out(large, how)
                if how != "moved":
                    # It does not overtake.
                    world.out(small, how)
            await world.until(copying.has_begun.is_set)

            for number in range(10):
                await world.send(message(str(number), address="other"))
            assert world.bodies("other") == [str(number) for number in range(10)]
            assert not copying.may_pass.is_set()
            assert world.contents("to") == []
            if how in ("expired", "killed"):
                assert world.queue_of("q").delivering_count == 2

            copying.may_pass.set()
            await task
            expected = [body(SIZE), b"behind"] if how in ("expired", "killed") else [body(SIZE)]
            await world.until(lambda: world.queue_of("to").message_count == len(expected))
            assert world.contents("to") == expected
            assert world.queue_of("q").delivering_count == 0
        async with World(tmp_path) as world:
            assert world.contents("to") == expected
            assert world.contents("q") == ([b"behind"] if how == "moved" else [])
        assert len(bodies_in(world.database)) == 1

    asyncio.run(live())


@HOWS
def test_a_crash_at_any_row_leaves_it_in_one_place(tmp_path, copying, how):
    crashes = []

    def crash(database):
        crashes.append(crash_copy(database, tmp_path / f"crash{len(crashes)}"))

    async def live():
        async with World(tmp_path / "first", how) as world:
            await world.begin()
            if how != "diverted":
                await world.send_large()
            copying.on_row = lambda: crash(world.database)
            copying.may_pass.set()
            if how == "diverted":
                await world.send_large()
            else:
                await world.out(next(world.queue_of("q").references()), how)
            await world.until(lambda: world.queue_of("to").message_count == 1)
            crash(world.database)
        assert len(crashes) == 5, "four rows, and the end"
        for folder in crashes:
            is_last = folder is crashes[-1]
            async with World(folder) as world:
                waiting = world.contents("q") + world.contents("to")
                # What is diverted was not confirmed before.
                assert waiting == ([] if how == "diverted" and not is_last else [body(SIZE)])
                if is_last:
                    assert world.contents("q") == []
                await durable(world.broker.parts.storage.after)
            # Bodies without a message are gone.
            assert len(bodies_in(world.database)) == len(waiting)
            shutil.rmtree(folder)

    asyncio.run(live())


def test_a_queue_that_is_deleted_meanwhile_takes_it_along(tmp_path, copying):
    async def live():
        async with World(tmp_path) as world:
            await world.begin()
            await world.send_large()
            queue = world.queue_of("q")
            world.out(next(queue.references()), "killed")
            await world.until(copying.has_begun.is_set)

            world.broker.parts.postoffice.addresses.delete_queue("q")
            copying.may_pass.set()

            await world.until(lambda: queue.delivering_count == 0)
            assert world.contents("to") == []
        async with World(tmp_path) as world:
            assert world.contents("to") == []
        assert bodies_in(world.database) == set()

    asyncio.run(live())


def test_what_was_taken_while_an_operator_moves_it_is_not_moved(tmp_path, copying):
    async def live():
        async with World(tmp_path) as world:
            await world.begin()
            await world.send_large()
            task = world.out(next(world.queue_of("q").references()), "moved")
            await world.until(copying.has_begun.is_set)

            sink = world.consume("q")
            await world.until(lambda: len(sink.got) == 1)
            copying.may_pass.set()

            assert await task is False
            assert world.contents("to") == []
            assert world.queue_of("q").delivering_count == 1
        # It was delivered as often as may be: the stop waited for its body.
        assert len(bodies_in(world.database)) == 1
        async with World(tmp_path) as world:
            assert world.contents("q") == []
            assert world.contents("to") == [body(SIZE)]

    asyncio.run(live())


def test_a_body_that_cannot_be_copied_stops_the_broker_and_stays(tmp_path, copying):
    copying.failure = JournalIOError(5, "no more rows")

    async def live():
        world = World(tmp_path)
        await world.broker.start()
        await world.begin()
        await world.send_large()
        copying.may_pass.set()
        world.out(next(world.queue_of("q").references()), "killed")

        assert await asyncio.wait_for(world.broker.failed(), DEADLINE_S) is copying.failure
        await world.broker.stop()
        async with World(tmp_path) as again:
            assert again.contents("q") == [body(SIZE)]
            assert again.contents("to") == []

    asyncio.run(live())


def test_a_divert_whose_body_cannot_be_copied_refuses_the_message(tmp_path, copying):
    copying.failure = JournalIOError(5, "no more rows")
    copying.may_pass.set()

    async def live():
        async with World(tmp_path, "diverted") as world:
            await world.begin()

            with pytest.raises(JournalIOError, match="no more rows"):
                await world.send_large()

            await world.send(message("next", address="other"))
            assert world.contents("q") == world.contents("to") == []
        assert bodies_in(world.database) == set()

    asyncio.run(live())
