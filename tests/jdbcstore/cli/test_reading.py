"""print-data, stat, verify and export of a database: what they say, and that they only look."""

import json

import pytest

from journal.commands import sources
from tests.jdbcstore.cli.conftest import fill, loaded_store
from tests.jdbcstore.leases import KINDS

on_every_database = pytest.mark.parametrize("database", KINDS, indirect=True)
READERS = ["print-data", "stat", "verify", "export"]
LIVE = [
    {"record": "add", "id": 1, "user_type": 45, "body": b"one".hex()},
    {"record": "add", "id": 2, "user_type": 200, "body": ""},
    {"record": "update", "id": 1, "user_type": 46, "body": b"one again".hex()},
]
PREPARED = {
    "record": "prepared",
    "tx_id": 100,
    "extra": b"branch".hex(),
    "adds": [
        {"id": 8, "user_type": 1, "update": False, "body": b"eight".hex()},
        {"id": 2, "user_type": 2, "update": True, "body": b"two".hex()},
    ],
    "deletes": [1],
}


def objects(out):
    return [json.loads(line) for line in out.splitlines()]


@on_every_database
def test_live_records_name_table_and_seq(call, filled):
    status, out, err = call("print-data", filled, "--format", "jsonl")

    *live, prepared = objects(out)
    assert (status, err) == (
        0,
        "3 records, 1 prepared and 0 failed transactions, 0 damaged places\n",
    )
    assert {line.pop("file").upper() for line in live} == {"MESSAGES"}
    assert [line.pop("offset") for line in live] == [1, 2, 3]
    assert {line.pop("checksum") for line in live} == {"none"}
    assert live == LIVE
    assert prepared == PREPARED


@on_every_database
def test_ids_are_of_adds(call, filled):
    assert call("print-data", filled, "--format", "ids")[:2] == (0, "1\n2\n")


@on_every_database
def test_text_is_in_the_wording_of_artemis(call, filled):
    status, out, _ = call("print-data", filled)

    assert status == 0
    assert out.startswith("### Surviving Records Summary ###")
    assert "### Prepared TX ###" in out


@on_every_database
def test_raw_shows_every_row(call, filled):
    status, out, err = call("print-data", filled, "--raw", "--format", "jsonl")

    found = [(line["record"], line["id"], line["tx_id"]) for line in objects(out)]
    assert (status, err) == (0, "7 records in 1 files, 0 damaged places\n")
    assert found == [
        ("add", 1, None),
        ("add", 2, None),
        ("update", 1, None),
        ("add_tx", 8, 100),
        ("update_tx", 2, 100),
        ("delete_tx", 1, 100),
        ("prepare", None, 100),
    ]


@on_every_database
def test_export_has_everything_a_load_gives(call, filled):
    status, out, _ = call("export", filled)

    assert status == 0
    assert objects(out) == [*LIVE, {**PREPARED, "delete_bodies": [b"why".hex()]}]


@on_every_database
def test_stat_counts_and_names_the_holder(call, filled):
    status, out, _ = call("stat", filled, "--json")
    free = json.loads(out)
    with loaded_store(filled) as store:
        holder = store.leased.lease.holder_id
        held = json.loads(call("stat", filled, "--json")[1])
        text = call("stat", filled)[1]

    assert status == 0
    assert free.pop("table").upper() == "MESSAGES"
    assert free == {
        "rows": 7,
        "live_records": 2,
        "live_updates": 1,
        "staged_rows": 4,
        "prepared_transactions": 1,
        "failed_transactions": 0,
        "size_bytes": 29,
        "live_bytes": 12,
        "lease_holder": None,
        "lease_remaining_ms": 0,
        "damages": 0,
    }
    assert held["lease_holder"] == holder
    assert held["lease_remaining_ms"] > 0
    assert f"held by {holder} for another " in text


@on_every_database
def test_verify_of_a_sound_table_says_so(call, filled):
    assert call("verify", filled) == (
        0,
        "",
        "1 files, 7 records, 0 with a checksum, 0 damaged\n",
    )


