"""Our client in asyncio against Artemis's broker and ours."""

import asyncio
import io
import os
import uuid

import pytest

from broker.client import errors
from broker.client.aio import AsyncClient
from broker.client.content import make_message
from broker.client.session_state import AckMode
from broker.errors import ErrorCode
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from tests.interop.asynchronous import asynchronous

WAIT_S = 20


def client_of(broker, **options):
    return AsyncClient(broker.uri, user=broker.USER, password=broker.PASSWORD, **options)


async def make_queue(session, **settings):
    name = f"queue.{uuid.uuid4()}"
    await session.create_queue(name, **settings)
    return name


@asynchronous
async def test_every_kind_of_content_and_property_comes_back(either_broker):
    properties = {
        "null": None,
        "yes": True,
        "int": -5,
        "long": 2**40,
        "double": 0.5,
        "text": "ünï",
        "bytes": b"\x00\xff",
        "byte": Property("", PropertyType.BYTE, 7),
        "short": Property("", PropertyType.SHORT, -3),
        "float": Property("", PropertyType.FLOAT, 1.5),
        "char": Property("", PropertyType.CHAR, "é"),
    }
    contents = [
        "text €",
        b"bytes \x00",
        {"a": 1, "b": None, "c": b"x"},
        [True, 5, "six", None],
        "",
        b"",
    ]
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for content in contents:
                await producer.send(
                    content,
                    priority=7,
                    time_to_live_ms=100_000,
                    user_id=bytes(range(16)),
                    properties=properties,
                )

        async with await session.consumer(queue) as consumer:
            received = [await consumer.receive(WAIT_S) for _ in contents]

        assert [message.content for message in received] == contents
        for message in received:
            for name, value in properties.items():
                assert message.get(name) == (value.value if isinstance(value, Property) else value)
            assert message.properties["byte"].type is PropertyType.BYTE
            assert (message.message.priority, message.message.durable) == (7, True)
            assert message.message.user_id == bytes(range(16))
            assert message.message.expiration - message.message.timestamp == 100_000
            assert (message.delivery_count, message.is_redelivered) == (1, False)
            assert message.address == queue


