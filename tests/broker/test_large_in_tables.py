"""Large messages of a broker on a database: streamed, and safe at kill -9."""

import contextlib
import io
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy

from broker.client import AckMode, Client
from broker.client.errors import ClientError
from tests.broker.serve import BrokerProcess

KINDS = pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
WAIT_S = 120
MIB = 1 << 20
PAGE_SIZE = 4096


class Pattern:
    """A stream of bytes of which no two pages are alike; never whole in memory."""

    def __init__(self, size, on_read=lambda at: None):
        self.size = size
        self.at = 0
        self._on_read = on_read

    def read(self, size):
        self._on_read(self.at)
        data = pattern(self.at, min(size, self.size - self.at))
        self.at += len(data)
        return data


def pattern(at, size):
    """The bytes of the pattern from a place on."""
    first = at // PAGE_SIZE
    pages = range(first, (at + size) // PAGE_SIZE + 1)
    whole = b"".join(number.to_bytes(8, "big") * (PAGE_SIZE // 8) for number in pages)
    return whole[at - first * PAGE_SIZE :][:size]


def client_of(broker):
    return Client(f"tcp://127.0.0.1:{broker.port}")


def send(broker, size, queue="q", **how):
    with client_of(broker) as client, client.session() as session:
        with contextlib.suppress(ClientError):
            session.create_queue(queue)
        with session.producer(queue) as producer:
            producer.send_stream(Pattern(size, **how))


def receive(broker, queue="q"):
    """Take a message and acknowledge it: the size of its body, every byte having been looked at."""
    with client_of(broker) as client, client.session(AckMode.CLIENT) as session:
        with session.consumer(queue) as consumer:
            message = consumer.receive(WAIT_S)
            at = 0
            for chunk in message.chunks():
                assert bytes(chunk) == pattern(at, len(chunk)), f"from byte {at} on"
                at += len(chunk)
            message.acknowledge()
        return at


def names(database):
    """What is in the table of large messages."""
    engine = sqlalchemy.create_engine(database.url)
    try:
        tables = {name.lower(): name for name in sqlalchemy.inspect(engine).get_table_names()}
        with engine.connect() as connection:
            found = connection.execute(
                sqlalchemy.text(f"SELECT FILENAME FROM {tables['large_messages']}")
            )
            return {row[0] for row in found}
    finally:
        engine.dispose()


def end_lease(database):
    """As if its time had passed: a broker that was killed holds it until then."""
    engine = sqlalchemy.create_engine(database.url)
    try:
        tables = {name.lower(): name for name in sqlalchemy.inspect(engine).get_table_names()}
        with engine.begin() as connection:
            connection.execute(
                sqlalchemy.text(
                    f"UPDATE {tables['node_manager_store']} "
                    "SET HOLDER_ID = NULL, HOLDER_EXPIRATION_TIME = NULL"
                )
            )
    finally:
        engine.dispose()


def objects(database):
    """How many large objects PostgreSQL has."""
    engine = sqlalchemy.create_engine(database.url)
    try:
        with engine.connect() as connection:
            query = sqlalchemy.text("SELECT COUNT(*) FROM pg_largeobject_metadata")
            return connection.execute(query).scalar()
    finally:
        engine.dispose()


@KINDS
def test_a_body_passes_in_parts_and_survives_a_restart(new_database, kind):
    database = new_database(kind)
    broker = BrokerProcess(database.url)
    send(broker, 3 * MIB + 17)
    send(broker, 200_000)
    assert broker.stop() == 0
    assert len(names(database)) >= 2

    broker = BrokerProcess(database.url)
    assert receive(broker) == 3 * MIB + 17
    assert receive(broker) == 200_000
    assert broker.stop() == 0

    assert names(database) == set()


@KINDS
def test_kill_9_keeps_what_was_confirmed_and_nothing_of_what_was_not(new_database, kind):
    database = new_database(kind)
    broker = BrokerProcess(database.url)
    send(broker, 2 * MIB)
    has_begun, may_go_on = threading.Event(), threading.Event()

    def look(at):
        if at >= 4 * MIB:
            has_begun.set()
            may_go_on.wait(WAIT_S)

    def send_half():
        with contextlib.suppress(ClientError, OSError):
            send(broker, 8 * MIB, on_read=look)

    sender = threading.Thread(target=send_half)
    sender.start()
    assert has_begun.wait(WAIT_S)
    broker.kill()
    may_go_on.set()
    sender.join(WAIT_S)
    end_lease(database)

    broker = BrokerProcess(database.url)
    assert receive(broker) == 2 * MIB
    assert broker.stop() == 0

    assert names(database) == set()
    if kind == "postgresql":
        assert objects(database) == objects_of_pages(database)


def objects_of_pages(database):
    """The directory of pages is a file of its own."""
    engine = sqlalchemy.create_engine(database.url)
    try:
        with engine.connect() as connection:
            return connection.execute(sqlalchemy.text("SELECT COUNT(*) FROM page_store")).scalar()
    finally:
        engine.dispose()


@pytest.mark.slow
@KINDS
def test_kill_9_while_a_body_is_copied_leaves_it_in_one_place(new_database, kind):
    database = new_database(kind)
    size = 24 * MIB + 17
    broker = BrokerProcess(database.url)
    send(broker, size)
    with client_of(broker) as client, client.session() as session:
        session.create_queue("DLQ")
    for delay_s in (0.0, 0.01, 0.03, 0.1):
        with client_of(broker) as client, client.session() as session:
            session.manage("queue.q", "sendMessagesToDeadLetterAddress", None)
        time.sleep(delay_s)
        broker.kill()
        end_lease(database)
        broker = BrokerProcess(database.url)

        with client_of(broker) as client, client.session() as session:
            counts = [session.attribute(f"queue.{name}", "MessageCount") for name in ("q", "DLQ")]
        assert sorted(counts) == [0, 1]

    assert receive(broker, "q" if counts[0] else "DLQ") == size
    assert broker.stop() == 0
    assert names(database) == set()


@KINDS
def test_order_is_kept_behind_a_large_message(new_database, kind):
    broker = BrokerProcess(new_database(kind).url)
    with client_of(broker) as client, client.session() as session:
        session.create_queue("q")
        with session.producer("q") as producer:
            for number in range(3):
                producer.send_stream(io.BytesIO(bytes([number]) * (MIB + number)))
                producer.send(f"behind {number}")
        with session.consumer("q") as consumer:
            for number in range(3):
                assert consumer.receive(WAIT_S).read() == bytes([number]) * (MIB + number)
                assert consumer.receive(WAIT_S).text == f"behind {number}"

    assert broker.stop() == 0


def memory_max(broker):
    """Bytes that the process had at most."""
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql"])
def test_100_mib_pass_within_32_mib_of_memory(new_database, kind, figures):
    broker = BrokerProcess(new_database(kind).url)
    send(broker, MIB)
    assert receive(broker) == MIB
    before = memory_max(broker)

    send(broker, 100 * MIB)
    assert receive(broker) == 100 * MIB

    grown = memory_max(broker) - before
    assert broker.stop() == 0
    figures("100 MiB through the broker on PostgreSQL", kib_more=grown // 1024)
    assert grown < 32 * MIB