@on_every_database
def test_verify_names_rows_that_contradict_each_other(call, filled, rows):
    table = rows(filled)
    table.insert(seq=20, recordType=77)
    table.insert(seq=21, recordType=18, txId=900)
    table.insert(seq=22, variableSize=4, record=b"abc", id=51)
    table.insert(seq=23, id=52, txData=b"x", txDataSize=1)
    table.insert(seq=24, id=None)
    table.insert(seq=25, id=53, txId=4)
    table.insert(seq=26, recordType=17, txId=100)

    status, out, _ = call("verify", filled)

    name = table.table.name
    assert status == 1
    assert out.splitlines() == [
        f"{name}:20: recordType 77, which no journal writes",
        f"{name}:21: commit of transaction 900, which has no rows",
        f"{name}:22: variableSize 4 and a record of 3 bytes",
        f"{name}:23: txData in a row of recordType 11, which is not a prepare record",
        f"{name}:24: id NULL",
        f"{name}:25: recordType 11 is of no transaction, and txId is 4",
        f"{name}:26: transaction 100 is prepared a second time",
    ]


@on_every_database
def test_verify_tells_transaction_0_from_none(call, filled, rows):
    """It is Artemis's first one, and what stands in the rows of no transaction."""
    table = rows(filled)
    table.insert(seq=20, id=50, recordType=13)
    table.insert(seq=21, id=51)
    table.insert(seq=22, id=-1, recordType=18, userRecordType=-1)
    table.insert(seq=23, id=52)
    table.insert(seq=24, id=52, recordType=12)

    assert call("verify", filled) == (
        0,
        "",
        "1 files, 12 records, 0 with a checksum, 0 damaged\n",
    )


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_verify_names_a_seq_that_stands_twice_or_is_missing(call, filled, rows):
    table = rows(filled)
    if table.table.primary_key.columns:
        table.drop_key()
    table.insert(seq=1, id=50)
    table.insert(seq=None, id=51)

    status, out, _ = call("verify", filled)

    name = table.table.name
    assert status == 1
    assert out.splitlines() == [
        f"{name}:1: a second row has this seq: the order of the two is open",
        f"{name}:0: 1 rows have no seq: a load of the table does not see them",
    ]


@on_every_database
def test_what_a_crash_leaves_is_a_note_and_no_damage(call, filled, rows):
    table = rows(filled)
    table.insert(seq=20, recordType=13, txId=700)
    table.insert(seq=21, recordType=12, id=60)

    status, out, err = call("verify", filled)

    assert (status, out) == (0, "")
    assert f"{table.table.name}:20: transaction 700 was left open, with 1 rows" in err
    assert f"{table.table.name}:21: an update of record 60, which has no add" in err


@on_every_database
def test_damaged_rows_are_left_out_and_named(call, filled, rows):
    rows(filled).insert(seq=20, recordType=77)

    status, out, err = call("export", filled)

    assert status == 1
    assert len(out.splitlines()) == 4
    assert ":20: recordType 77" in err


@on_every_database
def test_what_artemis_leaves_of_a_transaction_is_read(call, filled, rows):
    table = rows(filled)
    table.insert(seq=20, recordType=13, txId=700, id=60, record=b"a", variableSize=1)
    table.insert(seq=21, recordType=15, txId=700, id=61)
    table.insert(seq=22, recordType=18, txId=700, id=0)

    status, out, _ = call("print-data", filled, "--format", "ids")

    assert (status, out) == (0, "1\n2\n60\n")


@on_every_database
@pytest.mark.parametrize("command", READERS)
def test_looking_changes_nothing_even_beside_a_holder(command, call, filled, rows):
    table = rows(filled)
    before = table.all(), table.names()
    with loaded_store(filled) as store:
        status, _, _ = call(command, filled)
        store.add(77, 1, b"still the holder")

    after = [row for row in table.all() if row[0] != 77], table.names()
    assert status == 0
    assert after == before


