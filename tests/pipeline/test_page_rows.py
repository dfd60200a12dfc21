"""Messages in pages are rows of `messages`, with what has become of them."""

import struct
from collections import Counter
from contextlib import closing

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.wire import RecordType
from broker.records.page_records import encode_entry
from broker.storage.page_folders import FileFolders
from jdbcstore import Database, DatabaseStoreOptions
from jdbcstore.pages import PageStores
from jdbcstore.store import SqlStore
from journal import Journal, JournalOptions
from journal.cli.main import journal as commands
from journal.commands.exit_status import run
from journal.errors import OptionError
from pipeline.errors import DataLoss
from pipeline.options import SourceOptions
from pipeline.sources.messages import MessagesReader
from tests.broker.paging.test_golden_pages import GOLDEN, QUEUE_IDS, expected_counts
from tests.unpack import unpack

NOW_MS = 1_700_000_000_000
COMMITTED, PREPARED, ROLLED_BACK = 900, 901, 902


def rows_of(folder, **given):
    options = SourceOptions.read({"path": str(folder), "asOfMs": str(NOW_MS), **given})
    reader = MessagesReader(options)
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
        if row["file"] is None or row["file"].endswith(".page")
    ]


def entry(number, queue_ids, *, tx_id=-1, expiration=0, properties=()):
    message = Message(
        "a",
        b"body %d" % number,
        message_id=number,
        durable=True,
        expiration=expiration,
        properties=list(properties),
    )
    return encode_entry(message, queue_ids, tx_id)


def page(folder, number, *parts):
    """Append to a page of address `a`; its folder is found, or made."""
    folders = FileFolders(folder / "paging")
    found = folders.view().get("a") or folders.create("a", 1)
    found.append(number, list(parts))
    found.sync(number)
    found.close()


@pytest.fixture
def data(tmp_path):
    """A data folder with nothing but a journal that knows of pages, and no bindings."""
    with Journal(JournalOptions(directory=tmp_path / "journal", file_size=1 << 16)) as journal:
        journal.load()
        position = struct.Struct(">qqi").pack
        journal.add(1, int(RecordType.ACKNOWLEDGE_CURSOR), position(7, 1, 1))
        journal.add(2, int(RecordType.PAGE_CURSOR_COMPLETE), position(8, 1, 9))
        journal.add(3, int(RecordType.PAGE_TRANSACTION), struct.pack(">qi", COMMITTED, 1))
        cursor = int(RecordType.ACKNOWLEDGE_CURSOR)
        transaction = int(RecordType.PAGE_TRANSACTION)
        journal.add(4, transaction, struct.pack(">qi", PREPARED, 1), tx=50)
        journal.add(5, cursor, position(7, 1, 3), tx=50)
        journal.prepare(50, b"extra")
    return tmp_path


def test_every_state(data):
    scheduled = Property("_AMQ_SCHED_DELIVERY", PropertyType.LONG, NOW_MS + 1)
    page(
        data,
        1,
        entry(100, (7,)),
        entry(101, (7, 8)),
        entry(102, (7, 8)),
        entry(103, (7,)),
        entry(104, (7,), expiration=NOW_MS),
        entry(105, (7,), properties=[scheduled]),
        entry(106, (7,), tx_id=COMMITTED),
        entry(107, (7,), tx_id=PREPARED),
        entry(108, (7,), tx_id=ROLLED_BACK),
        entry(109, ()),
    )
    page(data, 2, entry(110, (7, 8)))

    rows = rows_of(data)

    assert {row["message_id"]: row["state"] for row in rows} == {
        100: "live",
        101: "acknowledged",
        102: "live",
        103: "live",
        104: "expired",
        105: "scheduled",
        106: "live",
        107: "prepared",
        109: "unreferenced",
        110: "live",
    }
    references = {
        row["message_id"]: [(one["queue_id"], one["state"]) for one in row["references"]]
        for row in rows
    }
    assert references[102] == [(7, "live"), (8, "acknowledged")]
    assert references[103] == [(7, "acknowledging")]
    assert references[105] == [(7, "scheduled")]
    assert references[107] == [(7, "prepared")]
    assert references[110] == [(7, "live"), (8, "live")]
    by_id = {row["message_id"]: row for row in rows}
    assert (by_id[100]["address"], by_id[100]["body"]) == ("a", b"body 100")
    assert (by_id[100]["offset"], by_id[101]["offset"]) == (0, len(entry(100, (7,))))
    assert by_id[110]["file"].endswith("/000000002.page")


def test_a_time_of_delivery_is_any_number_and_no_text(data):
    values = [
        (PropertyType.LONG, NOW_MS + 1, NOW_MS + 1),
        (PropertyType.DOUBLE, 1e30, (1 << 63) - 1),
        (PropertyType.INT, -5, 0),
        (PropertyType.STRING, "9" * 25, 0),
    ]
    entries = [
        entry(number, (7,), properties=[Property("_AMQ_SCHED_DELIVERY", kind, value)])
        for number, (kind, value, _) in enumerate(values, 100)
    ]
    page(data, 2, *entries)

    rows = rows_of(data)

    times = [row["references"][0]["scheduled_ms"] for row in rows]
    assert times == [expected for _, _, expected in values]
    assert [row["state"] for row in rows] == ["scheduled", "scheduled", "live", "live"]


def test_a_queue_that_is_gone_has_nothing(data):
    with Journal(JournalOptions(directory=data / "bindings", file_size=1 << 16)) as bindings:
        bindings.load()
        bindings.add(7, int(RecordType.QUEUE_BINDING_RECORD), b"")
    page(data, 2, entry(100, (7, 99)), entry(101, (99,)))

    rows = rows_of(data)

    assert [[one["queue_id"] for one in row["references"]] for row in rows] == [[7], []]
    assert [row["state"] for row in rows] == ["live", "unreferenced"]


