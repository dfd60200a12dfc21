"""Journals in one table, written by Artemis and by us in turns: each loads the other's."""

import pytest

from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore

DRIVERS = {"postgresql": "org.postgresql.Driver", "mariadb": "org.mariadb.jdbc.Driver"}
pytestmark = [
    pytest.mark.parametrize("database", DRIVERS, indirect=True),
    pytest.mark.slow,
]

THEIR_SCRIPT = """\
add 1 10 x0101
add 2 11 x0202
upd 1 12 x0303
updcb 2 13 x0404
add 3 14 r7:70000
add 4 -3 -
del 3
txadd 100 5 15 x0505
txupd 100 1 16 x0606
txdel 100 2 x07
commit 100
txadd 101 6 17 x0808
rollback 101
txadd 102 7 18 x0909
txupd 102 1 19 x0a0a
txdel 102 4 x0b
prepare 102 x786964
txadd 103 8 20 x0c0c
"""


class Table:
    """The table MESSAGES of one database, for Artemis."""

    def __init__(self, artemis, database, folder):
        self._artemis = artemis
        self._folder = folder
        self._settings = {
            "url": database.jdbc_url,
            "driver": DRIVERS[database.server.kind],
            "table": "MESSAGES",
        }

    def run(self, script):
        path = self._folder / "script"
        path.write_text(script)
        return self._artemis.call("sql-run", self._folder, script=path, **self._settings)

    def load(self):
        return self._artemis.call("sql-load", self._folder, **self._settings)


@pytest.fixture
def theirs(artemis, database, tmp_path):
    return Table(artemis, database, tmp_path)


@pytest.fixture
def ours(database):
    """`ours()`: (a loaded store, (id, user type, body) of its records, what load gave)."""
    opened = []

    def new():
        for store in opened:
            store.close()
        store = SqlStore(
            DatabaseStoreOptions(connection_url=database.url, lock_acquisition_timeout_ms=0)
        )
        opened.append(store)
        records = []
        store.open()
        result = store.load(
            lambda batch: records.extend((r.record_id, r.user_type, bytes(r.body)) for r in batch)
        )
        return store, records, result

    yield new
    for store in opened:
        store.close()


def their_records(view):
    """(id, user type as a byte, body) of what Artemis loaded."""
    return [
        (record["id"], record["user_type"] & 0xFF, bytes.fromhex(record["hex"]))
        for record in view["committed"]
    ]


COMMITTED = [
    (1, 10, b"\1\1"),
    (1, 12, b"\3\3"),
    (4, 253, b""),
    (5, 15, b"\5\5"),
    (1, 16, b"\6\6"),
]


def test_we_load_what_artemis_wrote(theirs, ours):
    theirs.run(THEIR_SCRIPT)

    store, records, result = ours()

    assert records == COMMITTED
    (prepared,) = result.prepared
    assert prepared.tx_id == 102
    assert prepared.extra == b"xid"
    assert [(r.record_id, r.is_update, bytes(r.body)) for r in prepared.records] == [
        (7, False, b"\x09\x09"),
        (1, True, b"\x0a\x0a"),
    ]
    assert [(d.record_id, bytes(d.body)) for d in prepared.deletes] == [(4, b"\x0b")]
    assert [failed.tx_id for failed in result.failed] == [103]
    assert result.max_id >= 5
    del store


def test_what_we_made_of_it_artemis_loads(theirs, ours):
    theirs.run(THEIR_SCRIPT)
    store, _, _ = ours()
    store.add(20, 30, b"ours")
    store.delete(5)
    store.commit(102)
    store.close()

    view = theirs.load()

    assert their_records(view) == [
        (1, 10, b"\1\1"),
        (1, 12, b"\3\3"),
        (1, 16, b"\6\6"),
        (20, 30, b"ours"),
        (7, 18, b"\x09\x09"),
        (1, 19, b"\x0a\x0a"),
    ]
    assert view["prepared"] == []
    assert view["failed_transactions"] == []


def test_artemis_loads_what_we_wrote(theirs, ours):
    store, _, _ = ours()
    store.add(1, 200, b"one")
    store.update(1, 201, b"more")
    store.add(2, 7, b"gone")
    store.delete(2)
    store.add(3, 8, b"in one", tx=50)
    store.update(1, 9, b"in one too", tx=50)
    store.commit(50)
    store.add(4, 10, b"waits", tx=51)
    store.delete(1, b"why", tx=51)
    store.prepare(51, b"branch")
    store.close()

    view = theirs.load()

    assert their_records(view) == [
        (1, 200, b"one"),
        (1, 201, b"more"),
        (3, 8, b"in one"),
        (1, 9, b"in one too"),
    ]
    (prepared,) = view["prepared"]
    assert prepared["tx"] == 51
    assert bytes.fromhex(prepared["extra_data"]["hex"]) == b"branch"
    assert [(r["id"], bytes.fromhex(r["hex"])) for r in prepared["records"]] == [(4, b"waits")]
    assert [(d["id"], bytes.fromhex(d["hex"])) for d in prepared["records_to_delete"]] == [
        (1, b"why")
    ]


def test_artemis_ends_a_transaction_that_we_prepared(theirs, ours):
    store, _, _ = ours()
    store.add(1, 1, b"old")
    store.add(2, 2, b"new", tx=60)
    store.delete(1, tx=60)
    store.prepare(60, b"xid")
    store.close()

    theirs.run("commit 60\nadd 3 3 x03\n")
    _, records, result = ours()

    assert records == [(2, 2, b"new"), (3, 3, b"\3")]
    assert result.prepared == []
    assert result.failed == []


def test_turns_about_the_same_table(theirs, ours):
    expected = {}
    next_id = 1
    for turn in range(4):
        lines = []
        for _ in range(30):
            body = bytes([turn, next_id % 256])
            lines.append(f"add {next_id} 5 x{body.hex()} nosync")
            expected[next_id] = body
            next_id += 1
        gone = sorted(expected)[::7]
        lines += [f"del {one} nosync" for one in gone]
        lines.append(f"add {next_id} 5 xff")
        expected[next_id] = b"\xff"
        next_id += 1
        for one in gone:
            del expected[one]
        theirs.run("\n".join(lines))

        store, records, _ = ours()
        assert {i: body for i, _, body in records} == expected
        assert [i for i, _, _ in records] == sorted(expected)
        for _ in range(30):
            store.add(next_id, 5, b"us", sync=False)
            expected[next_id] = b"us"
            next_id += 1
        for one in sorted(expected)[::5]:
            store.delete(one, sync=False)
            del expected[one]
        store.close()

        view = theirs.load()
        assert {i: body for i, _, body in their_records(view)} == expected
