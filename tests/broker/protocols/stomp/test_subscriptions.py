"""SUBSCRIBE, ACK, NACK, UNSUBSCRIBE: who gets what, and how often."""

import pytest

from broker.model.routing_type import RoutingType
from tests.broker.protocols.stomp.client import Stomp, core, serving
from tests.interop.asynchronous import asynchronous

VERSIONS = ["1.0", "1.1", "1.2"]
ANYCAST = {"destination-type": "ANYCAST"}


async def filled(client, *bodies, queue="q", **headers):
    for body in bodies:
        await client.send(queue, body.encode(), **ANYCAST, **headers)


def queues(broker):
    return broker.parts.postoffice.addresses.queues


def count(broker, queue="q"):
    return queues(broker)[queue].message_count


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_in_mode_auto_a_message_is_gone_once_it_is_written(tmp_path, version):
    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await filled(client, "1", "2")
        await client.subscribe("q")
        got = await client.get("MESSAGE")
        assert (got.body, "ack" in got.headers) == (b"1", False)
        assert await client.bodies(1) == ["2"]
        assert count(broker) == 0

        error = await client.refused("ACK", wrong(got, version))
        assert "AMQ339025" in error.headers["message"]


def wrong(message, version):
    name = "id" if version == "1.2" else "message-id"
    return {name: message.headers["message-id"], "subscription": "s"}


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_in_mode_client_an_ack_is_for_all_before_it(tmp_path, version):
    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await filled(client, "1", "2", "3", "4")
        await client.subscribe("q", ack="client")
        got = [await client.get("MESSAGE") for _ in range(4)]
        await client.ack(got[2])
        error = await client.refused("ACK", client.of_message(got[0]))
        assert "AMQ339025" in error.headers["message"]
    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await client.subscribe("q")
        assert await client.bodies(1) == ["4"]
        assert await client.is_silent()


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_in_mode_client_individual_an_ack_is_for_one(tmp_path, version):
    async with serving(tmp_path) as broker:
        async with Stomp.of(broker, version) as client:
            await filled(client, "1", "2", "3")
            await client.subscribe("q", ack="client-individual")
            got = [await client.get("MESSAGE") for _ in range(3)]
            await client.ack(got[1])
            await client.ack(got[2])
        async with Stomp.of(broker, version) as client:
            await client.subscribe("q")
            again = await client.get("MESSAGE")
            assert (again.body, again.headers["redelivered"]) == (b"1", "true")
            assert await client.is_silent()


@pytest.mark.parametrize("ending", ["DISCONNECT", "cut"])
@asynchronous
async def test_what_a_connection_leaves_behind_counts_as_delivered(ending):
    async with serving(address={"max_delivery_attempts": 2}) as broker:
        async with Stomp.of(broker) as client:
            await filled(client, "x", queue="DLQ")
            await filled(client, "poison")
        for attempt in (False, True):
            async with Stomp.of(broker) as client:
                await client.subscribe("q", ack="client")
                got = await client.get("MESSAGE")
                assert got.headers["redelivered"] == str(attempt).lower()
                if ending == "DISCONNECT":
                    await client.do("DISCONNECT")
        async with Stomp.of(broker) as client:
            await client.subscribe("DLQ")
            assert await client.bodies(2) == ["x", "poison"]


@pytest.mark.parametrize(
    ("version", "headers", "text"),
    [
        ("1.0", {}, "AMQ339025"),
        ("1.0", {"message-id": "x"}, "AMQ339025"),
        ("1.0", {"message-id": "1,1"}, "AMQ339025"),
        ("1.1", {"message-id": "1,1"}, "AMQ339037"),
        ("1.1", {"subscription": "s"}, "AMQ339025"),
        ("1.2", {}, "AMQ339039"),
        ("1.2", {"id": "99999999999999999999,1"}, "AMQ339025"),
    ],
)
@asynchronous
async def test_an_ack_of_nothing_is_refused(version, headers, text):
    async with serving() as broker, Stomp.of(broker, version) as client:
        await client.subscribe("q", subscription_type="ANYCAST", ack="client")
        error = await client.refused("ACK", {**headers, "receipt": "1"})

        assert text in error.headers["message"]
        assert error.headers["receipt-id"] == "1"