@on_every_database
@pytest.mark.parametrize("command", READERS)
def test_a_missing_table_is_one_line_and_stays_missing(command, call, database, rows):
    if database.server is None:
        rows(database.url).names()  # Makes the file.

    status, out, err = call(command, database.url, "--table", "NOTHING")

    assert (status, out) == (2, "")
    assert err.lower() == "journal: the database has no table nothing\n"
    assert rows(database.url).names() == []


@on_every_database
def test_another_table_is_read_by_its_name(call, database):
    fill(database.url, "BINDINGS")

    assert call("print-data", database.url, "--table", "BINDINGS", "--format", "ids")[1] == "1\n2\n"
    assert call("print-data", database.url)[0] == 2


def test_more_rows_than_a_page_come_whole_and_in_order(call, sqlite_url):
    with loaded_store(sqlite_url) as store:
        store.add_many(range(1, 10_001), 1, [b"x"] * 10_000)
        store.add(10_001, 1, bytes(6 * 1024 * 1024))
        store.add(10_002, 1, bytes(6 * 1024 * 1024))

    status, out, _ = call("print-data", sqlite_url, "--format", "jsonl")

    assert status == 0
    assert [line["id"] for line in objects(out)] == list(range(1, 10_003))


def test_bodies_are_decoded_as_those_of_files(call, sqlite_url):
    with loaded_store(sqlite_url) as store:
        store.add(1, 24, bytes(8))

    _, plain, _ = call("print-data", sqlite_url, "--format", "jsonl")
    status, decoded, _ = call("print-data", sqlite_url, "--format", "jsonl", "--decode")

    assert status == 0
    assert "decoded" not in plain
    assert "recordType" in objects(decoded)[0]["decoded"]
    assert call("print-data", sqlite_url, "--decode")[0] == 0
    assert call("print-data", sqlite_url, "--decode", "--raw")[0] == 0


def test_jdbc_urls_are_understood(call, sqlite_url):
    fill(sqlite_url)

    path = sqlite_url.removeprefix("sqlite:///")
    assert call("print-data", f"jdbc:sqlite:{path}", "--format", "ids")[1] == "1\n2\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["stat", "sqlite:///{folder}/none.db"],
        ["verify", "nothing://a/b"],
        ["export", "jdbc:nothing:a"],
        ["print-data", "postgresql://me:open-sesame@127.0.0.1:1/nosuch"],
        ["stat", "sqlite:///{folder}/none.db", "--table", "x; drop table y"],
        ["stat", "sqlite:///{folder}/none.db", "--password-file", "{folder}/none"],
    ],
)
def test_a_wrong_call_is_one_line_and_makes_nothing(call, tmp_path, arguments):
    status, out, err = call(*(word.format(folder=tmp_path) for word in arguments))

    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "open-sesame" not in err
    assert list(tmp_path.iterdir()) == []


def test_without_an_opener_urls_are_refused(call, monkeypatch):
    monkeypatch.setattr(sources, "entry_points", lambda group: [])

    status, _, err = call("stat", "sqlite:///a.db")

    assert status == 2
    assert err == "journal: nothing that opens URLs is installed; give a folder\n"


def test_an_opener_that_lacks_a_package_says_which(call, monkeypatch):
    class Entry:
        def load(self):
            raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy")

    monkeypatch.setattr(sources, "entry_points", lambda group: [Entry()])

    status, _, err = call("stat", "sqlite:///a.db")

    assert status == 2
    assert err == (
        "journal: the Python package sqlalchemy is missing: type pip install 'quiver-mq[sql]'\n"
    )


def test_the_password_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "password"
    file.write_text("open sesame\nsecond line\n")

    from_file = sources.access_to("sqlite:///a", {"password_file": file, "password": "other"})
    given = sources.access_to("sqlite:///a", {"password": "other"})

    assert from_file.password == "open sesame"
    assert given.password == "other"
    assert "open sesame" not in repr(from_file)
