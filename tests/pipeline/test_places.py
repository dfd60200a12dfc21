"""What a path, a glob or a URL leads to."""

import json
import shutil

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from journal import Journal, JournalOptions
from journal.errors import JournalLocked, OptionError, WrongUse
from pipeline.cli.exit_status import run as run_pipeline
from pipeline.cli.main import pipeline as pipeline_commands
from pipeline.options import SourceOptions
from pipeline.places import find_histories, find_places
from pipeline.sources.bindings import BindingsReader
from pipeline.sources.journal import LiveReader, RawReader
from pipeline.sources.messages import MessagesReader
from tests.jdbcstore.cli.conftest import Rows, fill
from tests.pipeline.planted import Node


def places(path, part="messages", **given):
    options = SourceOptions.read({"path": str(path), **given})
    return find_places(options, part, is_decoded=True)


def read(reader):
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


@pytest.fixture
def data(golden, tmp_path):
    """A copy of what a broker of Artemis stored."""
    shutil.copytree(golden / "broker_basic", tmp_path / "orders" / "data")
    return tmp_path / "orders" / "data"


def test_a_data_folder_has_two_journals(data):
    (messages,), (bindings,) = places(data), places(data, "bindings")

    assert (messages.node, messages.folder) == ("orders", data / "journal")
    assert messages.large_messages == data / "large"
    assert (bindings.node, bindings.folder) == ("orders", data / "bindings")


def test_a_folder_of_files_is_a_journal(data):
    (place,) = places(data / "journal")

    assert (place.node, place.folder, place.name.prefix) == (
        "orders",
        data / "journal",
        "activemq-data",
    )


def test_a_glob_is_a_journal_for_each_folder(data):
    shutil.copytree(data, data.parent.parent / "bills" / "data")
    (data.parent.parent / "note.txt").write_text("no folder")

    assert [place.node for place in places(data.parent.parent / "*" / "data")] == [
        "bills",
        "orders",
    ]


def test_an_instance_says_where_its_journals_are(data, tmp_path):
    instance = tmp_path / "shop"
    assert run(commands, "broker", ["create", str(instance), "--password", "p", "--no-web"]) == 0
    shutil.rmtree(instance / "data", ignore_errors=True)
    shutil.copytree(data, instance / "data")

    (place,) = places(instance)

    assert (place.node, place.folder) == ("shop", instance / "data" / "journal")


def test_a_node_may_be_called_otherwise(data):
    assert [place.node for place in places(data, node="left")] == ["left"]


@pytest.mark.parametrize(("part", "folder"), [("messages", "bindings"), ("bindings", "journal")])
def test_the_wrong_journal_is_refused(part, folder, data):
    with pytest.raises(WrongUse, match=f"is not a journal of {part}"):
        places(data / folder, part)


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_a_path_may_have_the_scheme_that_spark_gives_it(scheme, data):
    (plain,) = places(data)

    assert places(f"{scheme}{data.absolute()}") == [plain]


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(WrongUse, match="no such folder"):
        places(tmp_path / "none")
    with pytest.raises(WrongUse, match="no journal files"):
        places(tmp_path)


def test_a_folder_of_a_journal_is_no_history(data, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (data, data / "journal"):
        with pytest.raises(WrongUse, match="is not a history but has a journal"):
            find_histories(SourceOptions.read({"path": str(folder)}))

    (place,) = find_histories(SourceOptions.read({"path": str(tmp_path / "empty")}))
    assert place.folder == tmp_path / "empty"


def test_an_open_journal_is_read_only_if_that_is_asked_for(tmp_path):
    with Journal(JournalOptions(directory=tmp_path / "journal", file_size=1 << 16)) as journal:
        journal.load()
        journal.add(1, 7, b"body")

        with pytest.raises(JournalLocked, match="live=true"):
            places(tmp_path / "journal")
        options = SourceOptions.read({"path": str(tmp_path / "journal"), "live": "true"})
        (row,) = read(RawReader(options))

    assert (row["record_id"], row["body"]) == (1, b"body")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"path": "a", "record": "live"},
        {"path": "a", "records": "dead"},
        {"path": "a", "live": "perhaps"},
        {"path": "a", "userVersion": "x"},
        {"path": "a", "userVersion": str(1 << 31)},
        {"path": "a", "asOfMs": str(1 << 63)},
        {"path": "a", "startingTimestamp": str(1 << 60)},
        {"path": "a", "startingTimestamp": "-1"},
    ],
)
def test_options_that_cannot_be_are_refused(given):
    with pytest.raises(OptionError):
        SourceOptions.read(given, is_stream="startingTimestamp" in given)


