"""A broker in the test's own process, by the documented way."""

# ruff: noqa: SIM117 - a broker, its client and a session end one after the other.

import asyncio
import multiprocessing
import os
import re
from pathlib import Path

import pytest

import broker.client
from broker.client import AsyncClient, Client, errors, make_message
from broker.embedded import EmbeddedBroker
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
