"""Folders in an object store give the rows that they give on this machine: a server of S3."""

import errno
import json
import logging
import mmap
import pickle
import re
from functools import partial

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")
pytest.importorskip("s3fs", reason="s3fs is not installed: quiver-mq[object-store] brings it")
pytest.importorskip("moto.server", reason="moto is not installed: quiver-mq[test-all] brings it")

import boto3
from moto.server import ThreadedMotoServer

import pipeline.object_store
from journal import Journal, JournalOptions
from journal.errors import JournalError, JournalIOError, OptionError, WrongUse
from journal.reader import read_bytes
from journal.remote import REMOTE_STEP
from pipeline.live_journal import FolderJournal
from pipeline.object_store import ObjectPath
from pipeline.options import SourceOptions
from pipeline.places import find_histories, find_places, journals_and_histories, node_id_of
from pipeline.sources.bindings import BindingsReader
from pipeline.sources.journal import LiveReader, RawReader
from pipeline.sources.messages import MessagesReader
from pipeline.sources.retention import HistoryReader
from tests.journal.golden import scenarios
from tests.pipeline.conftest import rows_by
from tests.pipeline.planted import Node
from tests.servers import free_port

BUCKET = "backups"


@pytest.fixture(scope="module")
def server():
    """The URL of a server of S3 on this machine."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def access(server):
    """What boto3 and s3fs need to know of it."""
    return {"endpoint_url": server, "key": "k", "secret": "s"}


@pytest.fixture(scope="module")
def bucket(server):
    """`bucket(folder, "s3://...")`: copies a folder; returns nothing."""
    client = boto3.client(
        "s3",
        endpoint_url=server,
        region_name="us-east-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
    )
    client.create_bucket(Bucket=BUCKET)

    def copy(folder, prefix):
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                name = f"{prefix}/{file.relative_to(folder)}"
                client.put_object(Bucket=BUCKET, Key=name, Body=file.read_bytes())

    return copy


@pytest.fixture(scope="module")
def stored(bucket, golden):
    """Artemis's folders in the store, below s3a://backups/golden."""
    bucket(golden, "golden")
    return f"s3a://{BUCKET}/golden"


@pytest.fixture
def options_of(access):
    """`options_of(path, records="live")`: of a query that reads there."""

    def make(path, **given):
        remote = {"storageOptions": json.dumps(access)} if "://" in str(path) else {}
        return SourceOptions.read(
            {"path": str(path), "failOnDataLoss": "false", "asOfMs": "0", **remote, **given}
        )

    return make


def read(reader):
    """All rows, as tasks give them that were sent to a worker."""
    reader = pickle.loads(pickle.dumps(reader))
    return [
        row
        for part in map(pickle.dumps, reader.partitions())
        for batch in reader.read(pickle.loads(part))
        for row in batch.to_pylist()
    ]


def without_place(rows):
    """Rows with what both folders have in common."""
    return [{**row, "journal": "/".join(row["journal"].split("/")[-2:])} for row in rows]


NAMES = sorted({scenario.name for scenario in scenarios()})
BROKERS = [name for name in NAMES if name.startswith("broker_")]


