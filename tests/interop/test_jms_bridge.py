"""JMS bridges between our broker and Artemis's, both ways."""

import contextlib
import uuid

import pytest

from broker.bridges.jms import BridgeState, CoreConnectionFactory, Destination, JMSBridge, first_id
from broker.bridges.jms.message import ID_LISTS
from broker.client import AckMode, Client
from tests.broker.bridges.jms.faults import WAYS

WAIT_S = 30
COUNT = 40


@pytest.fixture(params=["from ours", "from Artemis"])
def ends(request, artemis_broker, our_broker):
    pair = (our_broker, artemis_broker)
    return pair if request.param == "from ours" else pair[::-1]


def factory(broker):
    return lambda: CoreConnectionFactory(broker.uri)


@contextlib.contextmanager
def session_of(broker, mode=AckMode.AUTO):
    with (
        Client(broker.uri, user=broker.USER, password=broker.PASSWORD) as client,
        client.session(mode) as session,
    ):
        yield session


def make_queue(broker):
    name = f"bridged.{uuid.uuid4()}"
    with session_of(broker) as session:
        session.create_queue(name)
    return name


def bridge(source, target, source_queue, target_queue, **parameters):
    return JMSBridge(
        factory(source),
        factory(target),
        lambda: Destination.queue(source_queue),
        lambda: Destination.queue(target_queue),
        source_user_name=source.USER,
        source_password=source.PASSWORD,
        target_user_name=target.USER,
        target_password=target.PASSWORD,
        failure_retry_interval=100,
        **parameters,
    )


def take(broker, queue, count):
    with session_of(broker) as session, session.consumer(queue) as consumer:
        found = []
        while len(found) < count and (one := consumer.receive(WAIT_S)) is not None:
            found.append(one)
        return found


@pytest.mark.parametrize("way", WAYS)
def test_messages_go_both_ways(ends, tmp_path, way):
    source, target = ends
    quality, exactly_once = WAYS[way]
    queues = make_queue(source), make_queue(target)
    contents = [f"m{number}" for number in range(COUNT)]
    with session_of(source) as session, session.producer(queues[0]) as producer:
        for text in contents:
            producer.send(text, properties={"number": int(text[1:])})

    with bridge(
        source,
        target,
        *queues,
        quality_of_service=quality,
        exactly_once=exactly_once,
        max_batch_size=7,
        max_batch_time=50,
        transaction_log=tmp_path,
    ) as moving:
        found = take(target, queues[1], COUNT)
        assert moving.state is BridgeState.STARTED, moving.why

    assert [one.content for one in found] == contents
    assert [one.get("number") for one in found] == list(range(COUNT))
    with session_of(source) as session:
        assert session.query_queue(queues[0]).message_count == 0


@pytest.mark.parametrize("size", [200 * 1024, 3 * 1024 * 1024])
def test_large_messages_go_both_ways(ends, size):
    source, target = ends
    queues = make_queue(source), make_queue(target)
    body = bytes(size)
    with session_of(source) as session, session.producer(queues[0]) as producer:
        producer.send(body)

    with (
        bridge(source, target, *queues, max_batch_size=5, max_batch_time=50),
        session_of(target) as session,
        session.consumer(queues[1]) as consumer,
    ):
        assert consumer.receive(WAIT_S).read() == body


def test_a_request_goes_there_and_its_reply_comes_back(ends):
    """By the first id of the list, over a bridge in each direction."""
    near, far = ends
    requests = make_queue(near), make_queue(far)
    replies = make_queue(far), make_queue(near)
    request_id = uuid.uuid4()
    with session_of(near) as session, session.producer(requests[0]) as producer:
        producer.send("question", user_id=request_id.bytes)

    with (
        bridge(near, far, *requests, name="there", add_message_id_in_header=True),
        bridge(far, near, *replies, name="back", add_message_id_in_header=True),
    ):
        (request,) = take(far, requests[1], 1)
        with session_of(far) as session, session.producer(replies[0]) as producer:
            producer.send("answer", correlation_id=first_id(request.properties))
        (reply,) = take(near, replies[1], 1)

    assert reply.content == "answer"
    assert reply.get("JMSCorrelationID") == f"ID:{request_id}"
    assert request.get(ID_LISTS[0]) == request.get(ID_LISTS[1]) == f"ID:{request_id}"
    for broker, queue in zip((near, far, far, near), (*requests, *replies), strict=True):
        with session_of(broker) as session:
            assert session.query_queue(queue).message_count == 0


def test_a_chain_of_bridges_keeps_the_list_of_ids(artemis_broker, our_broker):
    """Ours → Artemis → ours, by bridges of ours; the list grows by one id with each."""
    first, second, third = (
        make_queue(our_broker),
        make_queue(artemis_broker),
        make_queue(our_broker),
    )
    with session_of(our_broker) as session, session.producer(first) as producer:
        producer.send("one", user_id=bytes(16))

    with (
        bridge(our_broker, artemis_broker, first, second, add_message_id_in_header=True),
        bridge(artemis_broker, our_broker, second, third, add_message_id_in_header=True),
    ):
        (found,) = take(our_broker, third, 1)

    ids = found.get(ID_LISTS[0]).split(",")
    assert len(ids) == 2
    assert ids[0] == f"ID:{uuid.UUID(int=0)}"
    assert found.get(ID_LISTS[1]) == found.get(ID_LISTS[0])
