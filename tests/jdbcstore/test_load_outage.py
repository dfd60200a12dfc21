"""A load goes on behind an outage: every record once, in order, or one clear error."""

import itertools
import threading

import pytest

from jdbcstore.errors import LeaseLost
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.record_tables.choose import record_table
from jdbcstore.schema import journal_table
from jdbcstore.store import SqlStore
from journal.errors import JournalIOError
from tests.crash.model import open_and_load

SERVERS = ["postgresql", "mariadb"]
ROWS, BODY_SIZE = 24_000, 1000
# A test that is delayed for a minute must not fail.
PATIENT = {"network_timeout_ms": 300_000, "lock_expiration_ms": 600_000, "ride_out_ms": 600_000}


def body_of(record_id):
    return record_id.to_bytes(4, "big") * (BODY_SIZE // 4)


def filled(url):
    """A table of ROWS records, some of them in a prepared transaction."""
    store = SqlStore(DatabaseStoreOptions(connection_url=url, **PATIENT))
    open_and_load(store)
    for record_id in range(1, ROWS + 1):
        store.add(record_id, 1, body_of(record_id), sync=False)
        if record_id == ROWS // 3:
            store.add(ROWS + 1, 2, b"prepared", tx=77)
            store.prepare(77, b"xid", sync=True)
    store.close()


@pytest.fixture
def new_store(database):
    filled(database.url)
    stores = []

    def new(**changes):
        stores.append(SqlStore(DatabaseStoreOptions(connection_url=database.url, **changes)))
        stores[-1].open()
        return stores[-1]

    yield new
    database.server.ensure_running()
    for store in stores:
        store.close()


@pytest.mark.own_server
@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_every_record_comes_once_through_restarts_of_the_server(database, new_store):
    store = new_store(**PATIENT)
    ids, starters = [], []

    def take(batch):
        ids.extend(record.record_id for record in batch)
        assert all(record.body == body_of(record.record_id) for record in batch)
        if len(ids) > (len(starters) + 1) * ROWS // 5:
            for starter in starters:
                starter.join()
            database.server.kill9()
            starters.append(threading.Timer(0.3, database.server.start))
            starters[-1].start()

    result = store.load(take)
    for starter in starters:
        starter.join()

    assert len(starters) >= 3
    assert ids == list(range(1, ROWS + 1))
    assert [(tx.tx_id, tx.extra) for tx in result.prepared] == [(77, b"xid")]
    assert store.stats()["outages"] >= 2  # The last kill may find everything read.
    store.commit(77, sync=True)
    assert len(store) == ROWS + 1


@pytest.mark.own_server
@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_a_load_waits_no_longer_than_it_may(database, new_store):
    store = new_store(**PATIENT | {"ride_out_ms": 300})

    with pytest.raises(JournalIOError):
        store.load(lambda _: database.server.is_running and database.server.kill9())


@pytest.mark.own_server
@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_a_load_ends_when_somebody_else_had_the_store_meanwhile(database, new_store):
    store = new_store(**PATIENT)
    read = []

    def take(batch):
        if not read:
            database.server.kill9()
            database.server.start()
            table = database_table(store)
            with store.leased._database.connect() as connection:
                connection.exec_driver_sql(f"UPDATE {table} SET HOLDER_ID = 'other' WHERE ID = 1")
                connection.commit()
        read.extend(batch)

    with pytest.raises(LeaseLost):
        store.load(take)

    assert len(read) < ROWS


def database_table(store):
    return store.leased._database.dialect.quoted(store.leased.lease._table.table)


@pytest.mark.parametrize("database", ["sqlite", *SERVERS], indirect=True)
def test_what_a_load_holds_is_bounded_by_bytes(database):
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url, **PATIENT))
    open_and_load(store)
    sizes = [1 << 20] * 20 + [10] * 3000 + [6 << 20, 10, 3 << 20, 3 << 20]
    for record_id, size in enumerate(sizes, 1):
        store.add(record_id, 1, bytes(size), sync=False)
    store.close()
    batches = []

    store = SqlStore(DatabaseStoreOptions(connection_url=database.url, **PATIENT))
    store.open()
    store.load(lambda batch: batches.append([len(record.body) for record in batch]))
    store.close()

    assert [size for batch in batches for size in batch] == sizes
    assert all(sum(batch) <= 5 << 20 or len(batch) == 1 for batch in batches)


@pytest.mark.parametrize("database", ["sqlite", *SERVERS], indirect=True)
def test_rows_with_the_same_seq_are_not_parted(database):
    """Artemis numbers rows by one counter a journal, which two of its brokers would share."""
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url, **PATIENT))
    store.open()
    connected = store.leased._database
    table = record_table(connected, journal_table("MESSAGES", connected.dialect), None)
    assert table.body_size_max >= 3 << 20
    seqs = [1, 2, 2, 2, 3] if not connected.dialect.seq_is_key else [1, 2, 3, 4, 5]
    with table.connection.begin():
        table.insert_rows(
            [(at, 11, 0, bytes(3 << 20), 0, b"", seq) for at, seq in enumerate(seqs, 1)]
        )

    pages = [[row[6] for row in rows] for rows in table.scan()]
    behind = [row[0] for rows in table.scan(2) for row in rows]
    table.disconnect()
    store.close()

    assert [seq for page in pages for seq in page] == seqs
    assert all(set(one).isdisjoint(other) for one, other in itertools.pairwise(pages))
    assert len(pages) > 1
    assert behind == [at for at, seq in enumerate(seqs, 1) if seq > 2]
