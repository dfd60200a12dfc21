"""Bodies of large messages that lie in a table of a database: looked at, and nothing else."""

from contextlib import closing

import pytest
import sqlalchemy

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from jdbcstore import Database, DatabaseStoreOptions
from jdbcstore.blobs import SqlFile, SqlFiles
from pipeline.large_bodies import PIECE_SIZE
from pipeline.options import SourceOptions
from pipeline.sources.messages import MessagesReader
from tests.pipeline.test_page_rows import GOLDEN, bodies, fill_tables
from tests.unpack import unpack

TABLE = "LARGE_MESSAGES"
# Of several reads, and of several rows where a row has 1 MiB.
LONG = 2 * PIECE_SIZE + 17


@pytest.fixture
def folder(tmp_path):
    """Large messages of Artemis, one of them made longer."""
    unpack(GOLDEN.parent / "broker_large" / "broker.tar.gz", tmp_path)
    longest = max((tmp_path / "large").glob("*.msg"), key=lambda file: file.stat().st_size)
    longest.write_bytes(bytes(range(251)) * (LONG // 251) + bytes(LONG % 251))
    return tmp_path


def fill(url, folder):
    """Copy all of it into a database."""
    fill_tables(url, folder)
    with closing(Database(DatabaseStoreOptions(connection_url=url))) as database:
        files = SqlFiles(database, TABLE)
        files.start()
        for file in (folder / "large").glob("*.msg"):
            files.open(file.name).append(file.read_bytes())


def all_rows(url):
    """Every row of every table."""
    with closing(Database(DatabaseStoreOptions(connection_url=url))) as database:
        tables = sqlalchemy.MetaData()
        with database.connect(read_only=True) as connection:
            tables.reflect(connection)
            return {
                table.name: sorted(map(str, connection.execute(sqlalchemy.select(table))))
                for table in tables.sorted_tables
            }


@pytest.mark.parametrize("new_database_of", ["sqlite", "postgresql", "mariadb"])
def test_tables_hold_the_bodies_of_artemis_files(new_database, new_database_of, folder, capsys):
    url = new_database(new_database_of).url
    fill(url, folder)
    before = all_rows(url)

    for limit in (LONG, LONG - 1):
        of_files, of_table = (
            bodies(place, maxLargeBodyBytes=str(limit), rowsPerTask="5") for place in (folder, url)
        )
        assert of_table == of_files
        assert (LONG in {len(body) for body, _ in of_files.values() if body}) == (limit == LONG)
        # Of what is too large the size is told, too.
        assert LONG in {size for _, size in of_table.values()}
    assert {body for body, _ in bodies(url).values()} == {None}
    # No lease was taken either, nor its table made.
    assert all_rows(url) == before


def test_a_database_without_such_a_table_has_no_bodies(new_database, folder, capsys):
    url = new_database("sqlite").url
    fill_tables(url, folder)

    found = bodies(url, maxLargeBodyBytes=str(LONG))

    assert len(found) > 1
    assert set(found.values()) == {(None, None)}
    assert TABLE not in all_rows(url)


@pytest.fixture
def reads(monkeypatch):
    """Notes name, offset and size of every read; calls the last of the list `then` after it."""
    noted, then = [], []
    real = SqlFile.read_at

    def read_at(file, offset, size):
        data = real(file, offset, size)
        if file.name.endswith(".msg"):
            noted.append((file.name, offset, size))
            for call in then:
                call(file)
        return data

    monkeypatch.setattr(SqlFile, "read_at", read_at)
    return noted, then


def test_a_body_is_read_in_pieces_and_one_that_is_too_large_not_at_all(
    new_database, folder, reads, capsys
):
    url = new_database("sqlite").url
    fill(url, folder)
    noted, _ = reads

    bodies(url, maxLargeBodyBytes=str(LONG - 1))
    short = {name for name, _, _ in noted}
    noted.clear()
    bodies(url, maxLargeBodyBytes=str(LONG))

    (long,) = {name for name, _, _ in noted} - short
    assert short
    assert [(offset, size) for name, offset, size in noted if name == long] == [
        (0, PIECE_SIZE),
        (PIECE_SIZE, PIECE_SIZE),
        (2 * PIECE_SIZE, 17),
    ]


@pytest.mark.parametrize("new_database_of", ["sqlite", "postgresql", "mariadb"])
def test_a_body_that_goes_while_it_is_read_is_no_half_one(
    new_database, new_database_of, folder, reads, capsys
):
    """A broker that runs has delivered its message meanwhile."""
    url = new_database(new_database_of).url
    fill(url, folder)
    _, then = reads
    gone = []

    def delete(file):
        if file.size == LONG and not gone:
            gone.append(int(file.name.removesuffix(".msg")))
            with closing(Database(DatabaseStoreOptions(connection_url=url))) as database:
                SqlFiles(database, TABLE).open(file.name).delete()

    then.append(delete)

    found = bodies(url, maxLargeBodyBytes=str(LONG))

    assert found[gone[0]] == (None, None)
    assert any(body for body, _ in found.values())


def test_batches_of_bodies_of_a_table_are_cut(new_database, folder, monkeypatch, capsys):
    url = new_database("sqlite").url
    fill(url, folder)
    monkeypatch.setattr("pipeline.large_bodies.BODIES_MAX", 1)
    given = {"path": url, "asOfMs": "0", "maxLargeBodyBytes": str(LONG)}
    reader = MessagesReader(SourceOptions.read(given))

    counts = [
        sum(row["is_large"] and row["body"] is not None for row in batch.to_pylist())
        for part in reader.partitions()
        for batch in reader.read(part)
    ]

    assert [count for count in counts if count] == [1, 1]
