"""`journal locks URL` on real databases."""

import json

import click
import pytest
from click.testing import CliRunner

from jdbcstore.node import NodeManager
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.tools.opener import options_of
from journal.cli.main import journal
from journal.commands import groups
from journal.commands.exit_status import run
from journal.commands.sources import access_to
from tests.jdbcstore.leases import KINDS, Brokers

on_every_database = pytest.mark.parametrize("database", KINDS, indirect=True)


@pytest.fixture
def call(capsys):
    """`call("locks", url)`: exit status, standard output, standard error."""

    def invoke(*arguments):
        capsys.readouterr()
        status = run(journal, "journal", list(arguments))
        said = capsys.readouterr()
        return status, said.out, said.err

    return invoke


@pytest.fixture
def primary(brokers):
    manager = NodeManager(brokers.database())
    manager.start()
    manager.start_primary()
    manager.activated()
    yield manager
    manager.stop()


@on_every_database
def test_a_lock_is_shown_for_people(call, database, primary):
    status, out, err = call("locks", database.url)

    assert (status, err) == (0, "")
    assert f"node     {primary.node_id}" in out
    assert "state    L (active)" in out
    assert f"row 1    primary: held by {primary.primary_lease.holder_id} for another " in out
    assert "row 2    backup: free" in out


@on_every_database
def test_a_lock_is_shown_for_machines(call, database, primary):
    status, out, _ = call("locks", database.url, "--json")

    found = json.loads(out)
    first, second = found["locks"]
    assert status == 0
    assert found["node_id"] == primary.node_id
    assert found["state"] == "L"
    assert first["holder"] == primary.primary_lease.holder_id
    assert first["is_held"]
    assert first["expires_ms"] - found["now_ms"] == pytest.approx(first["remaining_ms"], abs=60_000)
    assert second == {
        "row": 2,
        "name": "backup",
        "holder": None,
        "expires_ms": None,
        "remaining_ms": 0,
        "is_held": False,
    }


@on_every_database
def test_a_broken_lock_is_free_and_its_holder_finds_out(call, database, primary):
    status, out, err = call("locks", database.url, "--break", "1", "--yes")

    assert status == 0
    assert f"broken: the primary's lease of {primary.primary_lease.holder_id}" in err
    assert "row 1    primary: free" in out
    assert not primary.primary_lease.renew()


@pytest.fixture
def sqlite(tmp_path):
    brokers = Brokers(f"sqlite:///{tmp_path}/a.db")
    yield brokers
    brokers.close()


def test_breaking_asks_first(sqlite):
    lease = sqlite.lease()
    lease.try_acquire()

    refused = CliRunner().invoke(journal, ["locks", sqlite.url, "--break", "1"], input="n\n")
    held_after_no = lease.is_held_by_me()
    agreed = CliRunner().invoke(journal, ["locks", sqlite.url, "--break", "1"], input="y\n")

    assert held_after_no
    assert refused.exit_code != 0
    assert f"held by {lease.holder_id}" in refused.stderr
    assert agreed.exit_code == 0
    assert not lease.is_held()


def test_an_expired_lease_says_whose_it_was(call, sqlite):
    lease = sqlite.lease()
    lease.try_acquire()
    sqlite.expire()

    _, out, _ = call("locks", sqlite.url)

    assert f"row 1    primary: expired, last held by {lease.holder_id}" in out


def test_breaking_a_free_lock_changes_nothing(call, sqlite):
    sqlite.lease()

    status, _, err = call("locks", sqlite.url, "--break", "2", "--yes")

    assert status == 0
    assert "free already" in err


def test_a_lock_that_changed_hands_is_not_broken(call, sqlite, monkeypatch):
    lease = sqlite.lease()
    lease.try_acquire()
    monkeypatch.setattr("jdbcstore.cli.locks.break_lock", lambda database, row, holder: False)

    status, _, err = call("locks", sqlite.url, "--break", "1", "--yes")

    assert status == 1
    assert "not broken" in err
    assert lease.is_held_by_me()


@pytest.mark.parametrize(
    "arguments",
    [
        ["locks"],
        ["locks", "no url"],
        ["locks", "sqlite:///{folder}/none.db", "--break", "3"],
        ["locks", "sqlite:///{folder}/none.db"],
        ["locks", "sqlite:///{folder}/none.db", "--table", "x; drop table y"],
        ["locks", "sqlite:///{folder}/none.db", "--setting", "jdbc-network-timeout"],
        ["locks", "sqlite:///{folder}/none.db", "--setting", "jdbc-network-timeout=soon"],
        ["locks", "sqlite:///{folder}/none.db", "--setting", "jdbc-no-such=1"],
        ["locks", "postgresql://127.0.0.1:1/nosuch"],
    ],
)
def test_a_wrong_call_is_one_line(call, tmp_path, arguments):
    status, out, err = call(*(word.format(folder=tmp_path) for word in arguments))

    assert status == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("journal: ")


def test_looking_makes_no_database(call, tmp_path):
    call("locks", f"sqlite:///{tmp_path}/none.db")

    assert list(tmp_path.iterdir()) == []


def test_a_password_is_never_shown(call, monkeypatch):
    monkeypatch.setenv("QUIVER_DATABASE_PASSWORD", "open sesame")

    _, out, err = call("locks", "postgresql://me@127.0.0.1:1/nosuch")

    assert "open sesame" not in out + err
    assert "open sesame" not in repr(
        DatabaseStoreOptions(connection_url="sqlite:///a", password="open sesame")
    )


def test_the_command_is_listed_and_has_an_example(call):
    status, out, _ = call("--help")
    _, help_text, _ = call("locks", "--help")

    assert status == 0
    assert "locks" in out
    assert "Example:" in help_text


def test_a_command_whose_package_is_missing_says_what_to_install(call, monkeypatch):
    class Entry:
        name = "locks"

        def load(self):
            raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy")

    monkeypatch.setattr(groups, "_registered", lambda: [Entry()])

    listed, _, _ = call("--help")
    status, _, err = call("locks", "sqlite:///a", "--json")

    assert listed == 0
    assert status == 2
    assert err == (
        "journal: `locks`: the Python package sqlalchemy is missing: "
        "type pip install 'quiver-mq[sql]'\n"
    )


def test_an_unknown_command_is_still_refused(call):
    status, _, err = call("lock")

    assert status == 2
    assert "No such command" in err
    assert isinstance(journal, click.Group)


def test_every_parameter_of_a_database_can_be_set(tmp_path):
    file = tmp_path / "password"
    file.write_text("open sesame\n")
    given = {
        "password_file": file,
        "lock_acquisition_timeout_ms": 7,
        "settings": ("jdbc-network-timeout=60000", "jdbc-lock-expiration=90000", "jdbc-ride-out=5"),
    }

    options = options_of(access_to("sqlite:///a", given))

    assert options.password == "open sesame"
    assert options.network_timeout_ms == 60_000
    assert options.lock_expiration_ms == 90_000
    assert options.ride_out_ms == 5
    assert options.lock_acquisition_timeout_ms == 7
