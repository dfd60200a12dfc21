"""Our client for threads against Artemis's broker."""

import io
import os
import threading
import uuid
from concurrent.futures import wait

import pytest

from broker.client import AckMode, Client, errors
from broker.model.xid import Xid

WAIT_S = 20


@pytest.fixture(scope="module")
def client(artemis_broker):
    with Client(
        artemis_broker.uri, user=artemis_broker.USER, password=artemis_broker.PASSWORD
    ) as client:
        yield client


@pytest.fixture
def session(client):
    with client.session() as session:
        yield session


@pytest.fixture
def queue(session):
    name = f"queue.{uuid.uuid4()}"
    session.create_queue(name)
    return name


def test_messages_are_sent_and_received(session, queue):
    with session.producer(queue) as producer:
        producer.send("text", properties={"n": 1})
        producer.send({"a": 1})

    with session.consumer(queue) as consumer:
        first, second = consumer.receive(WAIT_S), consumer.receive(WAIT_S)
        assert consumer.receive_now() is None

    assert (first.text, first.get("n"), second.content) == ("text", 1, {"a": 1})
    assert (first.delivery_count, first.address, first.is_large) == (1, queue, False)


def test_confirmations_come_for_many_messages_on_their_way(session, queue):
    with session.producer(queue) as producer:
        done, _ = wait([producer.post(str(number)) for number in range(200)], timeout=WAIT_S)

    assert [future.exception() for future in done] == [None] * 200
    # Artemis confirms before its queue counts, or lists: see who takes them.
    with session.consumer(queue) as consumer:
        texts = [consumer.receive(WAIT_S).text for _ in range(200)]
    assert texts == [str(number) for number in range(200)]


def test_iterating_acknowledges_what_the_loop_is_done_with(session, queue):
    with session.producer(queue) as producer:
        for number in range(3):
            producer.send(str(number))

    with session.consumer(queue) as consumer:
        for message in consumer:
            if message.text == "1":
                break

    with session.consumer(queue) as consumer:
        assert consumer.receive(WAIT_S).text == "1"


def test_a_listener_is_called_in_a_thread_of_its_own(session, queue):
    seen, done = [], threading.Event()

    def listen(message):
        seen.append((message.text, threading.current_thread().name))
        if message.text == "2":
            done.set()

    with session.consumer(queue, listener=listen), session.producer(queue) as producer:
        for number in range(3):
            producer.send(str(number))
        assert done.wait(WAIT_S)

    assert seen == [(str(number), "broker-listener") for number in range(3)]
    assert session.query_queue(queue).message_count == 0


def test_what_a_listener_raises_ends_it_and_is_told(session, queue):
    told, done = [], threading.Event()

    def tell(error):
        told.append(error)
        done.set()

    with session.consumer(queue, listener=lambda message: 1 / 0) as consumer:
        consumer.on_error = tell
        with session.producer(queue) as producer:
            producer.send("one")
        assert done.wait(WAIT_S)

    assert [type(error) for error in told] == [ZeroDivisionError]
    with session.consumer(queue) as consumer:
        assert consumer.receive(WAIT_S).text == "one"


def test_a_transaction_counts_whole_or_not_at_all(client, queue):
    def fail(session, producer):
        with session.transaction():
            producer.send("never")
            raise ZeroDivisionError

    with client.session(AckMode.TRANSACTED) as session, session.producer(queue) as producer:
        with session.transaction():
            producer.send("counts")
        with pytest.raises(ZeroDivisionError):
            fail(session, producer)

        assert session.query_queue(queue).message_count == 1


def test_a_session_without_transactions_has_no_such_block(session):
    with pytest.raises(ValueError, match="TRANSACTED"), session.transaction():
        pass


def test_a_distributed_transaction_is_prepared_found_and_committed(client, queue):
    xid = Xid(1, uuid.uuid4().bytes, b"g")
    with client.session(AckMode.XA) as session, session.producer(queue) as producer:
        session.xa_start(xid)
        producer.send("in xa")
        session.xa_end(xid)
        session.xa_prepare(xid)
        assert xid in session.xa_recover()
        session.xa_commit(xid)

        assert session.query_queue(queue).message_count == 1


def test_a_question_is_answered(client, session, queue):
    server = client.session()
    with server, server.consumer(queue, listener=lambda m: server.reply(m, m.text.upper())):
        assert session.request(queue, "what", timeout_s=WAIT_S).text == "WHAT"


def test_a_large_message_passes_in_parts_both_ways(session, queue):
    body = os.urandom(1_000_000)
    with session.producer(queue) as producer:
        producer.send_stream(io.BytesIO(body))
        producer.send(body)

    with session.consumer(queue) as consumer:
        parts = list(consumer.receive(WAIT_S).chunks())
        whole = consumer.receive(WAIT_S).read()

    assert (b"".join(parts), whole) == (body, body)


def test_refusals_are_raised_where_they_are_waited_for(session, queue):
    with pytest.raises(errors.QueueExists):
        session.create_queue(queue)


def test_a_closed_client_says_so(artemis_broker):
    client = Client(artemis_broker.uri, user=artemis_broker.USER, password=artemis_broker.PASSWORD)
    session = client.session()
    client.close()
    client.close()

    with pytest.raises(errors.ClosedError):
        session.query_queue("any")
    with pytest.raises(errors.ClosedError):
        client.session()