def test_option_names_are_compared_without_case():
    assert not SourceOptions.read({"path": "a", "FAILONDATALOSS": "False"}).fails_on_data_loss


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_a_table_has_the_rows_that_print_data_prints(database, printed):
    fill(database.url)
    raw, live = (
        SourceOptions.read({"path": database.url, "records": records})
        for records in ("raw", "live")
    )

    lines, _ = printed(database.url, "--raw")
    rows = read(RawReader(raw))
    assert [
        (row["kind"], row["record_id"], row["tx_id"], row["offset"], row["body"].hex())
        for row in rows
    ] == [
        (line["record"], line["id"], line["tx_id"], line["offset"], line["body"]) for line in lines
    ]
    lines, _ = printed(database.url)
    rows = read(LiveReader(live))
    assert [
        (row["kind"], row["record_id"], row["body"].hex())
        for row in rows
        if row["verdict"] == "live"
    ] == [
        (line["record"], line["id"], line["body"])
        for line in lines
        if line["record"] in ("add", "update")
    ]
    assert {row["kind"] for row in rows if row["verdict"] == "prepared"} == {
        *("add_tx", "update_tx", "delete_tx", "prepare"),
    }


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize(("reader", "records"), [(RawReader, "raw"), (LiveReader, "live")])
def test_a_table_in_parts_has_the_rows_of_the_whole(reader, records, database):
    fill(database.url)
    damage = Rows(database.url)
    # By two tasks: of an id in the middle, of none.
    damage.insert(id=2, recordType=99, seq=1000)
    damage.insert(id=3, recordType=18, txId=77, seq=1001)
    damage.insert(id=None, seq=1002)
    given = {"path": database.url, "records": records, "failOnDataLoss": "false"}

    whole = reader(SourceOptions.read(given))
    parts = reader(SourceOptions.read({**given, "rowsPerTask": "1"}))

    def in_order(rows):
        return sorted(rows, key=lambda row: (row["kind"], row["offset"] or 0, str(row)))

    assert len(whole.partitions()) == 1
    assert len(parts.partitions()) > 2
    assert in_order(read(parts)) == in_order(read(whole))
    assert [row["kind"] for row in read(parts)].count("damage") == 3
    for part in parts.partitions():
        found = [row for batch in parts.read(part) for row in batch.to_pylist()]
        # One id, or only the end of a transaction: those are in the first one.
        ids = {row["record_id"] for row in found if row["kind"] not in ("prepare", "commit")}
        assert len(ids - {None}) <= 1


@pytest.mark.parametrize("new_database_of", ["sqlite", "postgresql", "mariadb"])
@pytest.mark.parametrize("rows_per_task", [100_000, 5])
def test_a_broker_s_tables_hold_messages_and_bindings(
    new_database, new_database_of, rows_per_task, golden, capsys
):
    from jdbcstore.options import DatabaseStoreOptions
    from jdbcstore.store import SqlStore
    from journal.cli.main import journal as journal_commands
    from journal.commands.exit_status import run as run_journal

    database = new_database(new_database_of)
    for part, table in (("journal", "MESSAGES"), ("bindings", "BINDINGS")):
        with SqlStore(DatabaseStoreOptions(connection_url=database.url), table) as store:
            store.load()
        words = ["copy", str(golden / "broker_basic" / part), database.url]
        status = run_journal(journal_commands, "journal", [*words, "--target-table", table])
        assert status == 0, capsys.readouterr().err
    options = SourceOptions.read(
        {"path": database.url, "asOfMs": "0", "rowsPerTask": str(rows_per_task)}
    )
    folder = SourceOptions.read({"path": str(golden / "broker_basic"), "asOfMs": "0"})

    def told(rows):
        """What does not say where it is stored."""
        gone = ("node", "journal", "file", "offset")
        return sorted(
            ({name: row[name] for name in row if name not in gone} for row in rows), key=str
        )

    assert told(read(MessagesReader(options))) == told(read(MessagesReader(folder)))
    assert told(read(BindingsReader(options))) == told(read(BindingsReader(folder)))
    assert (len(MessagesReader(options).partitions()) > 2) == (rows_per_task == 5)
    (place,) = find_places(options, "messages", is_decoded=True)
    assert json.dumps(place.journal).count("MESSAGES") == 1


def test_a_password_in_a_url_is_not_shown():
    (place,) = places("postgresql://me:secret@db.example/broker")

    assert "secret" not in repr(place)
    assert (place.node, place.journal) == (
        "db.example/broker",
        "postgresql://db.example/broker MESSAGES",
    )


@pytest.mark.parametrize(
    "words",
    [
        ["audit"],
        ["report", "--to", "{root}/report.html"],
        ["audit", "--retention", "{root}/*/broker/retention"],
        ["replay", "--address", "a", "--url", "tcp://127.0.0.1:1", "--checkpoint", "{root}/notes"],
    ],
)
def test_two_brokers_of_one_name_are_refused(words, tmp_path, capsys):
    root = tmp_path / "hosts"
    for host in ("one", "two"):
        Node(root / host / "broker", keeps_history=True).close()
    is_audited_alone = "--retention" in words
    source = root / ("one" if is_audited_alone else "*") / "broker"
    words = [word.format(root=root) for word in words]
    capsys.readouterr()

    assert run_pipeline(pipeline_commands, "pipeline", [words[0], str(source), *words[1:]]) == 2

    assert "would both be called broker: give one by a link" in capsys.readouterr().err


def test_two_copies_of_one_broker_are_not_audited_together(tmp_path, capsys):
    node = Node(tmp_path / "primary")
    node.close()
    shutil.copytree(tmp_path / "primary", tmp_path / "replica")
    capsys.readouterr()

    assert run_pipeline(pipeline_commands, "pipeline", ["audit", str(tmp_path / "*")]) == 2

    said = capsys.readouterr().err
    assert f"are of one broker, whose node id is {node.node_id}: give one of them" in said
