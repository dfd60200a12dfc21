"""Random work on addresses whose pages are in a database, a kill at some commit, and what is found.

The work, the ledger and the looks are those of test_crash_anywhere.py; journals are simulated as
there. The database is a real one. A kill is before a transaction of a page table, or behind it, or
between two turns of the broker. From then on nothing of that broker reaches the tables.
"""

import asyncio
import contextlib

import pytest
import sqlalchemy

from broker.paging import loading
from broker.storage import page_writer
from broker.storage.page_tables import TableFolder, TableFolders
from jdbcstore.blobs import SqlFiles
from jdbcstore.database import Database
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.pages import PageStores
from journal.errors import JournalError, JournalIOError
from tests.broker.paging import world as worlds
from tests.broker.paging.test_crash_anywhere import (
    ADDRESSES,
    Work,
    look_at,
    look_at_the_rest,
    options,
)
from tests.broker.paging.world import Crash, chance_of

# Seeds until a planted bug is found.
PLANTED_MAX = 300


class Killed(Exception):
    """The broker is no more."""


class TableWorld(worlds.World):
    """A run whose pages are in tables, and that ends with its crash."""

    def __init__(self, url, folder, chance, monkeypatch, crash=None, **options):
        self._url = url
        self._stores = None
        self.is_dead = False
        super().__init__(folder, chance, monkeypatch, crash, **options)
        for name in ("start", "write"):
            monkeypatch.setattr(SqlFiles, name, self._transaction(getattr(SqlFiles, name)))

    def _folders(self):
        self.database = Database(DatabaseStoreOptions(connection_url=self._url))
        self._stores = PageStores(self.database, fence=None)
        self._stores.start()
        return TableFolders(self._stores)

    def _transaction(self, real):
        def call(files, *arguments, **how):
            self._live()
            self.maybe_crash()
            self._live()
            result = real(files, *arguments, **how)
            self.maybe_crash()
            self._live()
            return result

        return call

    def _live(self):
        if self.is_dead:
            raise JournalIOError(0, "the dead write nothing")

    def maybe_crash(self):
        if not self.is_dead:
            super().maybe_crash()
            self.is_dead = bool(self.crashes)

    async def turn(self):
        await super().turn()
        if self.is_dead:
            raise Killed

    def pages_left(self):
        return [
            name
            for files in PageStores(self.database, fence=None).load().values()
            for name in files.names("page")
        ]


async def live_and_die(world, seed):
    """Work until the crash; without one until the end."""
    await world.broker.start()
    work = Work(world, seed)
    for address in ADDRESSES:
        work.make(address)
    await world.until(lambda: world.broker.parts.storage.completions.is_idle)
    world.expect = work.expect
    world.crash_chance = 0.02
    try:
        await work.live(world.chance.randint(10, 40))
    except (Killed, JournalError, AssertionError):
        # What was in the midst of something when it was killed knows nothing of that.
        if not world.is_dead:
            raise
    world.expect = None
    with contextlib.suppress(JournalError):
        await world.broker.stop()


def empty(url):
    """Drop what an earlier run left."""
    engine = sqlalchemy.create_engine(url)
    try:
        found = sqlalchemy.MetaData()
        found.reflect(engine)
        found.drop_all(engine)
    finally:
        engine.dispose()


def run(url, folder, seed, monkeypatch):
    """One broker_run, and what its crash left; whether there was one."""
    chance = chance_of(seed)
    monkeypatch.setattr(loading, "_COUNTED_AT_ONCE", chance.choice([0, 1 << 25]))
    monkeypatch.setattr(page_writer, "_FILLING_SIZE_MAX", chance.choice([500, 1 << 24]))
    folder = folder / str(seed)
    folder.mkdir()
    empty(url)
    settings = options(chance)

    def broker_run(at, crash, part):
        with monkeypatch.context() as patched:
            world = TableWorld(url, at, chance, patched, crash, **settings)
            try:
                asyncio.run(part(world))
            finally:
                world.database.close()
        return world

    world = broker_run(folder / "data", None, lambda world: live_and_die(world, seed))
    for crash in world.crashes:
        looked = broker_run(
            crash.folder, crash, lambda world, crash=crash: look_at(world, seed, crash)
        )
        rest = Crash(crash.folder, looked.bindings.ops, looked.messages.ops, None)
        broker_run(crash.folder, rest, look_at_the_rest)
    return len(world.crashes)


def run_all(url, folder, seeds, monkeypatch):
    return sum(run(url, folder, seed, monkeypatch) for seed in seeds)


@pytest.mark.parametrize(("kind", "least"), [("sqlite", 8), ("postgresql", 3), ("mariadb", 3)])
def test_nothing_confirmed_is_lost_doubled_or_invented(
    tmp_path, new_database, monkeypatch, effort, kind, least
):
    url = new_database(kind).url

    assert run_all(url, tmp_path, range(effort(500, least=least)), monkeypatch) > 0


def test_a_planted_bug_is_found(tmp_path, new_database, monkeypatch):
    """What was told to be in a page has not been committed."""
    real = TableFolder.append
    forgotten = []

    def append(folder, page, data):
        # It is written with what comes next.
        forgotten.append((folder, page, data))
        if len(forgotten) % 2 == 0:
            for one in forgotten[-2:]:
                real(*one)

    monkeypatch.setattr(TableFolder, "append", append)

    with pytest.raises((AssertionError, JournalError)):
        run_all(new_database("sqlite").url, tmp_path, range(PLANTED_MAX), monkeypatch)
