"""Source and target of a bridge by AMQP 1.0, at brokers of ours."""

import asyncio
import time

import pytest

pytest.importorskip("proton")

from broker.bridges.jms import (
    BridgeConfigError,
    BridgeState,
    Destination,
    JMSBridge,
    QualityOfService,
)
from broker.bridges.jms.amqp.factory import AmqpConnectionFactory, amqp_factory
from broker.client import make_message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from tests.broker.bridges.jms.cutting import UP, AmqpCuttingProxy
from tests.broker.bridges.jms.ends import WAIT_S, an_end, bridge, wait_for
from tests.proxy import Proxy

QUALITIES = [QualityOfService.AT_MOST_ONCE, QualityOfService.DUPLICATES_OK]
JAVA = b"\xac\xed\x00\x05t\x00\x02hi"


def amqp(end, port=None, **more):
    made = AmqpConnectionFactory(f"amqp://127.0.0.1:{port or end.port}", **more)
    return lambda: made


def sides(source, target, which):
    """Factories of both ends; AMQP at the source, at the target, or at both."""
    return {
        "source": (amqp(source), target),
        "target": (source, amqp(target)),
        "both": (amqp(source), amqp(target)),
    }[which]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("which", ["source", "target", "both"])
def test_messages_of_every_kind_arrive(source, target, which, quality, batch):
    contents = ["text ü", b"\x00\xff", {"a": 1, "b": "c"}, [1, "two", 3.5], "last", ""]
    properties = {
        "n": Property("n", PropertyType.INT, 5),
        "ok": True,
        "colour": "red",
        "x": 1.5,
    }
    for number, content in enumerate(contents):
        durable = number % 2 == 0
        source.send("q", content, properties=properties, correlation_id="c", durable=durable)

    with bridge(
        *sides(source, target, which),
        quality_of_service=quality,
        max_batch_size=batch,
        max_batch_time=20,
    ) as moving:
        found = target.take("q", len(contents))
        assert moving.state is BridgeState.STARTED, moving.why

    assert [one.content for one in found] == contents
    assert [one.message.durable for one in found] == [number % 2 == 0 for number in range(6)]
    for one in found:
        assert [one.get(name) for name in properties] == [5, True, "red", 1.5]
        assert one.get("JMSCorrelationID") == "c"
    wait_for(lambda: source.count("q") == 0)


def test_an_object_and_a_message_without_body(source, target):
    """And all headers of JMS."""
    made = make_message(
        len(JAVA).to_bytes(4, "big") + JAVA,
        priority=7,
        time_to_live_ms=600_000,
        group_id="g",
        reply_to="queue://answers",
        correlation_id=b"\x01\x02",
        properties={"JMSType": "t"},
    )
    made.type = MessageType.OBJECT
    source.send("q", made, None)

    with bridge(*sides(source, target, "both"), add_message_id_in_header=True):
        found, empty = target.take("q", 2)

    assert found.message.type == MessageType.OBJECT
    assert found.content == len(JAVA).to_bytes(4, "big") + JAVA
    assert found.message.priority == 7
    assert found.message.expiration == made.expiration
    assert found.message.group_id == "g"
    assert found.message.reply_to == "queue://answers"
    assert found.message.correlation_id == b"\x01\x02"
    assert found.get("JMSType") == "t"
    assert empty.content in (None, b"")


def test_large_messages(tmp_path):
    body = bytes(range(256)) * 8000
    with an_end(tmp_path / "s") as source, an_end(tmp_path / "t") as target:
        for end in (source, target):
            end.create("q")
        source.send("q", body, "small")

        with (
            bridge(*sides(source, target, "both"), max_batch_size=2),
            target.client.session() as session,
            session.consumer("q") as consumer,
        ):
            assert consumer.receive(WAIT_S).read() == body
            assert consumer.receive(WAIT_S).content == "small"


def test_a_selector_leaves_others(source, target):
    source.send("q", "red", properties={"colour": "red"})
    source.send("q", "blue", properties={"colour": "blue"})

    with bridge(*sides(source, target, "source"), selector="colour = 'blue'"):
        assert target.contents("q", 1) == ["blue"]
    assert source.contents("q", 1) == ["red"]


def test_a_durable_subscription_of_a_topic_gets_what_came_meanwhile(source, target):
    with source.client.session() as session:
        session.create_address("news", RoutingType.MULTICAST)

    def moving():
        return JMSBridge(
            amqp(source),
            target.factory,
            lambda: Destination.topic("news"),
            lambda: Destination.queue("q"),
            subscription_name="mine",
            client_id="bridge",
        )

    with moving() as one:
        assert one.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
    source.send("news", "meanwhile")
    with moving():
        assert target.contents("q", 1) == ["meanwhile"]


def test_one_provider_at_both_sides_is_one_transaction(source):
    source.create("to")
    source.send("q", *(str(number) for number in range(20)))
    both = amqp(source)

    with bridge(
        both,
        both,
        to="to",
        quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
        max_batch_size=7,
        max_batch_time=20,
    ) as moving:
        assert source.contents("to", 20) == [str(number) for number in range(20)]
        assert moving.snapshot()["mode"] == "local transaction"
    assert source.count("q") == 0


