"""What help() and repr() say of the client's classes."""

import asyncio
import inspect
import re

import pytest

import broker.client
from broker.client import AckMode, AsyncClient, AsyncConnection, Client
from broker.embedded import EmbeddedBroker

WAIT_S = 30

CLASSES = [
    one
    for name in broker.client.__all__
    if inspect.isclass(one := getattr(broker.client, name))
    and one.__module__.startswith(("broker.client.aio", "broker.client.blocking"))
    and not hasattr(one, "__total__")  # A TypedDict.
]


def members(cls):
    """The public methods and properties of a class that the client's package defines."""
    for name in dir(cls):
        one = inspect.getattr_static(cls, name)
        function = getattr(one, "fget", None) or getattr(one, "__func__", one)
        if (name == "__init__" or not name.startswith("_")) and inspect.isfunction(function):
            yield name, inspect.unwrap(function)


def test_every_class_is_looked_at():
    assert {one.__name__ for one in CLASSES} == {
        asynchronous + name
        for name in ("Client", "Connection", "Session", "Producer", "Consumer", "Received")
        for asynchronous in ("", "Async")
    } | {"AsyncEverywhereConsumer"}


@pytest.mark.parametrize("cls", CLASSES)
def test_help_describes_every_method_and_its_parameters(cls):
    wrong = []
    for name, function in members(cls):
        text = inspect.getdoc(function) or ""
        if name == "__init__" and "Client" not in cls.__name__:
            continue  # The application does not call it.
        first = text.split("\n", 1)[0]
        if not first.endswith("."):
            wrong.append(f"{name}: the first line is {first!r}")
        for one in list(inspect.signature(function).parameters.values())[1:]:
            stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
            if f"\n    {stars}{one.name}: " not in text:
                wrong.append(f"{name}: nothing on {stars}{one.name}")

    assert wrong == []


@pytest.mark.parametrize("name", ["Client", "Connection", "Session", "Producer", "Consumer"])
def test_the_class_for_threads_has_what_the_asynchronous_one_documents(name):
    """Methods for applications; what only the client's parts call is not repeated for threads."""
    ours = dict(members(getattr(broker.client, name)))
    theirs = dict(members(getattr(broker.client, f"Async{name}")))
    waits = ours.keys() & theirs.keys() - {"__init__"}

    def raised(function):
        """The lines of its section on errors."""
        _, _, errors = inspect.getdoc(function).partition("\nRaises:\n")
        return errors

    assert {one: raised(ours[one]) for one in waits} == {one: raised(theirs[one]) for one in waits}


# --- repr -----------------------------------------------------------------------------------------


def test_reprs_tell_where_and_in_which_state():
    with EmbeddedBroker() as running:
        at = f"localhost:{running.port}"
        client = Client(f"tcp://{at}", user="me", password="swordfish")
        assert repr(client) == f"<Client {at}: 0 connections>"
        connection = client.connect()
        assert repr(connection) == f"<Connection {at}: connected, 0 sessions>"
        session = connection.session(AckMode.CLIENT, start=False)
        shown = repr(session)
        assert re.fullmatch(r"<Session [0-9a-f-]{36}: client, stopped, 0 consumers>", shown)
        session.create_queue("orders")
        producer, anywhere = session.producer("orders"), session.producer()
        assert repr(producer) == "<Producer 'orders': open>"
        assert repr(anywhere) == "<Producer any address: open>"
        producer.send("text")
        browser = session.consumer("orders", "JMSPriority > 1", browse=True)
        session.start()
        received = browser.receive(WAIT_S)
        where = "'orders' where AMQPriority > 1"
        assert repr(browser) == f"<Consumer {where}: browsing, 0 messages at hand>"
        assert repr(received) == f"Received({received.message!r}, delivery_count=0)"
        assert repr(client) == f"<Client {at}: 1 connections>"
        assert repr(connection) == f"<Connection {at}: connected, 1 sessions>"
        assert repr(session).endswith(": client, started, 1 consumers>")

        for one in (browser, producer, session, connection, client):
            one.close()
        assert repr(browser) == f"<Consumer {where}: closed>"
        assert repr(producer) == "<Producer 'orders': closed>"
        assert repr(session) == shown.split(":")[0] + ": closed>"
        assert repr(connection) == f"<Connection {at}: closed>"
        assert repr(client) == f"<Client {at}: closed>"


def test_reprs_in_asyncio():
    async def main():
        async with (
            EmbeddedBroker() as running,
            AsyncClient(f"(tcp://localhost:{running.port},tcp://other:1)") as client,
        ):
            at = f"localhost:{running.port}"
            assert repr(client) == f"<AsyncClient {at},other:1: 0 connections>"
            connection = AsyncConnection(client, client.connectors[0])
            assert repr(connection) == f"<AsyncConnection {at}: not connected yet>"
            session = await client.session()
            await session.create_queue("orders")
            async with await session.consumer("orders") as consumer:
                shown = "<AsyncConsumer 'orders': open, 0 messages at hand>"
                assert repr(consumer) == shown
            assert repr(session.producer()) == "<AsyncProducer any address: open>"
            (connection,) = client.connections
            session_name = repr(session).split(":")[0]
            lost = asyncio.Event()
            connection.on_ended = lambda error: lost.set()
            await running.broker.stop()
            async with asyncio.timeout(WAIT_S):
                await lost.wait()
            assert repr(connection) == f"<AsyncConnection {at}: lost>"
            assert repr(session) == f"{session_name}: closed>"

    asyncio.run(main())
