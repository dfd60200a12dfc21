"""`journal copy` between files and databases: lossless, empty targets only, resumable."""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from journal.errors import JournalIOError
from journal.tools import copy as copy_module
from tests.jdbcstore.cli.conftest import fill, loaded_store
from tests.jdbcstore.leases import KINDS
from tests.journal.golden import Scenario, scenarios

SMALL = ("--file-size", "64K", "--buffer-size", "16K")
PLACES = ["files", *KINDS]
READABLE = [
    s
    for s in scenarios()
    if "load_error" not in s.expected["load"] and not s.expected["config"]["user_version"]
]


@pytest.fixture
def place(new_database, tmp_path):
    """`place("files")`, `place("postgresql")`: a folder or a URL that holds nothing yet."""
    numbers = itertools.count()

    def new(kind):
        if kind == "files":
            return str(tmp_path / f"folder{next(numbers)}")
        return new_database(kind).url

    return new


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script"
    path.write_text(
        "add 45 6f6e65 id=1\nadd 200 - id=2\nupdate 1 46 61676169\nadd 45 00 id=3\ndelete 3\n"
        "add 1 08 id=8 tx=100\nupdate 2 2 09 tx=100\ndelete 1 tx=100\nprepare 100 62\n"
        "add 1 08 id=9 tx=50\nprepare 50 -\n"
    )
    return path


def exported(call, source, *options):
    status, out, _ = call("export", source, *options)
    assert status == 0
    return out.splitlines()


@pytest.mark.parametrize("source", PLACES)
@pytest.mark.parametrize("target", PLACES)
def test_nothing_is_lost_between_any_two(call, place, script, source, target):
    source, target = place(source), place(target)
    assert call("exec", source, script, *(SMALL if "://" not in source else ()))[0] == 0
    before = exported(call, source)

    status, out, err = call("copy", source, target)

    assert (status, err) == (0, "")
    assert out.endswith("2 adds, 1 updates and 2 prepared transactions copied\n")
    assert exported(call, target) == before
    assert exported(call, source) == before
    assert call("verify", target)[0] == 0


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_journals_of_artemis_go_there_and_back(scenario, tmp_path, call):
    """Live records and prepared transactions; of ids that were added twice see copy.py."""
    source = scenario.unpack(tmp_path)
    before = call("export", source)[1].splitlines()
    url = f"sqlite:///{tmp_path}/there.db"

    there = call("copy", source, url, "--buffer-size", "2M")[0]
    back = call("copy", url, tmp_path / "back", "--buffer-size", "2M")[0]

    seen = set()
    for number, line in enumerate(before):
        found = json.loads(line)
        if found["record"] == "add" and found["id"] in seen:
            found["record"] = "update"
            before[number] = json.dumps(found)
        seen.add(found.get("id"))
    assert there == call("export", source)[0]
    assert back == 0
    assert call("export", tmp_path / "back")[1].splitlines() == before


def test_a_folder_keeps_name_and_size_of_the_files(call, tmp_path):
    call("append", tmp_path / "a", "--count", "3", *SMALL, "--prefix", "mine", "--extension", "jrn")

    assert call("copy", tmp_path / "a", tmp_path / "b")[0] == 0

    names = {path.name: path.stat().st_size for path in (tmp_path / "b").glob("*.jrn")}
    assert set(names) == {"mine-1.jrn", "mine-2.jrn"}
    assert set(names.values()) == {65536}


@pytest.mark.parametrize("target", PLACES)
def test_a_target_that_holds_something_is_refused(call, place, script, target, tmp_path):
    target = place(target)
    call("exec", target, script)
    call("append", tmp_path / "a", "--count", "3", *SMALL)
    before = exported(call, target)

    status, out, err = call("copy", tmp_path / "a", target)

    assert status == 2
    assert "copied" not in out
    assert err.startswith("journal: the target holds 3 records and 2 prepared transactions;")
    assert exported(call, target) == before