def test_a_cut_of_a_local_transaction_neither_loses_nor_doubles(source):
    """Before one frame to the broker or behind it, with a batch of three."""
    source.create("to")
    wrong = {}

    async def moved(proxy, number, is_passed):
        proxy.cut_at(UP, number, is_passed=is_passed)
        await asyncio.to_thread(source.send, "q", "1", "2", "3")
        both = amqp(source, proxy.port)
        moving = bridge(
            both,
            both,
            to="to",
            quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
            max_batch_size=3,
            failure_retry_interval=1,
        )
        with moving:
            found = await asyncio.to_thread(source.contents, "to", 3)
            await asyncio.to_thread(wait_for, lambda: source.count("q") == 0)
            # Stopped, nothing is on its way any more.
            await asyncio.to_thread(moving.stop)
        found += await asyncio.to_thread(source.contents, "to", source.count("to"))
        if sorted(found) != ["1", "2", "3"]:
            wrong[number, is_passed] = found
        return proxy.counts[UP]

    async def main():
        async with AmqpCuttingProxy(source.port) as proxy:
            count = await moved(proxy, 10**9, False)
            for number in range(count, 0, -1):
                await moved(proxy, number, number % 2 == 0)
        return count

    count = asyncio.run(main())
    assert wrong == {}
    assert count > 10


def test_once_and_only_once_to_a_target_that_keeps_ids(source, target):
    source.send("q", "one", "two")

    with bridge(
        source,
        amqp(target, keeps_duplicate_ids=True),
        quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
        max_batch_size=2,
    ) as moving:
        found = target.take("q", 2)
        assert moving.snapshot()["mode"] == "duplicate ids"

    assert [one.content for one in found] == ["one", "two"]
    assert len({one.get("_AMQ_DUPL_ID") for one in found}) == 2
    assert all(len(one.get("_AMQ_DUPL_ID")) == 64 for one in found)


def test_once_and_only_once_is_refused_where_it_cannot_be(source, target):
    once = QualityOfService.ONCE_AND_ONLY_ONCE
    with bridge(amqp(source), target, quality_of_service=once) as moving:
        assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
        assert "the source does not name its messages for good" in moving.why


def test_a_pause_stops_it_and_prefetched_messages_wait(source, target):
    with bridge(*sides(source, target, "source")) as moving:
        assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        moving.pause()
        source.send("q", "later")
        time.sleep(0.3)
        assert target.count("q") == 0
        moving.resume()
        assert target.contents("q", 1) == ["later"]


def test_an_idle_connection_stays(source, target, monkeypatch):
    """Both ends' silence ends a connection: heartbeats are written."""
    from broker.bridges.jms.amqp import wire

    monkeypatch.setattr(wire, "_IDLE_S", 0.4)
    with bridge(*sides(source, target, "both")) as moving:
        assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
        moving.pause()
        time.sleep(1.5)
        moving.resume()
        source.send("q", "one")
        assert target.contents("q", 1) == ["one"]
        assert moving.snapshot()["failures"] == 0


@pytest.mark.parametrize("quality", QUALITIES)
def test_connections_that_are_reset_are_made_again(source, target, quality):
    count = 60
    sent = [str(number) for number in range(count)]
    with Proxy(source.port) as near, Proxy(target.port) as far:
        with bridge(
            amqp(source, near.port),
            amqp(target, far.port),
            quality_of_service=quality,
            max_batch_size=3,
            max_batch_time=10,
            failure_retry_interval=10,
        ) as moving:
            source.send("q", *sent[: count // 2])
            for proxy in (near, far, near):
                time.sleep(0.1)
                proxy.reset()
            source.send("q", *sent[count // 2 :])
            wait_for(lambda: source.count("q") == 0)
        assert moving.snapshot()["failures"] >= 1
    with target.client.session() as session, session.consumer("q") as consumer:
        found = []
        while (one := consumer.receive_now()) is not None:
            found.append(one.content)
    if quality is QualityOfService.AT_MOST_ONCE:
        assert len(found) == len(set(found))
    else:
        assert set(found) == set(sent)


def test_nothing_listens(source):
    with bridge(source, amqp(source, 1), failure_retry_interval=50) as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        assert "amqp://127.0.0.1:1: " in moving.why


def test_a_port_that_is_closed_at_once_is_no_amqp(source):
    import socket
    import threading

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            with listening.accept()[0] as one:
                one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                one.recv(100)

        thread = threading.Thread(target=answer)
        thread.start()
        port = listening.getsockname()[1]
        with bridge(source, amqp(source, port), failure_retry_interval=60_000) as moving:
            assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
            assert f"amqp://127.0.0.1:{port}: " in moving.why
        thread.join(WAIT_S)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({}, "url is missing, such as amqp://localhost:5672"),
        ({"url": "stomp://h"}, "must be amqp://HOST:PORT or amqps://HOST:PORT"),
        ({"url": "amqp://h:x"}, "url 'amqp://h:x': "),
        ({"url": "amqp://h", "hosts": "x"}, "provider amqp has no setting 'hosts'"),
        ({"url": "amqp://h", "keeps-duplicate-ids": 1}, "it must be bool"),
    ],
)
def test_wrong_settings(settings, error):
    with pytest.raises(BridgeConfigError) as raised:
        amqp_factory(settings)
    assert error in str(raised.value)
