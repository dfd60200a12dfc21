"""Tables as Artemis leaves them, row kind by row kind."""

import pytest

from jdbcstore.live import LiveIds
from jdbcstore.loading import TableLoader
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from journal.errors import UnsupportedFormat
from tests.crash.model import open_and_load, record_view, transactions_view
from tests.jdbcstore.reading import read_table_view

LIVE = ["sqlite", "postgresql", "mariadb"]


def loaded(*rows):
    """The view of rows (id, type, user type, body, tx, tx data), seq by place."""
    records = []
    loader = TableLoader(LiveIds(), lambda batch: records.extend(map(record_view, batch)))
    loader.take([(*row, seq) for seq, row in enumerate(rows, 1)])
    result = loader.finish()
    return (tuple(records), *transactions_view(result)), loader


def test_an_update_written_as_an_add_is_an_update():
    view, _ = loaded((1, 11, 45, b"a", 0, b""), (1, 11, 34, b"b", 0, b""), (1, 12, 9, b"c", 0, b""))

    assert view[0] == ((1, False, 45, b"a"), (1, True, 34, b"b"), (1, True, 9, b"c"))


def test_a_committed_transaction_counts_at_its_commit_row():
    view, loader = loaded(
        (2, 13, 45, b"two", 7, b""),
        (3, 11, 45, b"three", 0, b""),
        (2, 14, 46, b"again", 7, b""),
        (9, 15, 255, b"", 7, b""),
        (-1, 18, 255, b"", 7, b""),
    )

    assert [(record, update) for record, update, *_ in view[0]] == [
        (3, False),
        (2, False),
        (2, True),
    ]
    assert view[1:] == ((), ())
    assert loader.committed == [7]


def test_prepared_and_open_transactions_are_told_apart():
    view, loader = loaded(
        (2, 13, 45, b"two", 7, b""),
        (4, 15, 255, b"why", 7, b""),
        (3, 13, 45, b"three", 8, b""),
        (0, 17, 255, b"", 7, b"xid"),
    )

    assert view[1] == ((7, b"xid", ((2, False, 45, b"two"),), ((4, b"why"),)),)
    assert view[2] == ((8, ((3, False, 45, b"three"),), ()),)
    assert [one.deleted_ids for one in loader.prepared_transactions()] == [[4]]


def test_a_commit_of_an_unknown_transaction_is_ignored():
    view, _ = loaded((-1, 18, 255, b"", 7, b""))

    assert view == ((), (), ())


def test_a_row_that_no_journal_writes_is_refused():
    with pytest.raises(UnsupportedFormat, match="recordType 99"):
        loaded((1, 99, 0, b"", 0, b""))


def insert(url, *rows):
    store = SqlStore(DatabaseStoreOptions(connection_url=url))
    store.open()
    store.leased.table.connect()
    with store.leased.table.connection.begin():
        store.leased.table.insert_rows([(*row, seq) for seq, row in enumerate(rows, 1)])
    store.close()


@pytest.mark.parametrize("database", LIVE, indirect=True)
def test_a_load_tidies_up_what_artemis_leaves_and_the_table_does_not_grow(database):
    insert(
        database.url,
        (1, 11, 45, b"one", 0, b""),
        (2, 13, 200, b"two", 7, b""),
        (9, 15, 255, b"", 7, b""),
        (-1, 18, 255, b"", 7, b""),
        (3, 13, 45, b"open", 8, b""),
        (4, 13, 45, b"prepared", 9, b""),
        (1, 15, 255, b"why", 9, b""),
        (0, 17, 255, b"", 9, b"xid"),
    )

    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    view, result = open_and_load(store)
    rows_after_load = store.leased.table.count()
    store.commit(9, sync=True)
    store.delete(2, sync=True)
    rows_left = store.leased.table.count()
    store.close()

    assert [record for record, *_ in view[0]] == [1, 2]
    assert view[0][1] == (2, False, 200, b"two")
    assert [tx.tx_id for tx in result.prepared] == [9]
    assert [tx.tx_id for tx in result.failed] == [8]
    assert rows_after_load == 5
    assert rows_left == 1
    assert read_table_view(database.url) == (((4, False, 45, b"prepared"),), (), ())


