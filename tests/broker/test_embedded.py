"""A broker in the test's own process, by the documented way."""

# ruff: noqa: SIM117 - a broker, its client and a session end one after the other.

import asyncio
import multiprocessing
import os
import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import broker.client
from broker.cli.create import create
from broker.client import (
    AsyncClient,
    Client,
    NotConnected,
    SecurityRefused,
    errors,
    make_message,
)
from broker.config.errors import ConfigError
from broker.embedded import EmbeddedBroker
from broker.options import BrokerOptions
from broker.transport.acceptor import AcceptorOptions
from jdbcstore import DatabaseStoreOptions, LeaseLost
from journal.errors import JournalError

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "embedding.md"
WAIT_S = 30


def test_what_is_sent_to_a_broker_in_a_thread_is_there_at_its_next_start(tmp_path):
    with EmbeddedBroker.in_folder(tmp_path / "data") as running:
        with Client(f"tcp://127.0.0.1:{running.port}") as client, client.connect() as connection:
            with connection.session() as session:
                session.create_queue("orders")
                session.producer("orders").send(make_message("one", durable=True))
    with EmbeddedBroker.in_folder(tmp_path / "data") as running:
        with Client(f"tcp://127.0.0.1:{running.port}") as client, client.connect() as connection:
            with connection.session() as session:
                received = session.consumer("orders").receive(WAIT_S)

    assert received is not None


def test_one_in_the_event_loop(tmp_path):
    async def main():
        async with EmbeddedBroker() as running:
            async with AsyncClient(f"tcp://127.0.0.1:{running.port}") as client:
                connection = await client.connect()
                session = await connection.session()
                await session.create_queue("q")
                assert running.broker.is_started

    asyncio.run(main())


def test_a_folder_in_use_is_refused_by_the_block(tmp_path):
    with EmbeddedBroker.in_folder(tmp_path / "data"):
        with (
            pytest.raises(JournalError, match="in use"),
            EmbeddedBroker.in_folder(tmp_path / "data"),
        ):
            pass


def in_child(client, answers):
    try:
        client.connect()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent looks at it.
        answers.put(f"{type(error).__name__}: {error}")
    else:
        answers.put("connected")
    client.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_is_refused_its_parents_client():
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    with EmbeddedBroker() as running, Client(f"tcp://127.0.0.1:{running.port}") as client:
        child = fork.Process(target=in_child, args=(client, answers))
        child.start()
        said = answers.get(timeout=WAIT_S)
        child.join(WAIT_S)
        client.connect().close()

    assert child.exitcode == 0
    assert said == (
        f"ClosedError: the client belongs to process {os.getpid()}: make one in this process"
    )


def test_every_error_of_the_client_is_exported():
    kinds = {name for name, one in vars(errors).items() if isinstance(one, type)}
    ours = {name for name in kinds if getattr(errors, name).__module__ == errors.__name__}

    assert ours <= set(broker.client.__all__)
    assert {"Message", "RoutingType", "Xid"} <= set(broker.client.__all__)


def test_the_guide_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]

    exec(program, {})

    assert (tmp_path / "data" / "journal").is_dir()


# --- a broker.xml -------------------------------------------------------------------------------


@pytest.fixture
def instance(tmp_path):
    """An instance as `broker create` makes it, at a port that the system chooses."""
    folder = tmp_path / "instance"
    words = [str(folder), "--user", "me", "--password", "secret", "--require-login", "--no-web"]
    # How full the disk of this machine is must not block producers.
    made = CliRunner().invoke(create, [*words, "--max-disk-usage", "-1"])
    assert made.exit_code == 0, made.output
    xml = folder / "etc" / "broker.xml"
    xml.write_text(xml.read_text().replace(":61616", ":0"))
    return folder