def test_a_torn_last_page_is_a_row_and_no_loss(data):
    page(data, 2, entry(100, (7,)), b"{torn")

    live, torn = rows_of(data)

    assert (live["message_id"], live["damage"]) == (100, None)
    assert (torn["message_id"], torn["state"], torn["offset"]) == (
        None,
        None,
        len(entry(100, (7,))),
    )
    assert "5 bytes" in torn["damage"]


def test_damage_within_the_pages_ends_the_query_or_is_a_row(data):
    page(data, 2, entry(100, (7,)), b"{torn")
    page(data, 3, entry(101, (7,)))

    with pytest.raises(DataLoss, match=r"000000002\.page"):
        rows_of(data)
    rows = rows_of(data, failOnDataLoss="false")

    assert [row["message_id"] for row in rows] == [100, None, 101]


def test_filters_keep_messages_of_pages_out(data):
    from pyspark.sql.datasource import GreaterThan

    page(data, 2, entry(100, (7,)), entry(101, (7,)))
    reader = MessagesReader(SourceOptions.read({"path": str(data), "filterPushdown": "true"}))

    assert list(reader.pushFilters([GreaterThan(("message_id",), 100)])) == []

    found = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [row["message_id"] for batch in found for row in batch.to_pylist()] == [101]


def test_pages_of_artemis_hold_what_it_says(tmp_path):
    """By queue as many as its print leaves unacknowledged; what is prepared waits."""
    unpack(GOLDEN / "broker.tar.gz", tmp_path)
    expected, prepared_count = expected_counts(tmp_path)

    rows = rows_of(tmp_path, asOfMs="0")

    counts = Counter(
        one["queue_id"]
        for row in rows
        if row["state"] != "prepared"
        for one in row["references"]
        if one["state"] in ("live", "acknowledging")
    )
    assert {queue_id: counts[queue_id] for queue_id in QUEUE_IDS} == expected
    assert sum(row["state"] == "prepared" for row in rows) == prepared_count
    assert all((row["body"] or row["text"]) and row["damage"] is None for row in rows)


@pytest.mark.parametrize("new_database_of", ["sqlite", "postgresql", "mariadb"])
def test_tables_hold_the_pages_of_artemis_folders(new_database, new_database_of, tmp_path, capsys):
    unpack(GOLDEN / "broker.tar.gz", tmp_path)
    database = new_database(new_database_of)
    fill_tables(database.url, tmp_path)

    told = [
        sorted(
            ({name: row[name] for name in TOLD} for row in rows_of(place, rowsPerTask="50")),
            key=str,
        )
        for place in (database.url, tmp_path)
    ]

    assert len(told[1]) > 100
    assert told[0] == told[1]


# What does not say where it is stored.
TOLD = ("message_id", "state", "address", "priority", "body", "references", "offset")


def fill_tables(url, folder):
    """Copy a data folder's journals and pages into a database."""
    for part, table in (("journal", "MESSAGES"), ("bindings", "BINDINGS")):
        with SqlStore(DatabaseStoreOptions(connection_url=url), table) as store:
            store.load()
        words = ["copy", str(folder / part), url, "--target-table", table]
        assert run(commands, "journal", words) == 0
    with closing(Database(DatabaseStoreOptions(connection_url=url))) as database:
        stores = PageStores(database)
        stores.start()
        for number, (address, pages) in enumerate(FileFolders(folder / "paging").view().items()):
            files = stores.create(address, number + 1)
            for page_number, size in pages.sizes().items():
                files.open(f"{page_number:09d}.page").append(pages.read(page_number, 0, size))


@pytest.fixture
def large(tmp_path):
    unpack(GOLDEN.parent / "broker_large" / "broker.tar.gz", tmp_path)
    return tmp_path


def bodies(folder, **given):
    reader = MessagesReader(SourceOptions.read({"path": str(folder), "asOfMs": "0", **given}))
    return {
        row["message_id"]: (row["body"], row["body_size"])
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
        if row["is_large"]
    }


def test_bodies_of_large_messages_are_read_up_to_a_size(large):
    files = {int(file.stem): file.read_bytes() for file in (large / "large").glob("*.msg")}
    least, most = sorted(map(len, files.values()))

    without, small, all_of_them = (
        bodies(large, maxLargeBodyBytes=str(limit)) for limit in (0, most - 1, most)
    )

    assert {number: size for number, (_, size) in all_of_them.items() if size} == {
        number: len(body) for number, body in files.items()
    }
    assert {body for body, _ in without.values()} == {None}
    assert {len(body) for body, _ in small.values() if body} == {least} - {most}
    assert {number: all_of_them[number][0] for number in files} == files


def test_batches_of_large_bodies_are_cut(large, monkeypatch):
    monkeypatch.setattr("pipeline.large_bodies.BODIES_MAX", 1)
    whole = bodies(large, maxLargeBodyBytes=str(1 << 30))
    given = {"path": str(large), "asOfMs": "0", "maxLargeBodyBytes": str(1 << 30)}
    reader = MessagesReader(SourceOptions.read(given))

    batches = [batch for part in reader.partitions() for batch in reader.read(part)]

    rows = [[row for row in batch.to_pylist() if row["is_large"]] for batch in batches]
    assert [len([row for row in some if row["body"] is not None]) for some in rows] == [1, 1]
    assert {
        row["message_id"]: (row["body"], row["body_size"]) for some in rows for row in some
    } == (whole)


def test_a_limit_of_bodies_that_no_array_can_hold_is_refused():
    with pytest.raises(OptionError, match="maxLargeBodyBytes"):
        SourceOptions.read({"path": "x", "maxLargeBodyBytes": str(1 << 31)})