@pytest.mark.parametrize("database", LIVE, indirect=True)
@pytest.mark.parametrize("size", [100, 300_000])
def test_transactions_of_any_size_leave_nothing_over(database, size):
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    store.add(1, 1, b"goes", sync=True)
    for record in range(10, 20):
        store.add(record, 2, bytes([record]) * size, tx=50)
    store.update(10, 3, b"updated", tx=50)
    store.delete(1, tx=50)
    store.add(5, 1, b"in between", sync=True)
    store.commit(50, sync=True)
    store.add(6, 1, b"behind", sync=True)
    rows = store.leased.table.count()
    for record in (*range(10, 20), 5, 6):
        store.delete(record, sync=False)
    store.sync()
    left = store.leased.table.count()
    store.add(7, 1, b"goes on", sync=True)
    store.close()

    assert (rows, left) == (13, 0)
    assert read_table_view(database.url) == (((7, False, 1, b"goes on"),), (), ())


@pytest.mark.parametrize("database", LIVE, indirect=True)
def test_several_transactions_of_artemis_are_settled_at_once(database):
    # Artemis's first transaction has the id 0, as rows of no transaction have.
    rows = [(1, 11, 45, b"alone", 0, b"")]
    for tx_id in (7, 0, 9):
        rows += [(tx_id * 10, 13, 45, b"%d" % tx_id, tx_id, b""), (-1, 18, 255, b"", tx_id, b"")]
    insert(database.url, *rows, (100, 13, 45, b"open", 10, b""), (101, 13, 45, b"open", 11, b""))

    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    view, result = open_and_load(store)
    rows_left = store.leased.table.count()
    store.close()

    assert [(record, body) for record, _, _, body in view[0]] == [
        (1, b"alone"),
        (70, b"7"),
        (0, b"0"),
        (90, b"9"),
    ]
    assert [tx.tx_id for tx in result.failed] == [10, 11]
    assert rows_left == 4
    assert read_table_view(database.url)[0] == view[0]


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "rollback"])
@pytest.mark.parametrize("database", LIVE, indirect=True)
def test_the_end_of_transaction_0_leaves_what_is_of_none(database, is_commit):
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    store.add(1, 45, b"alone", sync=True)
    store.add(2, 45, b"two", tx=0)
    store.add(3, 45, b"three", tx=0)
    store.delete(3, tx=0)
    store.prepare(0, b"xid", sync=True)
    if is_commit:
        store.commit(0, sync=True)
    else:
        store.rollback(0, sync=True)
    store.close()

    left = [record for record, *_ in read_table_view(database.url)[0]]
    assert left == ([1, 2] if is_commit else [1])


@pytest.mark.parametrize("database", LIVE, indirect=True)
def test_a_failed_transaction_0_leaves_what_is_of_none(database):
    insert(database.url, (1, 11, 45, b"alone", 0, b""), (2, 13, 45, b"open", 0, b""))

    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    _, result = open_and_load(store)
    store.close()

    assert [tx.tx_id for tx in result.failed] == [0]
    assert [record for record, *_ in read_table_view(database.url)[0]] == [1]


@pytest.mark.parametrize("database", LIVE, indirect=True)
def test_a_prepared_transaction_deletes_ids_here_and_there(database):
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)
    for record_id in range(1, 101):
        store.add(record_id, 45, b"%d" % record_id, wait=False)
    gone = {*range(1, 31), *range(41, 71), 80, 90}
    for record_id in gone:
        store.delete(record_id, tx=7)
    store.add(200, 45, b"new", tx=7)
    store.prepare(7, b"xid", sync=True)
    store.commit(7, sync=True)
    store.close()

    left = {record for record, *_ in read_table_view(database.url)[0]}
    assert left == {*range(1, 101), 200} - gone