def test_one_that_a_file_describes(instance, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    xml = instance / "etc" / "broker.xml"

    with EmbeddedBroker.from_xml(xml) as running:
        uri = f"tcp://127.0.0.1:{running.port}"
        with Client(uri) as stranger, pytest.raises(SecurityRefused):
            stranger.session()
        with Client(uri, user="me", password="secret") as client, client.session() as session:
            session.create_queue("orders")
            session.producer("orders").send(make_message("kept", durable=True))
    with EmbeddedBroker.from_xml(str(xml)) as running:
        uri = f"tcp://127.0.0.1:{running.port}"
        with Client(uri, user="me", password="secret") as client, client.session() as session:
            received = session.consumer("orders").receive(WAIT_S)

    assert received is not None
    assert received.text == "kept"
    # Its folders are the instance's, wherever the program runs.
    assert (instance / "data" / "journal").is_dir()
    assert list(elsewhere.iterdir()) == []


def test_it_follows_changes_of_its_file(instance):
    xml = instance / "etc" / "broker.xml"
    with EmbeddedBroker.from_xml(xml) as running:
        uri = f"tcp://127.0.0.1:{running.port}"
        with Client(uri, user="me", password="secret") as client, client.session() as session:
            assert not session.query_queue("later").exists
            text = xml.read_text()
            more = '<address name="later"><anycast><queue name="later"/></anycast></address>'
            xml.write_text(text.replace("</addresses>", f"{more}</addresses>"))
            session.manage("broker", "reloadConfigurationFile")

            assert session.query_queue("later").exists


def test_a_file_that_is_wrong_is_refused_before_anything_starts(instance):
    xml = instance / "etc" / "broker.xml"
    text = xml.read_text()
    xml.write_text(text.replace("</addresses>", "</addresses><jurnal-type>NIO</jurnal-type>"))

    with pytest.raises(ConfigError, match="jurnal-type"):
        EmbeddedBroker.from_xml(xml)
    with EmbeddedBroker.from_xml(xml, lenient=True) as running:
        assert running.broker.is_started
    with pytest.raises(ConfigError, match=r"missing\.xml"):
        EmbeddedBroker.from_xml(xml.with_name("missing.xml"))


# --- a storage that fails -------------------------------------------------------------------------


def on_tables(folder):
    """One on SQLite whose lease is looked at often."""
    store = DatabaseStoreOptions(
        connection_url=f"sqlite:///{folder}/broker.db", lock_renew_period_ms=20
    )
    return EmbeddedBroker(BrokerOptions(store=store, acceptors=(AcceptorOptions(port=0),)))


def take_lease(folder):
    """What `journal locks --break` does: the broker's next renewal finds that it has lost."""
    with closing(sqlite3.connect(folder / "broker.db", timeout=WAIT_S)) as database, database:
        database.execute(
            "UPDATE NODE_MANAGER_STORE SET HOLDER_ID = NULL, HOLDER_EXPIRATION_TIME = NULL"
        )


def lose_lease(folder):
    """Serve until the lease is lost, and look whether clients are refused behind it."""
    with on_tables(folder) as running:
        uri = f"tcp://127.0.0.1:{running.port}"
        stopped = threading.Event()
        with Client(uri) as client, client.connect() as connection:
            connection.session().create_queue("orders")
            connection._connection.on_ended = lambda error: stopped.set()
            take_lease(folder)
            assert stopped.wait(WAIT_S)
        with Client(uri) as client, pytest.raises(NotConnected):
            client.connect()
        raise KeyError("the block's own")


def test_a_failed_storage_ends_the_broker_and_the_end_of_the_block_raises_it(tmp_path):
    with pytest.raises(LeaseLost) as failure:
        lose_lease(tmp_path)

    # An error of the block is not hidden by it.
    assert isinstance(failure.value.__context__, KeyError)
    # What was stored, the next one has.
    with on_tables(tmp_path) as running:
        with Client(f"tcp://127.0.0.1:{running.port}") as client, client.session() as session:
            assert session.query_queue("orders").exists


def test_in_asyncio_the_broker_tells_of_a_failed_storage(tmp_path):
    async def main():
        async with on_tables(tmp_path) as running:
            take_lease(tmp_path)
            async with asyncio.timeout(WAIT_S):
                return await running.broker.failed()

    assert isinstance(asyncio.run(main()), LeaseLost)
