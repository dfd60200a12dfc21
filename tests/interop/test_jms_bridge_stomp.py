"""JMS bridges by STOMP: to and from Artemis and RabbitMQ."""

import re
import uuid

import pytest

from broker.bridges.jms import BridgeState, Destination
from broker.bridges.jms.options import QualityOfService
from broker.bridges.jms.stomp.factory import StompConnectionFactory
from tests.broker.bridges.jms.ends import wait_for
from tests.interop.bridged_peer import from_peer, to_peer
from tests.interop.fetched import PeerUnavailableError
from tests.interop.rabbitmq import RabbitMq
from tests.interop.test_jms_bridge import make_queue, session_of, take

COUNT = 20
WAIT_S = 30
ONCE = QualityOfService.ONCE_AND_ONLY_ONCE


class Stomp:
    """A broker by STOMP, and how queues are called there."""

    def __init__(self, port, user, password, prefix, *, keeps_ids):
        self.user, self.password, self.prefix = user, password, prefix
        self.made = StompConnectionFactory(
            f"stomp://127.0.0.1:{port}",
            virtual_host="/" if prefix else None,
            keeps_duplicate_ids=keeps_ids,
        )

    def destination(self, name):
        return lambda: Destination.queue(f"{self.prefix}{name}")


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory):
    try:
        running = RabbitMq(tmp_path_factory.mktemp("rabbitmq"))
    except PeerUnavailableError as error:
        pytest.skip(str(error))
    yield Stomp(running.stomp_port, "guest", "guest", "/queue/", keeps_ids=False)
    running.kill()


@pytest.fixture
def artemis_stomp(distributed_broker):
    return Stomp(
        distributed_broker.port,
        distributed_broker.USER,
        distributed_broker.PASSWORD,
        "",
        keeps_ids=True,
    )


@pytest.fixture(params=["artemis_stomp", "rabbitmq"])
def stomp(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("quality", [QualityOfService.AT_MOST_ONCE, QualityOfService.DUPLICATES_OK])
def test_there_and_back(our_broker, stomp, quality, batch):
    first, last, name = make_queue(our_broker), make_queue(our_broker), f"b.{uuid.uuid4()}"
    contents = [f"m{number} ü" for number in range(COUNT)] + [b"\x00\xff"]
    with session_of(our_broker) as session, session.producer(first) as producer:
        for content in contents:
            producer.send(content, properties={"colour": "red"}, correlation_id="c")

    parameters = {"quality_of_service": quality, "max_batch_size": batch, "max_batch_time": 50}
    with to_peer(our_broker, first, stomp, name, **parameters) as there:
        wait_for(lambda: there.snapshot()["moved"] == len(contents))
    with from_peer(our_broker, last, stomp, name, **parameters):
        found = take(our_broker, last, len(contents))

    assert [one.content for one in found] == contents
    assert {one.get("colour") for one in found} == {"red"}
    assert {one.get("JMSCorrelationID") for one in found} == {"c"}
    assert all(one.message.durable for one in found)
    with session_of(our_broker) as session:
        assert session.query_queue(first).message_count == 0


def test_once_to_a_target_that_keeps_ids(our_broker, distributed_broker, artemis_stomp):
    queue, target = make_queue(our_broker), make_queue(distributed_broker)
    with session_of(our_broker) as session, session.producer(queue) as producer:
        producer.send("one")

    with to_peer(our_broker, queue, artemis_stomp, target, quality_of_service=ONCE) as moving:
        (found,) = take(distributed_broker, target, 1)
        assert moving.snapshot()["mode"] == "duplicate ids"

    assert found.content == "one"
    assert len(found.get("_AMQ_DUPL_ID")) == 64


def test_once_and_only_once_is_refused_where_it_cannot_be(our_broker, rabbitmq):
    queue = make_queue(our_broker)

    with to_peer(our_broker, queue, rabbitmq, "x", quality_of_service=ONCE) as moving:
        assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
        assert "the target keeps no duplicate ids" in moving.why


def test_a_wrong_password_is_retried_and_named(our_broker, rabbitmq):
    queue = make_queue(our_broker)
    wrong = Stomp(0, "guest", "wrong", "/queue/", keeps_ids=False)
    wrong.made = rabbitmq.made

    with to_peer(our_broker, queue, wrong, "x") as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        # The wait itself is spread at random.
        assert re.match(r"waiting \d+ ms to retry \(attempt \d+\): ", moving.why)
        assert "the broker says: Bad CONNECT Access refused for user 'guest'" in moving.why


def test_a_map_message_is_one_clear_error(our_broker, rabbitmq):
    queue = make_queue(our_broker)
    with session_of(our_broker) as session, session.producer(queue) as producer:
        producer.send({"a": 1})

    with to_peer(our_broker, queue, rabbitmq, "x") as moving:
        wait_for(lambda: "STOMP carries text and bytes, not a map message" in (moving.why or ""))
    with session_of(our_broker) as session:
        assert session.query_queue(queue).message_count == 1
