"""The stores that keep the contract, and what each of them can do.

A new implementation of RecordStore adds a row to STORES; capabilities are declared there, and no
test asks for a store by its name.
"""

import random
from dataclasses import dataclass

import pytest

from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from journal.journal import Journal
from journal.options import JournalOptions, JournalType
from tests.crash.model import open_and_load, read_folder_view
from tests.crash.states import copy_out
from tests.jdbcstore.reading import read_table_view
from tests.jdbcstore.sql_server_stub import SqlServerStub, skip_without_driver
from tests.newest_servers import NEWEST_SERVERS
from tests.servers import new_embedded_derby
from tests.sim.record_log import Disk, RecordLog
from tests.sim.store import BUFFER_TIMEOUT_S, MemoryStore


@dataclass(frozen=True)
class Capabilities:
    """What a store declares about itself."""

    survives_abandonment: bool = True
    compacts: bool = True


class FileStores:
    """Makes journals over one folder.

    Attributes:
        can: what these stores declare.
    """

    can = Capabilities()

    def __init__(self, folder, kind, checksums):
        self.folder = folder
        self.kind = kind
        self.checksums = checksums
        self.open_stores = []

    def options(self, folder, **changes):
        return JournalOptions(
            directory=folder,
            journal_type=JournalType(self.kind),
            checksums=self.checksums,
            **{"file_size": 65536, "buffer_size": 65536, "lock_acquisition_timeout_ms": 0}
            | changes,
        )

    def new(self, **changes):
        """A store that is not open yet."""
        store = Journal(self.options(self.folder, **changes))
        self.open_stores.append(store)
        return store

    def loaded(self, **changes):
        """A store that accepts appends."""
        store = self.new(**changes)
        open_and_load(store)
        return store

    def reopened(self):
        """(a loaded store, what it held)."""
        store = self.new()
        view, _ = open_and_load(store)
        return store, view

    def abandoned_view(self, tmp_path):
        """What a new start would find if the process died now."""
        files = {file.name: file.read_bytes() for file in self.folder.iterdir() if file.is_file()}
        copy_out(files, tmp_path / "copy")
        return read_folder_view(tmp_path / "copy")[0]

    def patient(self, seconds):
        """A store whose records wait that long for others, if no caller waits for them."""
        return self.loaded(buffer_timeout_ns=int(seconds * 1e9))

    def close(self):
        for store in self.open_stores:
            store.close()


class SqlStores:
    """Makes stores over one table of one database.

    Attributes:
        can: what these stores declare.
    """

    can = Capabilities()

    def __init__(self, database):
        self.url = database.url
        self.open_stores = []

    def new(self, *, sync_period_ms=5, **changes):
        """A store that is not open yet; sizes of files and buffers mean nothing to it."""
        del changes
        store = SqlStore(
            DatabaseStoreOptions(
                connection_url=self.url,
                lock_acquisition_timeout_ms=600_000,
                # A machine that stalls for a while must not fail a test.
                lock_expiration_ms=300_000,
                network_timeout_ms=300_000,
                journal_sync_period_ms=sync_period_ms,
            )
        )
        self.open_stores.append(store)
        return store

    def loaded(self, **changes):
        """A store that accepts appends."""
        store = self.new(**changes)
        open_and_load(store)
        return store

    def reopened(self):
        """(a loaded store, what it held)."""
        store = self.new()
        view, _ = open_and_load(store)
        return store, view

    def abandoned_view(self, tmp_path):
        """What a new start would find if the process died now."""
        del tmp_path
        return read_table_view(self.url)

    def patient(self, seconds):
        """A store whose records wait that long for others, if no caller waits for them."""
        return self.loaded(sync_period_ms=int(seconds * 1000))

    def close(self):
        for store in self.open_stores:
            store.close()


class MemoryStores:
    """Makes stores over one log in memory: the simulation's.

    Attributes:
        can: what these stores declare.
    """

    can = Capabilities()

    def __init__(self):
        self.log = RecordLog(Disk(random.Random(1)))
        self.open_stores = []

    def new(self, *, buffer_timeout_s=BUFFER_TIMEOUT_S, **changes):
        """A store that is not open yet; sizes of files and buffers mean nothing to it."""
        del changes
        store = MemoryStore(self.log, buffer_timeout_s=buffer_timeout_s)
        self.open_stores.append(store)
        return store

    def loaded(self, **changes):
        """A store that accepts appends."""
        store = self.new(**changes)
        open_and_load(store)
        return store

    def reopened(self):
        """(a loaded store, what it held)."""
        store = self.new()
        view, _ = open_and_load(store)
        return store, view

    def abandoned_view(self, tmp_path):
        """What a new start would find if the power failed now, and nothing more was there."""
        del tmp_path
        copy = RecordLog(self.log.disk)
        copy.entries = self.log.entries[: self.log.synced]
        return open_and_load(MemoryStore(copy))[0]

    def patient(self, seconds):
        """A store whose records wait that long for others, if no caller waits for them."""
        return self.loaded(buffer_timeout_s=seconds)

    def close(self):
        for store in self.open_stores:
            store.close()


STORES = {
    f"{kind.value}-{'checksums' if checksums else 'plain'}": (
        lambda folder, kind=kind, checksums=checksums: FileStores(folder, kind, checksums)
    )
    for kind in JournalType
    for checksums in (True, False)
}
# Fetched where they are not in the cache folder.
NEWEST = list(NEWEST_SERVERS)
# By the names of tests/servers.py; a server that is missing skips with the reason.
DATABASES = ["sqlite", "postgresql", "mariadb", "derby", "derby-embedded", *NEWEST]
# Speak a vendor's protocol to his driver, and keep the rows elsewhere.
STUBS = ["sql-server-stub"]
# Making a database takes Derby seconds.
SLOW = ["derby", "derby-embedded", *NEWEST, *STUBS]
PARAMETERS = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
    for name in (*STORES, "memory", *DATABASES, *STUBS)
]


@pytest.fixture(params=PARAMETERS)
def stores(request, tmp_path):
    """Stores of one kind over one place, closed at the end."""
    stub = None
    if request.param == "sql-server-stub":
        skip_without_driver()
        stub = SqlServerStub(tmp_path)
        stores = SqlStores(stub)
    elif request.param == "memory":
        stores = MemoryStores()
    elif request.param == "derby-embedded":
        stores = SqlStores(new_embedded_derby(tmp_path))
    elif request.param in DATABASES:
        stores = SqlStores(request.getfixturevalue("new_database")(request.param))
    else:
        stores = STORES[request.param](tmp_path / "store")
    yield stores
    stores.close()
    if stub is not None:
        stub.close()


@pytest.fixture
def store(stores):
    """One store that accepts appends."""
    return stores.loaded()