def rows_or_error(make):
    try:
        return without_place(read(make()))
    except JournalError as error:
        return type(error), str(error).rpartition(": ")[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("records", ["raw", "live"])
def test_records_are_those_of_this_machine(name, records, stored, golden, options_of):
    reader = {"raw": RawReader, "live": LiveReader}[records]

    def found(root):
        return rows_or_error(lambda: reader(options_of(f"{root}/{name}", records=records)))

    assert found(stored) == found(golden)


@pytest.mark.parametrize("name", BROKERS)
@pytest.mark.parametrize("reader", [MessagesReader, BindingsReader])
def test_what_brokers_stored_is_that_of_this_machine(name, reader, stored, golden, options_of):
    def found(root):
        options = options_of(f"{root}/{name}", maxLargeBodyBytes=str(1 << 20))
        return without_place(read(reader(options)))

    assert found(stored) == found(golden)


def test_pages_and_large_bodies_are_among_them(stored, options_of):
    (paged, large) = (
        read(MessagesReader(options_of(f"{stored}/{name}", maxLargeBodyBytes=str(1 << 20))))
        for name in ("broker_paging", "broker_large")
    )

    assert any(row["file"].endswith(".page") for row in paged)
    assert any(row["is_large"] and row["body"] for row in large)


@pytest.fixture
def history(bucket, tmp_path, access):
    """A broker's data, with a history, of which the bucket has a copy: (folder, URL)."""
    node = Node(tmp_path / "orders" / "data", keeps_history=True)
    for _ in range(2000):
        node.done(node.send(5), 5)
    node.close()
    bucket(tmp_path, "kept")
    return tmp_path / "orders" / "data", f"s3://{BUCKET}/kept/orders/data"


def test_a_history_is_that_of_this_machine(history, options_of):
    local, remote = (
        read(HistoryReader(options_of(f"{root}/retention", bytesPerTask="70000")))
        for root in history
    )

    assert len({row["file"] for row in local}) > 1
    assert [{**row, "journal": None} for row in remote] == [
        {**row, "journal": None} for row in local
    ]
    assert {row["node"] for row in remote} == {"orders"}


def test_a_folder_s_node_and_its_history_are_found(history, options_of, monkeypatch, access):
    _, url = history
    (place,) = find_places(options_of(url), "messages", is_decoded=True)
    (local,) = find_places(options_of(history[0]), "messages", is_decoded=True)

    assert node_id_of(place) == node_id_of(local) is not None
    # As the commands have it: who may read is in the environment.
    monkeypatch.setenv("AWS_ENDPOINT_URL", access["endpoint_url"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert journals_and_histories([url]) == ([url], [f"{url}/retention"])


def test_a_glob_is_a_journal_for_each_folder(stored, options_of):
    places = find_places(options_of(f"{stored}/broker_*"), "messages", is_decoded=True)

    assert [place.node for place in places] == BROKERS
    assert places[0].journal == f"{stored}/{BROKERS[0]}/journal"


def test_memory_is_bounded_by_pieces_of_a_file(bucket, tmp_path, access, options_of, monkeypatch):
    """Whatever a file's size, no request asks for more than a step, and nothing goes to disk."""
    options = JournalOptions(directory=tmp_path / "journal", file_size=3 * REMOTE_STEP)
    with Journal(options) as journal:
        journal.load()
        for number in range(1, 28):
            journal.add(number, 45, bytes([number]) * 400_000, sync=False)
    bucket(tmp_path, "large")
    asked = []
    plain = ObjectPath.read

    def noted(self, offset, size):
        asked.append(size)
        return plain(self, offset, size)

    monkeypatch.setattr(ObjectPath, "read", noted)
    rows = read(LiveReader(options_of(f"s3://{BUCKET}/large/journal", records="live")))

    assert [row["body"][:1] for row in rows] == [bytes([number]) for number in range(1, 28)]
    assert max(asked) <= REMOTE_STEP
    assert sum(asked) > 2 * 27 * 400_000


def test_a_file_that_is_too_large_for_memory_is_mapped(bucket, tmp_path, access, monkeypatch):
    data = bytes(range(256)) * 4096
    (tmp_path / "file").write_bytes(data)
    bucket(tmp_path, "map")
    monkeypatch.setattr("journal.reader.MAP_SIZE_MIN", 1000)

    found = read_bytes(ObjectPath.parse(f"s3://{BUCKET}/map/file", access))

    assert found == data
    assert isinstance(found.obj, mmap.mmap)


def test_a_file_that_is_replaced_while_it_is_read_is_told(bucket, tmp_path, access, options_of):
    (tmp_path / "journal").mkdir()
    with Journal(JournalOptions(directory=tmp_path / "journal", file_size=1 << 16)) as journal:
        journal.load()
        journal.add(1, 45, b"body")
    bucket(tmp_path, "changing")
    options = options_of(f"s3://{BUCKET}/changing/journal")
    (place,) = find_places(options, "messages", is_decoded=False)
    journal = FolderJournal(place, 0)
    for file in (tmp_path / "journal").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    bucket(tmp_path, "changing")

    with pytest.raises(JournalIOError, match="changed while it was being read") as raised:
        list(journal.records())
    assert raised.value.errno == errno.ESTALE


def test_what_came_since_another_query_is_seen(bucket, tmp_path, options_of):
    options = JournalOptions(directory=tmp_path / "one" / "journal", file_size=1 << 16)
    url = f"s3://{BUCKET}/growing"

    def found():
        return [row["record_id"] for row in read(RawReader(options_of(f"{url}/*/journal")))]

    for count in range(1, 4):
        with Journal(options) as journal:
            journal.load()
            journal.add(count, 45, b"body" * count)
        bucket(tmp_path, "growing")
        assert found() == list(range(1, count + 1))

    (tmp_path / "one").rename(tmp_path / "two")
    bucket(tmp_path, "growing")
    assert found() == [1, 2, 3] * 2


def test_an_object_that_is_shorter_than_it_was_is_told(bucket, tmp_path, access):
    (tmp_path / "file").write_bytes(b"0123456789")
    bucket(tmp_path, "short")

    with pytest.raises(JournalIOError, match="changed while it was being read") as raised:
        ObjectPath.parse(f"s3://{BUCKET}/short/file", access).read(5, 10)
    assert raised.value.errno == errno.ESTALE


# --- what is refused ----------------------------------------------------------------------------


def test_what_is_not_there_is_one_clear_error(stored, options_of):
    for url in (f"{stored}/none", f"{stored}/none/*", "s3://nobucket/a"):
        with pytest.raises(WrongUse, match=f"{re.escape(url)}: no such folder"):
            find_places(options_of(url), "messages", is_decoded=True)
    with pytest.raises(WrongUse, match="no URL of an object store"):
        find_places(options_of("s3a:///golden"), "messages", is_decoded=True)


@pytest.mark.parametrize("part", ["journal", "history"])
def test_live_and_streams_are_refused(part, stored, options_of):
    find = find_histories if part == "history" else partial(find_places, part="messages")
    options = options_of(stored, live="true")
    streamed = SourceOptions.read({"path": stored}, is_stream=True)
    for one in (options, streamed):
        with pytest.raises(WrongUse, match="no broker writes to an object store"):
            find(one) if part == "history" else find(one, is_decoded=False)


def test_an_instance_is_refused(bucket, tmp_path, options_of):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "broker.xml").write_text("<configuration/>")
    bucket(tmp_path, "instance")

    with pytest.raises(WrongUse, match="give the folder of its data"):
        find_places(options_of(f"s3://{BUCKET}/instance"), "messages", is_decoded=True)


def test_a_server_that_is_not_there_is_told(options_of):
    access = {"endpoint_url": f"http://127.0.0.1:{free_port()}", "key": "k", "secret": "s"}
    options = options_of(
        "s3a://bucket/a",
        storageOptions=json.dumps({**access, "config_kwargs": {"retries": {"max_attempts": 0}}}),
    )

    with pytest.raises(JournalIOError, match="connect") as raised:
        find_places(options, "messages", is_decoded=True)
    assert raised.value.filename == "s3a://bucket/a"


@pytest.mark.parametrize("text", ["{", "[]", "1"])
def test_storage_options_are_an_object(text):
    with pytest.raises(OptionError, match="must be a JSON object"):
        SourceOptions.read({"path": "s3://a/b", "storageOptions": text})


def test_secrets_are_not_shown(access, options_of):
    options = options_of("s3://bucket/a", storageOptions='{"secret": "hidden"}')
    path = ObjectPath.parse("s3://bucket/a", {"secret": "hidden"})

    assert "hidden" not in repr(options) + repr(path) + str(path)


@pytest.mark.parametrize("url", ["s3a://b/f", "abfss://c@a.dfs.core.windows.net/f", "gs://b/f"])
def test_without_its_package_the_extra_is_named(url, monkeypatch, options_of):
    monkeypatch.setattr(pipeline.object_store, "find_spec", lambda name: None)

    with pytest.raises(WrongUse, match=re.escape("pip install 'quiver-mq[object-store]'")):
        find_places(options_of(url), "messages", is_decoded=True)


@pytest.mark.parametrize(
    ("url", "package", "options"),
    [
        (
            "abfss://box@account.dfs.core.windows.net/orders",
            "adlfs",
            {"account_key": "Zm9v", "account_name": "account"},
        ),
        ("gs://box/orders", "gcsfs", {"token": "anon"}),
    ],
)
def test_other_stores_get_their_own_path(url, package, options):
    pytest.importorskip(package, reason=f"{package} is not installed")

    with ObjectPath.parse(url, options)._asked("look at") as (files, path):
        assert type(files).__module__.startswith(package)
        assert path == "box/orders"


# --- Spark --------------------------------------------------------------------------------------


def test_spark_s_workers_read_there(spark, stored, golden, access):
    def found(root):
        frame = spark.read.format("messages").option("asOfMs", "0")
        if root == stored:
            frame = frame.option("storageOptions", json.dumps(access))
        return rows_by(
            frame.load([f"{root}/broker_paging", f"{root}/broker_tx_xa"]).drop("journal")
        )

    assert found(stored) == found(golden)


def test_spark_reads_hadoop_s_local_file_system(spark, golden):
    frame = spark.read.format("messages").option("asOfMs", "0")
    plain = rows_by(frame.load(str(golden / "broker_basic")))

    for url in (f"file:{golden}/broker_basic", f"file://{golden}/broker_basic"):
        assert rows_by(frame.load(url)) == plain
    assert plain["broker_basic"]
