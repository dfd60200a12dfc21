"""exec, append, import and compact on a database."""

import json

import pytest

from jdbcstore.store import SqlStore
from tests.jdbcstore.cli.conftest import loaded_store
from tests.jdbcstore.leases import KINDS

on_every_database = pytest.mark.parametrize("database", KINDS, indirect=True)
WRITERS = {
    "exec": [],
    "append": ["--count", "1"],
    "import": [],
    "compact": [],
}


@pytest.fixture
def script(tmp_path):
    def write(*lines):
        path = tmp_path / "script"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


@on_every_database
def test_exec_answers_once_it_is_durable(call, database, script):
    lines = script(
        *("add 1 cafe", "begin", "add 1 beef tx=2", "delete 1 tx=2", "commit 2", "reclaim"),
        *("compact", "sync", "delete 9", "begin", "add 7 00 tx=4", "prepare 4 aa"),
    )

    status, answers, err = call("exec", database.url, lines)

    assert (status, err) == (0, "")
    assert answers.splitlines() == [
        *("ACK add 1", "TX 2", "OK add 3", "OK delete 1", "ACK commit 2", "ACK reclaim 0"),
        *("ACK compact", "ACK sync", "ERR delete: Cannot find add info 9", "TX 4", "OK add 5"),
        "ACK prepare 4",
    ]
    assert call("print-data", database.url, "--format", "ids")[1] == "3\n"
    assert call("verify", database.url)[0] == 0


@on_every_database
def test_append_goes_on_above_all_ids(call, database):
    first = call("append", database.url, "--count", "2", "--size", "10")
    second = call("append", database.url, "--count", "1", "--no-sync")

    assert first == (0, "ACK 1\nACK 2\n", "")
    assert second == (0, "ACK 3\n", "")
    assert call("print-data", database.url, "--format", "ids")[1] == "1\n2\n3\n"


@on_every_database
def test_what_was_exported_is_imported_without_a_loss(call, filled, tmp_path):
    exported = call("export", filled)[1]
    lines = tmp_path / "lines"
    lines.write_text(exported)

    status, out, _ = call("import", filled, lines, "--table", "COPIED", "--json")

    assert status == 0
    assert json.loads(out)["prepared"] == 1
    assert call("export", filled, "--table", "COPIED")[1] == exported


def test_a_bad_line_imports_nothing(call, sqlite_url, script):
    good = '{"record":"add","id":7,"user_type":1,"body":"cafe"}'

    status, _, err = call("import", sqlite_url, script(good, "nonsense"))

    assert status == 2
    assert "line 2" in err
    assert call("print-data", sqlite_url, "--format", "ids")[1] == ""


@on_every_database
def test_compact_tidies_up_what_was_left(call, filled, rows):
    table = rows(filled)
    table.insert(seq=20, recordType=13, txId=700, id=60)
    table.insert(seq=21, recordType=18, txId=700, id=0)
    table.insert(seq=22, recordType=13, txId=701, id=61)

    status, out, _ = call("compact", filled, "--json")

    assert status == 0
    assert json.loads(out) == {"rows_before": 10, "rows_after": 8}
    assert call("print-data", filled, "--format", "ids")[1] == "1\n2\n60\n"


def test_compact_of_no_table_makes_none(call, sqlite_url, rows):
    rows(sqlite_url).names()  # Makes the file.

    status, _, err = call("compact", sqlite_url)

    assert (status, err) == (2, "journal: the database has no table MESSAGES\n")
    assert rows(sqlite_url).names() == []


@on_every_database
@pytest.mark.parametrize("command", WRITERS)
def test_a_store_in_use_is_refused_with_one_line(command, call, filled):
    with loaded_store(filled):
        status, out, err = call(command, filled, *WRITERS[command])

    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "is held by" in err


def test_a_lease_is_kept_in_the_table_that_was_named(call, sqlite_url, rows):
    call("append", sqlite_url, "--count", "1", "--node-manager-table", "MY_NODES")

    assert rows(sqlite_url).names() == ["MESSAGES", "MY_NODES"]


@pytest.mark.parametrize("command", WRITERS)
def test_a_database_that_is_not_there_is_one_line(command, call):
    status, out, err = call(command, "postgresql://me:open-sesame@127.0.0.1:1/x", *WRITERS[command])

    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "open-sesame" not in err


def test_sync_options_reach_the_store(call, sqlite_url, monkeypatch):
    seen = {}
    original = SqlStore.__init__

    def spy(self, *args, **named):
        seen.update(named)
        original(self, *args, **named)

    monkeypatch.setattr(SqlStore, "__init__", spy)
    call("append", sqlite_url, "--count", "1", "--no-sync-transactional")

    assert seen == {"sync_transactional": False, "sync_non_transactional": True}