@asynchronous
async def test_an_ack_for_another_subscription_leaves_the_message_open():
    async with serving() as broker, Stomp.of(broker, "1.1") as client:
        await filled(client, "1")
        await client.subscribe("q", ack="client")
        got = await client.get("MESSAGE")
        headers = {"message-id": got.headers["message-id"], "subscription": "other"}
        error = await client.refused("ACK", headers)
        assert error.headers["message"] == "AMQ339026: subscription id other does not match s"

        await client.ack(got)
        assert count(broker) == 0


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@asynchronous
async def test_a_nack_is_an_ack_unless_the_acceptor_says_otherwise(version):
    async with serving() as broker, Stomp.of(broker, version) as client:
        await filled(client, "1", "2")
        await client.subscribe("q", ack="client")
        got = [await client.get("MESSAGE") for _ in range(2)]
        await client.ack(got[1], "NACK")

        assert count(broker) == 0
        assert "DLQ" not in queues(broker)


@asynchronous
async def test_a_nack_may_give_back_and_too_many_are_dead_letters():
    parameters = {"stompNackOutcome": "redeliver"}
    address = {"max_delivery_attempts": 2}
    async with (
        serving(parameters=parameters, address=address) as broker,
        Stomp.of(broker) as client,
    ):
        await filled(client, "x", queue="DLQ")
        await filled(client, "1", "2")
        await client.subscribe("q", ack="client-individual", consumer_window_size="0")
        got = await client.get("MESSAGE")
        client.put("NACK", {"id": got.headers["ack"]})
        again = await client.get("MESSAGE")
        assert (again.body, again.headers["redelivered"]) == (b"1", "true")
        client.put("NACK", {"id": again.headers["ack"]})
        assert await client.bodies(1) == ["2"]
        await client.subscribe("DLQ", "d")
        assert await client.bodies(2) == ["x", "1"]


@asynchronous
async def test_a_nack_may_be_for_dead_letters_and_in_mode_client_for_all_before():
    async with (
        serving(parameters={"stompNackOutcome": "reject"}) as broker,
        Stomp.of(broker) as client,
    ):
        await filled(client, "x", queue="DLQ")
        await filled(client, "1", "2", "3")
        await client.subscribe("q", ack="client")
        got = [await client.get("MESSAGE") for _ in range(3)]
        await client.ack(got[1], "NACK")
        await client.subscribe("DLQ", "d")
        assert await client.bodies(3) == ["x", "1", "2"]
        assert count(broker) == 1


@asynchronous
async def test_a_window_is_bytes_that_may_be_open():
    async with serving() as broker, Stomp.of(broker) as client:
        await filled(client, *"123456")
        await client.subscribe("q", ack="client", consumer_window_size="0")
        first = await client.get("MESSAGE")
        assert await client.is_silent()
        client.put("ACK", {"id": first.headers["ack"]})
        second = await client.get("MESSAGE")
        await client.do("UNSUBSCRIBE", {"id": "s"})

        # As many as it takes for that many bytes, each of more than 150.
        await client.subscribe("q", ack="client", consumer_window_size="300")
        got = [await client.get("MESSAGE") for _ in range(2)]
        assert [one.body for one in got] == [second.body, b"3"]
        assert await client.is_silent()
        client.put("ACK", {"id": got[1].headers["ack"]})
        assert await client.bodies(2) == ["4", "5"]


@pytest.mark.parametrize("name", ["stompConsumerWindowSize", "stompConsumerCredits"])
@asynchronous
async def test_the_acceptor_has_a_window_and_auto_none(name):
    parameters = {name: "0"}
    async with serving(parameters=parameters) as broker, Stomp.of(broker) as client:
        await filled(client, *"123")
        await client.subscribe("q", ack="client")
        await client.get("MESSAGE")
        assert await client.is_silent()
        await client.do("UNSUBSCRIBE", {"id": "s"})
        await client.subscribe("q", consumer_window_size="1")
        assert await client.bodies(3) == ["1", "2", "3"]


