"""Damage ends a query, or is rows of it."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from journal import Journal, JournalOptions
from journal.reader import read_file
from pipeline.errors import DataLoss
from pipeline.options import SourceOptions
from pipeline.sources.journal import LiveReader, RawReader
from pipeline.sources.messages import MessagesReader

ROWS = 50


@pytest.fixture
def damaged(tmp_path):
    """A journal with checksums, one byte of one body of which has changed."""
    folder = tmp_path / "journal"
    with Journal(JournalOptions(directory=folder, file_size=1 << 16)) as journal:
        journal.load()
        for number in range(ROWS):
            journal.add(number + 1, 7, b"%050d" % number)
    ((file, hurt),) = [
        (file, record)
        for file in folder.glob("*.amq")
        for record in read_file(file)
        if record.record_id == 20
    ]
    data = bytearray(file.read_bytes())
    data[hurt.offset + 30] ^= 1
    file.write_bytes(data)
    return folder, file.name, hurt.offset


def read(reader):
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("kind", [RawReader, LiveReader])
def test_damage_ends_a_query_with_its_place(kind, damaged):
    folder, name, offset = damaged

    with pytest.raises(DataLoss, match=rf"{name}:{offset}: .*failOnDataLoss"):
        read(kind(SourceOptions.read({"path": str(folder)})))


@pytest.mark.parametrize(("kind", "live_rows"), [(RawReader, ROWS - 1), (LiveReader, ROWS - 1)])
def test_damage_is_a_row_and_the_rest_is_there(kind, live_rows, damaged):
    folder, name, offset = damaged

    rows = read(kind(SourceOptions.read({"path": str(folder), "failOnDataLoss": "false"})))

    (lost,) = [row for row in rows if row["kind"] == "damage"]
    assert (lost["file"], lost["offset"]) == (name, offset)
    assert "checksum" in lost["damage"]
    assert len([row for row in rows if row["verdict"] == "live"]) == live_rows
    assert 20 not in [row["record_id"] for row in rows if row["verdict"] == "live"]


def test_spark_says_so_in_one_line(spark, damaged):
    from pyspark.errors import PySparkException

    from pipeline.cli.exit_status import plain_error

    folder, name, offset = damaged
    with pytest.raises(PySparkException) as raised:
        spark.read.format("journal").load(str(folder)).collect()

    text, is_damage = plain_error(str(raised.value))
    assert is_damage
    assert text.startswith(f"{folder}: {name}:{offset}: ")


def test_a_file_used_again_since_the_plan_is_data_loss(tmp_path):
    folder = tmp_path / "journal"
    with Journal(JournalOptions(directory=folder, file_size=1 << 16)) as journal:
        journal.load()
        journal.add(1, 7, b"body")
    reader = RawReader(SourceOptions.read({"path": str(folder)}))
    part = reader.partitions()[0]
    part.files[0].path.write_bytes(bytes(8) + (99).to_bytes(8, "big") + bytes(65520))

    with pytest.raises(DataLoss):
        list(reader.read(part))


def test_a_message_that_cannot_be_read_is_a_row_with_its_reason(tmp_path):
    folder = tmp_path / "journal"
    with Journal(JournalOptions(directory=folder, file_size=1 << 16)) as journal:
        journal.load()
        journal.add(1, 45, b"\x09nonsense")
        journal.update(1, 32, b"short")

    with pytest.raises(DataLoss, match="unknown message persister 9"):
        read(MessagesReader(SourceOptions.read({"path": str(folder)})))
    rows = read(
        MessagesReader(SourceOptions.read({"path": str(folder), "failOnDataLoss": "false"}))
    )

    assert [row["message_id"] for row in rows] == [1, 1]
    assert [row["address"] for row in rows] == [None, None]
    assert "persister" in rows[0]["damage"]
    assert "type 32" in rows[1]["damage"]