@asynchronous
async def test_confirmations_come_for_many_messages_on_their_way(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        producer = session.producer(queue)

        confirmations = [await producer.post(f"{number}") for number in range(500)]
        await asyncio.gather(*confirmations)

        # Artemis confirms before its queue counts: see who takes them.
        async with await session.consumer(queue) as consumer:
            texts = [(await consumer.receive(WAIT_S)).text for _ in range(500)]
        assert texts == [str(number) for number in range(500)]


@pytest.mark.parametrize("window", [-1, 0, 1, 3000, 1024 * 1024])
@asynchronous
async def test_messages_come_in_order_with_any_window(either_broker, window):
    async with client_of(either_broker, consumer_window_size=window) as client:
        session = await client.session()
        queue = await make_queue(session)
        producer = session.producer(queue)
        await asyncio.gather(
            *[await producer.post(bytes(500), properties={"n": n}) for n in range(40)]
        )

        async with await session.consumer(queue) as consumer:
            found = [(await consumer.receive(WAIT_S)).get("n") for _ in range(40)]
            assert await consumer.receive_now() is None
            await producer.send(b"one more")
            assert (await consumer.receive(WAIT_S)).content == b"one more"
            assert await consumer.receive(0.05) is None

        assert found == list(range(40))


@asynchronous
async def test_with_a_window_of_0_one_message_leaves_the_broker(either_broker):
    async with client_of(either_broker, consumer_window_size=0) as client:
        session, other = await client.session(), await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for number in range(3):
                await producer.send(str(number))

        async with await session.consumer(queue) as first:
            assert (await first.receive(WAIT_S)).text == "0"
            async with await other.consumer(queue) as second:
                texts = [(await second.receive(WAIT_S)).text for _ in range(2)]

        assert texts == ["1", "2"]


@asynchronous
async def test_a_selector_with_jms_names(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for priority in range(10):
                await producer.send(str(priority), priority=priority, durable=priority % 2 == 0)

        selector = "JMSPriority > 4 AND JMSDeliveryMode = 'PERSISTENT'"
        async with await session.consumer(queue, selector) as consumer:
            texts = {(await consumer.receive(WAIT_S)).text for _ in range(2)}
            assert await consumer.receive_now() is None

        assert texts == {"6", "8"}
        with pytest.raises(errors.BrokerRefused) as caught:
            await session.consumer(queue, "no = = selector")
        assert caught.value.code == ErrorCode.INVALID_FILTER_EXPRESSION


@asynchronous
async def test_acknowledged_messages_are_gone_and_others_come_again(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session(AckMode.CLIENT, ack_batch_size=0)
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for number in range(5):
                await producer.send(str(number))

        async with await session.consumer(queue) as consumer:
            received = [await consumer.receive(WAIT_S) for _ in range(4)]
            await received[2].acknowledge()

        async with await session.consumer(queue) as consumer:
            assert [(await consumer.receive(WAIT_S)).text for _ in range(2)] == ["3", "4"]


@asynchronous
async def test_individually_acknowledged_messages_alone_are_gone(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session(AckMode.INDIVIDUAL)
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for number in range(4):
                await producer.send(str(number))

        async with await session.consumer(queue) as consumer:
            received = [await consumer.receive(WAIT_S) for _ in range(4)]
            await received[2].acknowledge()

        async with await session.consumer(queue) as consumer:
            assert [(await consumer.receive(WAIT_S)).text for _ in range(3)] == ["0", "1", "3"]


@pytest.mark.parametrize(
    "mode", [AckMode.AUTO, AckMode.DUPS_OK, AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL]
)
@asynchronous
async def test_a_message_acknowledged_twice_takes_no_other_with_it(either_broker, mode):
    async with client_of(either_broker) as client:
        session = await client.session(mode, ack_batch_size=0)
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for number in range(4):
                await producer.send(str(number))
        if mode is AckMode.TRANSACTED:
            await session.commit()

        async with await session.consumer(queue) as consumer:
            first = await consumer.receive(WAIT_S)
            for _ in range(3):
                await first.acknowledge()
            second = await consumer.receive(WAIT_S)
            for received in (second, first, second):
                await received.acknowledge()
        if mode is AckMode.TRANSACTED:
            await session.commit()

        async with await session.consumer(queue) as consumer:
            assert [(await consumer.receive(WAIT_S)).text for _ in range(2)] == ["2", "3"]


@pytest.mark.parametrize("mode", [AckMode.INDIVIDUAL, AckMode.CLIENT])
@asynchronous
async def test_an_acknowledgement_that_was_refused_is_sent_again(our_broker, mode):
    async with client_of(our_broker, block_on_acknowledge=True) as client:
        session = await client.session(mode, ack_batch_size=0)
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            await producer.send("one")

        async with await session.consumer(queue) as consumer:
            received = await consumer.receive(WAIT_S)
            consumer_id = consumer._state.consumer_id
            consumer._state.consumer_id = 2**40
            for _ in range(2):
                with pytest.raises(errors.BrokerRefused):
                    await received.acknowledge()
            consumer._state.consumer_id = consumer_id
            await received.acknowledge()

        async with await session.consumer(queue) as consumer:
            assert await consumer.receive(0.2) is None


@asynchronous
async def test_iterating_acknowledges_what_the_loop_is_done_with(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for number in range(3):
                await producer.send(str(number))

        async with await session.consumer(queue) as consumer:
            async for message in consumer:
                if message.text == "1":
                    break

        async with await session.consumer(queue) as consumer:
            assert (await consumer.receive(WAIT_S)).text == "1"


@asynchronous
async def test_a_listener_gets_messages_in_order_and_keeps_what_it_failed_on(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        seen, failed = [], asyncio.get_running_loop().create_future()

        async def listen(message):
            seen.append(message.text)
            if message.text == "2":
                raise ZeroDivisionError

        consumer = await session.consumer(queue, listener=listen)
        consumer.on_error = failed.set_result
        async with session.producer(queue) as producer:
            for number in range(4):
                await producer.send(str(number))
        async with asyncio.timeout(WAIT_S):
            error = await failed
        await consumer.close()

        assert (seen, type(error)) == (["0", "1", "2"], ZeroDivisionError)
        async with await session.consumer(queue) as consumer:
            assert [(await consumer.receive(WAIT_S)).text for _ in range(2)] == ["2", "3"]


@asynchronous
async def test_a_transaction_counts_whole_or_not_at_all(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session(AckMode.TRANSACTED)
        queue = await make_queue(session)
        producer = session.producer(queue)
        consumer = await session.consumer(queue)

        async with session.transaction():
            for number in range(3):
                await producer.send(str(number))
            assert await consumer.receive_now() is None

        async def fail():
            async with session.transaction():
                await producer.send("never")
                assert (await consumer.receive(WAIT_S)).text == "0"
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with session.transaction():
            again = await consumer.receive(WAIT_S)
            assert (again.text, again.delivery_count) == ("0", 2)

        await consumer.close()
        async with await session.consumer(queue) as consumer:
            assert [(await consumer.receive(WAIT_S)).text for _ in range(2)] == ["1", "2"]
            assert await consumer.receive_now() is None


@asynchronous
async def test_what_is_rolled_back_comes_again_in_its_order(either_broker):
    """Whichever transaction ends first, and whichever of those that sent it committed first."""
    async with client_of(either_broker, consumer_window_size=0) as client:
        session = await client.session()
        queue = await make_queue(session)
        late = await client.session(AckMode.TRANSACTED)
        await late.producer(queue).send("late")
        for number in range(6):
            await session.producer(queue).send(str(number))
        await late.commit()

        readers = [await client.session(AckMode.TRANSACTED) for _ in range(3)]
        consumers = [await one.consumer(queue) for one in readers]
        taken = [(await consumers[at % 3].receive(WAIT_S)).text for at in range(7)]
        for consumer in consumers:
            await consumer.close()
        for at in (1, 0, 2):
            await readers[at].rollback()

        async with await session.consumer(queue) as consumer:
            again = [(await consumer.receive(WAIT_S)).text for _ in taken]
        assert (taken, again) == ([*"012345", "late"], [*"012345", "late"])


@asynchronous
async def test_a_distributed_transaction_is_prepared_found_and_committed(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session(AckMode.XA)
        queue = await make_queue(session)
        first, second = (Xid(7, uuid.uuid4().bytes, b"global") for _ in range(2))

        for xid in (first, second):
            await session.xa_start(xid)
            async with session.producer(queue) as producer:
                await producer.send("in xa")
            await session.xa_end(xid)
            await session.xa_prepare(xid)
        assert {first, second} <= set(await session.xa_recover())
        await session.xa_commit(first)
        await session.xa_rollback(second)

        assert not {first, second} & set(await session.xa_recover())
        assert (await session.query_queue(queue)).message_count == 1
        with pytest.raises(errors.XaRefused) as caught:
            await session.xa_commit(second)
        assert caught.value.code == -4
        assert await session.xa_set_timeout(77)
        # Artemis sets that of the transaction under way, and gives its own.
        assert await session.xa_get_timeout() == 300


@asynchronous
async def test_a_question_is_answered(either_broker):
    async with client_of(either_broker) as client:
        session, server = await client.session(), await client.session()
        queue = await make_queue(session)

        async def answer(message):
            await server.reply(message, message.text.upper())

        await server.consumer(queue, listener=answer)
        answers = [(await session.request(queue, text)).text for text in ("one", "two")]

        assert answers == ["ONE", "TWO"]


@asynchronous
async def test_browsing_takes_nothing(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for number in range(5):
                await producer.send(str(number), properties={"n": number})

        seen = [message.text async for message in session.browse(queue)]
        some = [message.text async for message in session.browse(queue, "n > 2")]

        assert (seen, some) == (["0", "1", "2", "3", "4"], ["3", "4"])
        assert (await session.query_queue(queue)).message_count == 5


@asynchronous
async def test_a_topic_reaches_every_subscription(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        topic = f"topic.{uuid.uuid4()}"
        await session.create_address(topic, RoutingType.MULTICAST)
        await session.create_shared_queue(f"{topic}.shared", topic)
        await session.create_shared_queue(f"{topic}.shared", topic)
        await session.create_queue(
            f"{topic}.own", topic, routing_type=RoutingType.MULTICAST, durable=False, temporary=True
        )

        async with session.producer(topic) as producer:
            await producer.send("news")

        for queue in (f"{topic}.shared", f"{topic}.own"):
            async with await session.consumer(queue) as consumer:
                assert (await consumer.receive(WAIT_S)).text == "news"
        found = await session.query_address(topic)
        assert (found.exists, found.supports_multicast) == (True, True)
        assert set(found.queue_names) == {f"{topic}.shared", f"{topic}.own"}


@pytest.mark.parametrize("window", [0, 50_000, 1024 * 1024])
@asynchronous
async def test_a_large_message_passes_in_parts_both_ways(either_broker, window):
    body = os.urandom(3_000_000)
    async with client_of(either_broker, consumer_window_size=window) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            await producer.send(body, properties={"way": "bytes"})
            await producer.send_stream(io.BytesIO(body), properties={"way": "stream"})
            await producer.send("small")

        async with await session.consumer(queue) as consumer:
            first = await consumer.receive(WAIT_S)
            parts = [chunk async for chunk in first.chunks()]
            second = await consumer.receive(WAIT_S)
            whole = await second.read()
            assert (await consumer.receive(WAIT_S)).text == "small"

        assert first.is_large
        assert (b"".join(parts), len(parts) > 10, first.get("way")) == (body, True, "bytes")
        assert (whole, second.get("way"), second.get("_AMQ_LARGE_SIZE")) == (
            body,
            "stream",
            len(body),
        )


@asynchronous
async def test_a_large_body_nobody_reads_does_not_stop_what_follows(either_broker):
    async with client_of(either_broker, consumer_window_size=50_000) as client:
        session = await client.session(AckMode.CLIENT)
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            await producer.send(os.urandom(1_000_000))
            await producer.send("next")

        async with await session.consumer(queue) as consumer:
            await (await consumer.receive(WAIT_S)).acknowledge()
            assert (await consumer.receive(WAIT_S)).text == "next"


@pytest.mark.parametrize("body", [bytes(2_000_000), os.urandom(400_000)], ids=["shrinks", "stays"])
@asynchronous
async def test_a_compressed_body_is_unpacked(either_broker, body):
    async with client_of(either_broker, compress_large_message=True) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            await producer.send(body)
            await producer.send_stream(io.BytesIO(body))

        async with await session.consumer(queue) as consumer:
            for _ in range(2):
                received = await consumer.receive(WAIT_S)
                assert await received.read() == body


@asynchronous
async def test_a_duplicate_is_dropped(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            for text in ("first", "second"):
                await producer.send(text, duplicate_id="the same")

        assert (await session.query_queue(queue)).message_count == 1


@asynchronous
async def test_a_message_waits_for_its_time_and_expires_at_its_end(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            await producer.send("late", deliver_in_ms=600)
            await producer.send("gone", time_to_live_ms=1)
        await asyncio.sleep(0.05)

        async with await session.consumer(queue) as consumer:
            assert await consumer.receive_now() is None
            assert (await consumer.receive(WAIT_S)).text == "late"


@asynchronous
async def test_refusals_say_why(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)

        with pytest.raises(errors.QueueMissing, match="AMQ229017"):
            await session.consumer("no such queue")
        with pytest.raises(errors.QueueExists, match="AMQ229019"):
            await session.create_queue(queue)
        async with await session.consumer(queue):
            with pytest.raises(errors.BrokerRefused, match="AMQ229025"):
                await session.delete_queue(queue)
        await session.add_metadata("key", "value", unique=True)
        other = await client.session()
        with pytest.raises(errors.BrokerRefused) as caught:
            await other.add_metadata("key", "value", unique=True)
        assert caught.value.code == ErrorCode.DUPLICATE_METADATA
        # The session still works.
        assert (await other.query_queue(queue)).exists


@asynchronous
async def test_a_wrong_password_is_refused(either_broker):
    async with AsyncClient(either_broker.uri, user="admin", password="wrong") as client:
        with pytest.raises(errors.SecurityRefused):
            await client.session()


@asynchronous
async def test_a_deleted_queue_closes_its_consumers(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        consumer = await session.consumer(queue)
        waiting = asyncio.ensure_future(consumer.receive(WAIT_S))

        delete = make_message(f'["{queue}", true]')
        delete.set("_AMQ_ResourceName", PropertyType.STRING, "broker")
        delete.set("_AMQ_OperationName", PropertyType.STRING, "destroyQueue")
        await session.request("activemq.management", delete)

        with pytest.raises(errors.ClosedError):
            await waiting
        await consumer.close()


@asynchronous
async def test_a_consumer_that_nobody_waits_for_any_more_keeps_no_messages(either_broker):
    async with client_of(either_broker) as client:
        session, other = await client.session(), await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            await producer.send("for the other")

        creating = asyncio.ensure_future(session.consumer(queue))
        # Its request is on the way, and its answer not here.
        await asyncio.sleep(0)
        assert session.state.channel.is_waiting
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating

        async with asyncio.timeout(WAIT_S):
            # The broker sends no notification when it has closed the consumer.
            while (await session.query_queue(queue)).consumer_count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        async with await other.consumer(queue) as consumer:
            assert (await consumer.receive(WAIT_S)).text == "for the other"


@asynchronous
async def test_a_message_made_by_hand_goes_as_it_is(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer() as producer:
            await producer.send(Message(queue, b"raw", type=4), address=queue)

        async with await session.consumer(queue) as consumer:
            assert (await consumer.receive(WAIT_S)).content == b"raw"


@asynchronous
async def test_queues_are_refused_with_the_same_codes(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session, routing_type=RoutingType.ANYCAST)

        async def code_of(creating):
            with pytest.raises(errors.BrokerRefused) as refused:
                await creating
            return refused.value.code

        create, share = session.create_queue, session.create_shared_queue
        assert await code_of(create(queue, "elsewhere")) == ErrorCode.QUEUE_EXISTS
        assert await code_of(create("", queue)) == ErrorCode.ILLEGAL_STATE
        wrong = create(f"{queue}.f", queue, selector="a = = 1")
        assert await code_of(wrong) == ErrorCode.INVALID_FILTER_EXPRESSION
        buckets = create(f"{queue}.b", queue, group_buckets=-5)
        assert await code_of(buckets) == ErrorCode.INTERNAL_ERROR
        # What a JMS client does not take for success, as it takes QUEUE_EXISTS.
        other = ErrorCode.INVALID_TRANSIENT_QUEUE_USE
        assert await code_of(share(queue, "elsewhere")) == other
        assert await code_of(share(queue, queue, selector="a = 1")) == other
        await share(queue, queue)


@asynchronous
async def test_a_browser_needs_no_start(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        async with session.producer(queue) as producer:
            await producer.send("seen")

        await session.stop()
        async with await session.consumer(queue, browse=True) as browser:
            assert (await browser.receive(WAIT_S)).text == "seen"


@asynchronous
async def test_a_group_waits_for_its_old_owner(either_broker):
    async with client_of(either_broker) as client:
        mode = AckMode.INDIVIDUAL
        session, other = await client.session(mode), await client.session(mode)
        queue = await make_queue(session, group_rebalance=True, group_rebalance_pause_dispatch=True)
        producer = session.producer(queue)
        async with await session.consumer(queue) as old, await other.consumer(queue) as new:
            await producer.send("1", group_id="a")
            first = await asyncio.wait_for(_first_of(old, new), WAIT_S)
            async with await (await client.session(mode)).consumer(queue) as late:
                await producer.send("2", group_id="a")
                for consumer in (old, new, late):
                    assert await consumer.receive(0.3) is None
                await first.acknowledge()
                second = await asyncio.wait_for(_first_of(old, new, late), WAIT_S)
                assert second.text == "2"


async def _first_of(*consumers):
    while True:
        for consumer in consumers:
            found = await consumer.receive(0.1)
            if found is not None:
                return found


@asynchronous
async def test_a_consumer_that_closes_delays_nothing(either_broker):
    async with client_of(either_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        delayed = '{"redeliveryDelay": 20000}'
        await session.manage("broker", "addAddressSettings", queue, delayed)
        async with session.producer(queue) as producer:
            for number in range(5):
                await producer.send(str(number))
        async with await session.consumer(queue) as consumer:
            await (await consumer.receive(WAIT_S)).acknowledge()

        async with await session.consumer(queue) as again:
            got = [await again.receive(WAIT_S) for _ in range(4)]

        assert [one.text for one in got] == ["1", "2", "3", "4"]