@asynchronous
async def test_a_selector_of_a_queue_leaves_the_others_there():
    async with serving() as broker, Stomp.of(broker) as client:
        for colour in ("red", "blue"):
            await filled(client, colour, colour=colour)
        await client.subscribe("q", selector="colour = 'blue'")

        assert await client.bodies(1) == ["blue"]
        assert count(broker) == 1


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"selector": ""}, "Selector cannot be empty"),
        ({"selector": "a ="}, "AMQ229020"),
        ({"subscription-type": "QUEUE"}, "subscription-type"),
        ({"consumer-window-size": "-2"}, "consumer-window-size"),
        ({"activemq.prefetchSize": "many"}, "consumer-window-size"),
        ({"destination": ""}, "no header destination"),
        ({"durable-subscription-name": "d"}, "AMQ339027"),
    ],
    ids=str,
)
@asynchronous
async def test_a_subscription_that_cannot_be_gets_one_clear_error(headers, text):
    async with serving() as broker, Stomp.of(broker, "1.1") as client:
        error = await client.refused(
            "SUBSCRIBE", {"destination": "t", "id": "1", "receipt": "7", **headers}
        )

        assert text in error.headers["message"]
        assert error.headers["receipt-id"] == "7"
        assert [name for name in queues(broker) if "activemq" not in name] == []
        await client.subscribe("t", "1")


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_ids_are_unique_and_have_a_default(version):
    async with serving() as broker, Stomp.of(broker, version) as client:
        await client.do("SUBSCRIBE", {"destination": "t"})
        await client.send("t")
        assert (await client.get("MESSAGE")).headers["subscription"] == "subscription/t"
        error = await client.refused("SUBSCRIBE", {"destination": "t"})
        assert "There already is a subscription for: subscription/t" in error.headers["message"]


@asynchronous
async def test_version_1_0_unsubscribes_by_destination():
    async with serving() as broker, Stomp.of(broker, "1.0") as client:
        await client.do("SUBSCRIBE", {"destination": "t"})
        await client.do("UNSUBSCRIBE", {"destination": "t"})
        await client.send("t")

        assert await client.is_silent()
        assert "AMQ339035" in (await client.refused("UNSUBSCRIBE")).headers["message"]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@asynchronous
async def test_an_unsubscribe_of_nothing_is_refused(version):
    async with serving() as broker:
        async with Stomp.of(broker, version) as client:
            assert "AMQ339037" in (await client.refused("UNSUBSCRIBE")).headers["message"]
        async with Stomp.of(broker, version) as client:
            error = await client.refused("UNSUBSCRIBE", {"id": "x"})
            assert "no subscription exists for id: x" in error.headers["message"]


@asynchronous
async def test_what_was_open_goes_back_uncounted_when_a_subscription_ends():
    async with serving() as broker, Stomp.of(broker) as client:
        await filled(client, "1", "2")
        await client.subscribe("q", ack="client")
        await client.bodies(2)
        await client.do("UNSUBSCRIBE", {"id": "s"})
        await client.subscribe("q", ack="client")

        got = await client.get("MESSAGE")
        assert (got.body, got.headers["redelivered"]) == (b"1", "false")


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_each_subscriber_of_a_topic_gets_each_message(version):
    async with (
        serving() as broker,
        Stomp.of(broker, version) as one,
        Stomp.of(broker, version) as two,
        Stomp.of(broker, version) as sender,
    ):
        await one.subscribe("news")
        await two.subscribe("news", selector="kind = 'b'")
        for kind in "ab":
            await sender.send("news", kind.encode(), kind=kind)

        assert await one.bodies(2) == ["a", "b"]
        assert await two.bodies(1) == ["b"]
        made = [name for name in queues(broker) if queues(broker)[name].is_temporary]
        assert len(made) == 2
        await one.do("UNSUBSCRIBE", {"id": "s"})
        await two.do("DISCONNECT")
        await two.is_closed()
        assert not [name for name in made if name in queues(broker)]