def test_merge_adds_to_what_is_there(call, sqlite_url, script, tmp_path):
    call("exec", sqlite_url, script)
    lines = tmp_path / "lines"
    lines.write_text('{"record":"add","id":70,"user_type":1,"body":"cafe"}\n')
    call("import", tmp_path / "a", lines, *SMALL)

    first = call("copy", tmp_path / "a", sqlite_url, "--merge")
    again = call("copy", tmp_path / "a", sqlite_url, "--merge")

    assert first[0] == 0
    assert again[0] == 2
    assert "record 70 is in the target already" in again[2]
    assert call("print-data", sqlite_url, "--format", "ids")[1] == "1\n2\n70\n"


@pytest.mark.parametrize("target", PLACES)
def test_a_copy_cut_short_goes_on(call, place, script, monkeypatch, target):
    """The target stands after any number of groups, the last of them perhaps left open."""
    source, target = place("files"), place(target)
    call("append", source, "--count", "50", *SMALL)
    call("exec", source, script)  # Ids 1 and 2 are there: two ERR lines.
    monkeypatch.setattr(copy_module, "GROUP_RECORDS", 7)
    before = exported(call, source)

    for records in (0, 10, 10, 10):
        with monkeypatch.context() as patch:
            cut = Cut(records)
            patch.setattr(copy_module, "_check_size", cut)
            assert call("copy", source, target, "--resume")[0] == 2
    status, _, err = call("copy", source, target, "--resume")

    assert status == 0
    assert "were there already" in err
    assert exported(call, target) == before
    assert call("copy", source, target, "--resume", "--json")[0] == 0
    assert exported(call, target) == before


class Cut:
    """Fails like a disk at the record of a number."""

    def __init__(self, left):
        self.left = left

    def __call__(self, store, body):
        if self.left == 0:
            raise JournalIOError(5, "cut short")
        self.left -= 1


def test_a_target_of_something_else_is_no_beginning(call, sqlite_url, tmp_path, script):
    call("append", tmp_path / "a", "--count", "5", *SMALL)
    call("exec", sqlite_url, script)
    before = exported(call, sqlite_url)

    status, _, err = call("copy", tmp_path / "a", sqlite_url, "--resume")

    assert status == 2
    assert "it is not a beginning of a copy of this source" in err
    assert exported(call, sqlite_url) == before


