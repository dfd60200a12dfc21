"""Pages in a database: the same tables as Artemis's, one for each address."""

import pytest
import sqlalchemy

from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from jdbcstore.options import DatabaseStoreOptions
from tests.broker.paging.runs import durable, runs

XID = Xid(1, b"b", b"g")
WIDE = {"max_read_page_bytes": 1024 * 1024}
KINDS = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


def page_tables(database):
    """Names of the tables that hold pages, and how many files each has."""
    engine = sqlalchemy.create_engine(database.url)
    try:
        while True:
            names = names_of(engine)
            try:
                return {name: files_in(engine, name) for name in names}
            except sqlalchemy.exc.DBAPIError:
                # The broker may drop one between the two looks.
                if names_of(engine) == names:
                    raise
    finally:
        engine.dispose()


def names_of(engine):
    with engine.connect() as connection:
        return [
            name
            for name in sqlalchemy.inspect(connection).get_table_names()
            if name.lower().startswith("page_store") and name.lower() != "page_store"
        ]


def files_in(engine, name):
    count = sqlalchemy.text(f"SELECT COUNT(*) FROM {name} WHERE EXTENSION = 'page'")
    with engine.connect() as connection:
        return connection.execute(count).scalar()


@KINDS
def test_pages_survive_a_restart_in_tables(tmp_path, new_database, kind):
    database = new_database(kind)
    store = DatabaseStoreOptions(connection_url=database.url)

    async def before(run):
        await run.queue()
        await run.send_numbers(range(100))
        session = run.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        session.xa.start(XID)
        await run.send_numbers(range(100, 120), session=session)
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 100)
        await run.acknowledge(sink, sink.ids[39])
        tables = page_tables(database)
        assert len(tables) == 1
        assert sum(tables.values()) > 1

    async def after(run):
        await run.until(lambda: run.queue_of().message_count == 60)
        session = run.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        await durable(session.xa.commit, XID, False)
        assert await run.drain(80) == list(range(40, 120))
        await run.until(lambda: not any(page_tables(database).values()))

    async def at_last(run):
        assert run.queue_of().message_count == 0
        assert len(run.broker._activation.stores.messages) == 0
        await run.send_numbers(range(30))
        assert await run.drain(30) == list(range(30))

    runs(tmp_path, before, after, at_last, settings=WIDE, store=store)


@KINDS
def test_the_table_of_a_deleted_address_is_dropped(tmp_path, new_database, kind):
    database = new_database(kind)

    async def part(run):
        await run.queue("q", address="t", routing_type=RoutingType.MULTICAST)
        await run.send_numbers(range(40), "t")
        assert page_tables(database)
        run.broker.parts.postoffice.addresses.delete("t", force=True)
        await run.until(lambda: not page_tables(database))

    async def after(run):
        assert not run.paging.stores

    store = DatabaseStoreOptions(connection_url=database.url)
    runs(tmp_path, part, after, store=store)


def test_a_page_in_a_table_is_as_large_as_the_database_options_allow(tmp_path, new_database):
    database = new_database("sqlite")

    async def part(run):
        await run.queue()
        await run.send_numbers(range(100))
        assert sum(page_tables(database).values()) > 10

    store = DatabaseStoreOptions(connection_url=database.url, max_page_size_bytes=500)
    runs(tmp_path, part, store=store)