@pytest.mark.parametrize(
    "name", ["durable-subscription-name", "durable-subscriber-name", "activemq.subscriptionName"]
)
@asynchronous
async def test_a_durable_subscription_stays_until_it_is_removed_by_name(tmp_path, name):
    async with serving(tmp_path) as broker, Stomp.of(broker, client_id="me") as client:
        await client.do(
            "SUBSCRIBE", {"destination": "news", "id": "1", name: "d", "selector": "n <> '3'"}
        )
        await client.do("UNSUBSCRIBE", {"id": "1"})
        for number in "123":
            await client.send("news", number.encode(), n=number)
        assert queues(broker)["me.d"].binding.routing_type is RoutingType.MULTICAST

    async with serving(tmp_path) as broker, Stomp.of(broker, client_id="me") as client:
        await client.do("SUBSCRIBE", {"destination": "news", "id": "1", name: "d"})
        assert await client.bodies(2) == ["1", "2"]
        async with Stomp.of(broker, "1.1", client_id="me") as other:
            error = await other.refused("UNSUBSCRIBE", {"id": "1", name: "d"})
            assert "AMQ339017" in error.headers["message"]
        await client.do("UNSUBSCRIBE", {"id": "1", name: "d"})
        assert "me.d" not in queues(broker)


@asynchronous
async def test_a_durable_subscription_is_of_one_address():
    async with serving() as broker, Stomp.of(broker, client_id="me") as client:
        durable = {"durable-subscription-name": "d"}
        await client.do("SUBSCRIBE", {"destination": "one", "id": "1", **durable})
        error = await client.refused("SUBSCRIBE", {"destination": "two", "id": "2", **durable})

        assert "me.d is one of one, not of two" in error.headers["message"]


@pytest.mark.parametrize("header", ["no-local", "activemq.noLocal"])
@asynchronous
async def test_no_local_leaves_out_what_the_connection_sends(header):
    async with serving() as broker, Stomp.of(broker) as client, Stomp.of(broker) as other:
        await client.do(
            "SUBSCRIBE",
            {"destination": "t", "id": "s", header: "true", "selector": "a = '1' OR a = '2'"},
        )
        await client.send("t", b"own", a="1")
        await other.send("t", b"of another", a="2")
        await other.send("t", b"not wanted", a="3")

        assert await client.bodies(1) == ["of another"]
        assert await client.is_silent()


@asynchronous
async def test_messages_come_behind_the_receipt_of_their_subscription():
    async with serving() as broker, Stomp.of(broker) as client:
        await filled(client, *"12345")
        client.put("SUBSCRIBE", {"destination": "q", "id": "s", "receipt": "first"})

        assert (await client.next()).command == "RECEIPT"
        assert await client.bodies(5) == [*"12345"]


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_queue_that_is_removed_is_told(version):
    async with serving() as broker, Stomp.of(broker, version) as client:
        await client.subscribe("q", subscription_type="ANYCAST")
        broker.parts.postoffice.addresses.delete_queue("q")

        error = await client.get("ERROR")
        assert error.headers["message"] == "subscription s has ended: the queue q is gone"
        assert b"disconnected by server" in error.body
        if version == "1.2":
            assert await client.is_closed()
        else:
            await client.subscribe("q", subscription_type="ANYCAST")


@asynchronous
async def test_two_subscriptions_of_a_connection_share_a_queue_and_ids_differ():
    async with serving() as broker, Stomp.of(broker) as client:
        await client.subscribe("q", "a", "client", subscription_type="ANYCAST")
        await client.subscribe("q", "b", "client", subscription_type="ANYCAST")
        async with Stomp.of(broker) as sender:
            await filled(sender, "1", "2")
        got = [await client.get("MESSAGE") for _ in range(2)]

        assert {one.headers["subscription"] for one in got} == {"a", "b"}
        for one in got:
            await client.ack(one)
        assert count(broker) == 0


@asynchronous
async def test_consumers_are_listed_for_operators():
    async with serving() as broker, Stomp.of(broker) as client, core(broker):
        await client.subscribe("q", subscription_type="ANYCAST", selector="a = '1'")
        (session,) = (one for one in broker.clients.sessions.values() if one.consumers)
        (consumer,) = session.consumers.values()
        assert broker.clients.owners()[consumer].origin.protocol == "STOMP"
        assert consumer.queue.name == "q"


@asynchronous
async def test_an_auto_created_queue_goes_with_its_last_consumer():
    async with serving() as broker, Stomp.of(broker) as client:
        await client.subscribe("q", subscription_type="ANYCAST")
        client.put("SEND", {"destination": "q"}, b"m")
        assert await client.bodies(1) == ["m"]
        await client.do("UNSUBSCRIBE", {"id": "s"})
        assert "q" not in queues(broker)