@pytest.mark.parametrize("target", PLACES)
def test_a_killed_copy_goes_on(call, place, target):
    """kill -9 while records go over; what is there is a beginning, and the rest follows."""
    source, target = place("files"), place(target)
    call("append", source, "--count", "20000", "--size", "300", "--no-sync")
    before = exported(call, source)
    command = [sys.executable, "-m", "journal.cli.main", "copy", source, target, "--resume"]
    lock = ("--lock-timeout", "60s")  # The lease of the killed one has to expire.

    with subprocess.Popen(command, env={**os.environ}, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not has_records(target):
            pass
        process.kill()
    status, _, err = call("copy", source, target, "--resume", *lock)

    assert status == 0
    assert "were there already" in err
    assert exported(call, target) == before
    assert call("verify", target)[0] == 0


def has_records(target):
    """Whether some of the copy is in the target by now."""
    command = [sys.executable, "-m", "journal.cli.main", "print-data", target, "--format", "ids"]
    live = [] if "://" in target else ["--live"]
    done = subprocess.run([*command, *live], capture_output=True, check=False)
    return bool(done.stdout.strip())


def test_large_bodies_and_many_records_go_over(call, sqlite_url, tmp_path):
    with loaded_store(sqlite_url) as store:
        store.add_many(range(1, 5001), 7, [b"%d" % number for number in range(1, 5001)])
        store.add(6000, 8, bytes(3 * 1024 * 1024))
        store.update(6000, 9, bytes(2 * 1024 * 1024))
    before = exported(call, sqlite_url)

    big = ("--file-size", "10M", "--buffer-size", "4M")
    assert call("copy", sqlite_url, tmp_path / "files", *big)[0] == 0
    assert call("copy", tmp_path / "files", sqlite_url, "--target-table", "BACK")[0] == 0

    assert call("export", sqlite_url, "--table", "BACK")[1].splitlines() == before


def test_what_does_not_fit_the_target_is_one_line(call, sqlite_url, tmp_path):
    with loaded_store(sqlite_url) as store:
        store.add(1, 8, bytes(100_000))

    status, _, err = call("copy", sqlite_url, tmp_path / "files", *SMALL)

    assert status == 2
    assert "a body of 100000 bytes" in err


def test_tables_are_named_for_each_side(call, sqlite_url):
    fill(sqlite_url, "BINDINGS")
    tables = ("--source-table", "BINDINGS", "--target-table", "COPIED")

    assert call("copy", sqlite_url, sqlite_url, *tables)[0] == 0

    assert (
        call("export", sqlite_url, "--table", "COPIED")[1]
        == call("export", sqlite_url, "--table", "BINDINGS")[1]
    )


def test_damage_of_the_source_is_named(call, sqlite_url, rows, tmp_path):
    fill(sqlite_url)
    rows(sqlite_url).insert(seq=20, recordType=77)

    status, _, err = call("copy", sqlite_url, tmp_path / "files", *SMALL)

    assert status == 1
    assert ":20: recordType 77" in err
    assert exported(call, tmp_path / "files")


def test_a_held_source_is_read_and_a_held_target_refused(call, sqlite_url, tmp_path):
    fill(sqlite_url)
    with loaded_store(sqlite_url):
        assert call("copy", sqlite_url, tmp_path / "files", *SMALL)[0] == 0
        status, _, err = call("copy", tmp_path / "files", sqlite_url, "--target-table", "B")

    assert status == 2
    assert "is held by" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["{folder}/none", "{folder}/new"],
        ["{folder}/none", "sqlite:///{folder}/new.db"],
        ["sqlite:///{folder}/none.db", "{folder}/new"],
        ["sqlite:///{folder}/none.db", "{folder}/new", "--resume", "--merge"],
    ],
)
def test_a_wrong_call_is_one_line_and_makes_nothing(call, tmp_path, arguments):
    status, out, err = call("copy", *(word.format(folder=tmp_path) for word in arguments))

    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_three_lines_of_the_guide_put_a_journal_into_postgresql(call, database, tmp_path):
    guide = (Path(__file__).parents[3] / "docs/guide/databases.md").read_text()
    export, *lines = re.search(
        r"One command copies a journal of files.*?\n\n((?:    .+\n){3})", guide
    )[1].splitlines()
    folder = Scenario("broker_basic", "messages").unpack(tmp_path)
    there = {"build/try/journal": folder, "postgresql://me@host/broker": database.url}

    done = []
    for line in lines:
        _, *words = shlex.split(line, comments=True)
        done.append(call(*(there.get(word, word) for word in words)))

    assert export.split() == ["export", "QUIVER_DATABASE_PASSWORD=secret"]
    assert [status for status, _, _ in done] == [0, 0]
    assert exported(call, database.url, "--table", "COPIED") == exported(call, folder)


def test_each_side_of_a_copy_has_settings_of_its_own(call, tmp_path):
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in "ab"]
    added, _, _ = call(
        "append", urls[0], "--count", "3", "--size", "10", "--setting", "jdbc-lock-expiration=60000"
    )

    status, out, _ = call(
        *("copy", *urls, "--source-setting", "message-table-name=MESSAGES"),
        *("--target-setting", "message-table-name=OTHER", "--target-setting", "jdbc-ride-out=0"),
    )

    assert (added, status) == (0, 0)
    assert out.startswith("3 adds")
    assert call("stat", urls[1], "--table", "OTHER")[0] == 0
