"""JMS bridges by AMQP 1.0: to and from Artemis and RabbitMQ."""

import time
import uuid

import pytest

pytest.importorskip("proton")

from broker.bridges.jms import BridgeState, Destination
from broker.bridges.jms.amqp.factory import AmqpConnectionFactory
from broker.bridges.jms.options import QualityOfService
from tests.broker.bridges.jms.ends import wait_for
from tests.interop.bridged_peer import from_peer, to_peer
from tests.interop.fetched import PeerUnavailableError
from tests.interop.rabbitmq import RabbitMq
from tests.interop.test_jms_bridge import make_queue, session_of, take
from tests.proxy import Proxy

COUNT = 20
WAIT_S = 30
ONCE = QualityOfService.ONCE_AND_ONLY_ONCE
QUALITIES = [QualityOfService.AT_MOST_ONCE, QualityOfService.DUPLICATES_OK]


class Amqp:
    """A broker by AMQP, and how queues are called there."""

    def __init__(self, port, user, password, prefix, *, keeps_ids):
        self.user, self.password, self.prefix, self.port = user, password, prefix, port
        self.keeps_ids = keeps_ids
        self.made = AmqpConnectionFactory(
            f"amqp://127.0.0.1:{port}",
            virtual_host="/" if prefix else None,
            keeps_duplicate_ids=keeps_ids,
        )

    def by(self, port):
        """The same one at another port."""
        return Amqp(port, self.user, self.password, self.prefix, keeps_ids=self.keeps_ids)

    def destination(self, name):
        return lambda: Destination.queue(f"{self.prefix}{name}")


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory):
    try:
        running = RabbitMq(tmp_path_factory.mktemp("rabbitmq"))
    except PeerUnavailableError as error:
        pytest.skip(str(error))
    yield Amqp(running.amqp_port, "guest", "guest", "/queue/", keeps_ids=False)
    running.kill()


@pytest.fixture
def artemis_amqp(distributed_broker):
    user, password = distributed_broker.USER, distributed_broker.PASSWORD
    return Amqp(distributed_broker.port, user, password, "", keeps_ids=True)


@pytest.fixture(params=["artemis_amqp", "rabbitmq"])
def peer(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("quality", QUALITIES)
def test_there_and_back(our_broker, peer, quality, batch):
    first, last, name = make_queue(our_broker), make_queue(our_broker), f"b.{uuid.uuid4()}"
    contents = [f"m{number} ü" for number in range(COUNT)] + [b"\x00\xff", {"a": 1, "b": "c"}]
    with session_of(our_broker) as session, session.producer(first) as producer:
        for number, content in enumerate(contents):
            properties = {"colour": "red", "n": 5}
            producer.send(
                content, properties=properties, correlation_id="c", durable=number % 2 == 0
            )

    parameters = {"quality_of_service": quality, "max_batch_size": batch, "max_batch_time": 50}
    with to_peer(our_broker, first, peer, name, **parameters) as there:
        wait_for(lambda: there.snapshot()["moved"] == len(contents))
    with from_peer(our_broker, last, peer, name, **parameters):
        found = take(our_broker, last, len(contents))

    assert [one.content for one in found] == contents
    assert {(one.get("colour"), one.get("n")) for one in found} == {("red", 5)}
    assert {one.get("JMSCorrelationID") for one in found} == {"c"}
    assert [one.message.durable for one in found] == [
        number % 2 == 0 for number in range(len(contents))
    ]
    with session_of(our_broker) as session:
        assert session.query_queue(first).message_count == 0


@pytest.mark.parametrize("quality", QUALITIES)
def test_connections_are_reset_while_messages_move(our_broker, peer, quality, figures):
    first, last, name = make_queue(our_broker), make_queue(our_broker), f"b.{uuid.uuid4()}"
    sent = [f"m{number}" for number in range(10 * COUNT)]
    with session_of(our_broker) as session, session.producer(first) as producer:
        for text in sent:
            producer.send(text)

    parameters = {"quality_of_service": quality, "max_batch_size": 3, "max_batch_time": 20}
    with Proxy(peer.port) as proxy:
        far = peer.by(proxy.port)
        with (
            to_peer(our_broker, first, far, name, **parameters) as there,
            from_peer(our_broker, last, far, name, **parameters) as back,
        ):
            for _ in range(5):
                time.sleep(0.15)
                proxy.reset()
            wait_for(lambda: moved_all(our_broker, first, back))
            assert there.snapshot()["failures"] + back.snapshot()["failures"] > 0
    with session_of(our_broker) as session, session.consumer(last) as consumer:
        found = []
        while (one := consumer.receive_now()) is not None:
            found.append(one.content)

    lost, doubled = len(set(sent) - set(found)), len(found) - len(set(found))
    figures(f"JMS bridge, AMQP, {quality.value}", resets=5, lost=lost, doubled=doubled)
    if quality is QualityOfService.AT_MOST_ONCE:
        assert doubled == 0
    else:
        assert lost == 0


def moved_all(broker, queue, back):
    """Nothing is left at the beginning, and nothing has come to the end for a second."""
    with session_of(broker) as session:
        if session.query_queue(queue).message_count:
            return False
    moved = back.snapshot()["moved"]
    time.sleep(1)
    return back.state is BridgeState.STARTED and moved == back.snapshot()["moved"] > 0


def test_once_to_a_target_that_keeps_ids(our_broker, distributed_broker, artemis_amqp):
    queue, target = make_queue(our_broker), make_queue(distributed_broker)
    with session_of(our_broker) as session, session.producer(queue) as producer:
        producer.send("one")

    with to_peer(our_broker, queue, artemis_amqp, target, quality_of_service=ONCE) as moving:
        (found,) = take(distributed_broker, target, 1)
        assert moving.snapshot()["mode"] == "duplicate ids"

    assert found.content == "one"
    assert len(found.get("_AMQ_DUPL_ID")) == 64


def test_once_and_only_once_is_refused_where_it_cannot_be(our_broker, rabbitmq):
    queue = make_queue(our_broker)

    with to_peer(our_broker, queue, rabbitmq, "x", quality_of_service=ONCE) as moving:
        assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
        assert "the target keeps no duplicate ids" in moving.why


def test_a_wrong_password_is_retried_and_named(our_broker, peer):
    queue = make_queue(our_broker)
    wrong = peer.by(peer.port)
    wrong.password = "wrong"

    with to_peer(our_broker, queue, wrong, "x") as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        assert "the broker refuses user or password" in moving.why
