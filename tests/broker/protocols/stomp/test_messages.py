"""SEND and what becomes of it; MESSAGE and what it was made of."""

import json
import time

import pytest

from broker.client import AsyncClient
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from tests.broker.protocols.stomp.client import Stomp, core, serving
from tests.interop.asynchronous import asynchronous

VERSIONS = ["1.0", "1.1", "1.2"]
ANYCAST = {"destination-type": "ANYCAST"}
LVQ = {"default_last_value_queue": True}


async def only(session, queue):
    """The one message of a queue."""
    (found,) = [one async for one in session.browse(queue)]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_receipt_says_that_the_message_is_durable(tmp_path, version):
    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await client.send("orders", b"one", **ANYCAST)
        await client.send("orders", b"lost", **ANYCAST, persistent="false")

    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        await client.subscribe("orders")
        assert await client.bodies(1) == ["one"]
        assert await client.is_silent()


@asynchronous
async def test_headers_become_what_a_core_client_knows_them_by():
    headers = {
        "correlation-id": "c",
        "reply-to": "queue://answers",
        "type": "t",
        "expires": "4000000000000",
        "priority": "7",
        "content-type": "text/plain",
        "JMSXGroupID": "g",
        "_AMQ_GROUP_SEQUENCE": "3",
        "_AMQ_DUPL_ID": "d",
        "colour": "red",
    }
    async with serving() as broker, Stomp.of(broker) as client, core(broker) as session:
        before = time.time_ns() // 1_000_000
        await client.send("q", "größe".encode(), **headers, **ANYCAST)

        message = (await only(session, "q")).message
        assert message.durable
        assert (message.priority, message.expiration) == (7, 4000000000000)
        assert before <= message.timestamp <= before + 60_000
        assert message.routing_type is RoutingType.ANYCAST
        assert {name: one.value for name, one in message.properties.items()} == {
            "JMSCorrelationID": "c",
            "JMSReplyTo": "queue://answers",
            "JMSType": "t",
            "_AMQ_CONTENT_TYPE": "text/plain",
            "_AMQ_GROUP_ID": "g",
            "_AMQ_GROUP_SEQUENCE": 3,
            "_AMQ_DUPL_ID": "d",
            "_AMQ_ROUTING_TYPE": 1,
            "colour": "red",
        }
        assert (await only(session, "q")).content == "größe"


@asynchronous
async def test_a_content_length_makes_bytes_and_none_a_text():
    async with serving() as broker, Stomp.of(broker) as client, core(broker) as session:
        for queue, headers, body, content in (
            ("a", {"content-length": "3"}, b"\0\xff\n", b"\0\xff\n"),
            ("b", {"content-length": "0"}, b"", b""),
            ("c", {}, b"text", "text"),
            ("d", {}, b"", ""),
            # Bytes that are not text are kept, not replaced by question marks.
            ("e", {}, b"\xff\xfe", b"\xff\xfe"),
        ):
            await client.send(queue, body, **headers, **ANYCAST)
            assert (await only(session, queue)).content == content


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_message_has_artemis_headers_in_its_order(version):
    async with serving() as broker, Stomp.of(broker, version) as client:
        await client.subscribe("q", subscription_type="ANYCAST", ack="client")
        sent = {"correlation-id": "c", "reply-to": "r", "type": "t", "content-type": "text/x"}
        await client.send("q", b"text", **sent, custom="x", **ANYCAST)

        got = await client.get("MESSAGE")
        order = ["subscription", "message-id", "destination", "correlation-id", "expires"]
        order += ["redelivered", "priority", "persistent", "reply-to", "timestamp", "type"]
        order += ["content-type", "destination-type", "custom"]
        order += {"1.0": [], "1.1": ["content-length"], "1.2": ["ack", "content-length"]}[version]
        assert got.names == order
        assert got.body == b"text"
        assert {name: got.headers[name] for name in sent} == sent
        assert got.headers["destination"] == "q"
        assert got.headers["destination-type"] == "ANYCAST"
        assert (got.headers["expires"], got.headers["redelivered"]) == ("0", "false")
        assert (got.headers["priority"], got.headers["persistent"]) == ("4", "true")


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_bytes_come_back_as_they_were_with_their_number(version):
    body = bytes(range(256)) * 3
    async with serving() as broker, Stomp.of(broker, version) as client:
        await client.subscribe("q", subscription_type="ANYCAST")
        await client.send("q", body, **{"content-length": len(body)}, **ANYCAST)

        got = await client.get("MESSAGE")
        assert got.body == body
        assert got.names[:3] == ["subscription", "content-length", "message-id"]


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_values_with_special_characters_come_back(version):
    raw = {"1.0": "a:b\\n", "1.1": "a\\cb\\n\\\\", "1.2": "a\\cb\\n\\\\\\r"}[version]
    meant = {"1.0": "a:b\\n", "1.1": "a:b\n\\", "1.2": "a:b\n\\\r"}[version]
    async with serving() as broker, Stomp.of(broker, version) as client, core(broker) as session:
        await client.send("q", b"x", **ANYCAST, special=raw)

        assert (await only(session, "q")).message.get("special") == meant
        await client.subscribe("q", subscription_type="ANYCAST")
        assert (await client.get("MESSAGE")).headers["special"] == meant


@asynchronous
async def test_what_stands_for_the_frame_comes_back_as_the_broker_says_it_and_once():
    """Not as the sender had it: Artemis lets it overwrite headers of the MESSAGE."""
    spoilt = {"message-id": "no", "subscription": "no", "ack": "no", "redelivered": "yes"}
    async with serving() as broker, Stomp.of(broker, "1.1") as client:
        await client.subscribe("q", subscription_type="ANYCAST", ack="client")
        await client.send("q", b"x", **spoilt, **ANYCAST, timestamp="1")

        got = await client.get("MESSAGE")
        assert len(set(got.names)) == len(got.names)
        assert got.headers["subscription"] == "s"
        assert got.headers["redelivered"] == "false"
        assert "receipt" not in got.headers
        await client.ack(got)


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_messages_of_core_clients_of_every_kind_become_frames(version):
    values = {
        "flag": True,
        "whole": 7,
        "real": 1e10,
        "data": b"\0\1",
        "line": "a\nb",
        "float": Property("float", PropertyType.FLOAT, 0.5),
        "null": None,
    }
    contents = ["text", b"\0raw\0", {"n": 1, "b": b"\0"}, [1, "zwei", None], None]
    async with serving() as broker, Stomp.of(broker, version) as client, core(broker) as session:
        await client.subscribe("q", subscription_type="ANYCAST")
        for content in contents:
            await session.producer("q").send(content, properties=values)

        got = [await client.get("MESSAGE") for _ in contents]
        assert [one.body for one in got[:2]] == [b"text", b"\0raw\0"]
        assert [json.loads(one.body) for one in got[2:4]] == [
            {"n": 1, "b": "AA=="},
            [1, "zwei", None],
        ]
        assert got[4].body == b""
        for one in got:
            headers = one.headers
            assert (headers["flag"], headers["whole"], headers["real"]) == ("true", "7", "1.0E10")
            assert (headers["data"], headers["float"], headers["null"]) == ("AAE=", "0.5", "")
            assert headers["line"] == ("a\\nb" if version == "1.0" else "a\nb")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"priority": "99"}, "priority"),
        ({"priority": "x"}, "priority"),
        ({"expires": "soon"}, "expires"),
        ({"expires": "-1"}, "expires"),
        ({"AMQ_SCHEDULED_DELAY": "x"}, "AMQ_SCHEDULED_DELAY"),
        ({"AMQ_SCHEDULED_TIME": "1.5"}, "AMQ_SCHEDULED_TIME"),
        ({"_AMQ_GROUP_SEQUENCE": "one"}, "_AMQ_GROUP_SEQUENCE"),
        ({"destination-type": "anycast"}, "destination-type"),
        ({"destination": ""}, "destination"),
        ({"destination": "::q"}, "names nothing"),
        ({"destination": "q::"}, "names nothing"),
        ({"transaction": "t"}, "No transaction started"),
    ],
    ids=lambda one: str(one),
)
@asynchronous
async def test_a_send_that_is_not_valid_gets_one_clear_error(version, headers, text):
    async with serving() as broker, Stomp.of(broker, version) as client:
        named = {"destination": "q", "receipt": "7", **headers}
        named = {name: value for name, value in named.items() if value or name != "destination"}
        error = await client.refused("SEND", named, b"x")

        assert text in error.headers["message"]
        assert error.headers["receipt-id"] == "7"
        assert "Exception" not in error.headers["message"]
        if version == "1.2":
            assert await client.is_closed()
        else:
            await client.send("other")
        assert "q" not in broker.parts.postoffice.addresses.queues


@asynchronous
async def test_scheduled_messages_come_when_they_are_to():
    async with serving() as broker, Stomp.of(broker) as client:
        await client.subscribe("q", subscription_type="ANYCAST")
        await client.send("q", b"later", **ANYCAST, AMQ_SCHEDULED_DELAY="300")
        at = time.time_ns() // 1_000_000 + 600
        await client.send("q", b"last", **ANYCAST, AMQ_SCHEDULED_DELAY="1", AMQ_SCHEDULED_TIME=at)
        await client.send("q", b"now", **ANYCAST, AMQ_SCHEDULED_DELAY="0", AMQ_SCHEDULED_TIME="-1")

        assert await client.bodies(3) == ["now", "later", "last"]
        assert time.time_ns() // 1_000_000 >= at


@asynchronous
async def test_expired_messages_go_to_the_expiry_address():
    options = {"message_expiry_scan_period": 50}
    async with serving(options=options) as broker, Stomp.of(broker) as client:
        await client.send("EXPIRED", b"before", **ANYCAST)
        await client.send("q", b"old", **ANYCAST, expires="1")
        await client.subscribe("EXPIRED")

        assert await client.bodies(2) == ["before", "old"]


@asynchronous
async def test_priorities_groups_last_values_and_duplicate_ids_are_cores():
    async with (
        serving(match="lvq", address=LVQ) as broker,
        Stomp.of(broker) as client,
        Stomp.of(broker) as other,
    ):
        for number, priority in enumerate("0959"):
            await client.send("p", str(number).encode(), **ANYCAST, priority=priority)
        await client.subscribe("p")
        assert await client.bodies(4) == ["1", "3", "2", "0"]

        for body in (b"1", b"2"):
            await client.send("lvq", body, **ANYCAST, _AMQ_LVQ_NAME="k")
            await client.send("dup", body, **ANYCAST, _AMQ_DUPL_ID="same")
        await client.subscribe("lvq", "l")
        assert await client.bodies(1) == ["2"]
        await client.subscribe("dup", "d")
        assert await client.bodies(1) == ["1"]
        assert await client.is_silent()

        await client.subscribe("g", "g", subscription_type="ANYCAST")
        await other.subscribe("g", "g", subscription_type="ANYCAST")
        async with Stomp.of(broker) as sender:
            for body in (b"1", b"2", b"3"):
                await sender.send("g", body, **ANYCAST, JMSXGroupID="x")
        assert await client.bodies(3) == ["1", "2", "3"]
        assert await other.is_silent()


@asynchronous
async def test_prefixes_of_the_acceptor_choose_the_routing_type_and_come_back():
    parameters = {"anycastPrefix": "queue://,/queue/", "multicastPrefix": "topic://"}
    async with (
        serving(parameters=parameters) as broker,
        Stomp.of(broker) as client,
        core(broker) as session,
    ):
        await client.send("queue://a", b"1")
        await client.subscribe("topic://b", "b")
        await client.send("topic://b", b"2")

        assert (await client.get("MESSAGE")).headers["destination"] == "topic://b"
        assert (await only(session, "a")).message.get("_AMQ_PREFIX") == "queue://"
        await client.subscribe("/queue/a", "a")
        got = await client.get("MESSAGE")
        assert got.headers["destination"] == "queue://a"
        addresses = broker.parts.postoffice.addresses.by_name
        assert set(addresses["a"].routing_types) == {RoutingType.ANYCAST}
        assert set(addresses["b"].routing_types) == {RoutingType.MULTICAST}


@asynchronous
async def test_addresses_and_queues_are_made_as_the_settings_say():
    no_creation = {"auto_create_addresses": False}
    async with (
        serving(match="closed", address=no_creation) as broker,
        Stomp.of(broker, "1.1") as client,
    ):
        error = await client.refused("SEND", {"destination": "closed"}, b"x")
        assert error.headers["message"] == "AMQ339001: Destination does not exist: closed"
        error = await client.refused("SUBSCRIBE", {"destination": "closed", "id": "1"})
        assert error.headers["message"] == "AMQ339001: Destination does not exist: closed"

        await client.send("free")
        assert set(broker.parts.postoffice.addresses.by_name["free"].routing_types) == {
            RoutingType.MULTICAST
        }
        await client.send("free", **ANYCAST)
        assert set(broker.parts.postoffice.addresses.by_name["free"].routing_types) == {
            RoutingType.ANYCAST,
            RoutingType.MULTICAST,
        }
        assert broker.parts.postoffice.addresses.queues["free"].binding.auto_created


@asynchronous
async def test_a_routing_type_that_the_address_may_not_get_is_refused():
    async with serving(address={"auto_create_addresses": False}) as broker:
        async with core(broker) as session:
            await session.create_address("a", RoutingType.ANYCAST)
        async with Stomp.of(broker) as client:
            error = await client.refused(
                "SEND", {"destination": "a", "destination-type": "MULTICAST"}, b"x"
            )
            assert error.headers["message"] == (
                "AMQ339041: Not allowed to specify MULTICAST semantics on ANYCAST address."
            )


@asynchronous
async def test_a_send_without_type_leaves_an_address_as_it_is():
    async with serving() as broker, core(broker) as session, Stomp.of(broker) as client:
        await session.create_address("a", RoutingType.ANYCAST)
        await session.create_queue("a", "a", routing_type=RoutingType.ANYCAST)
        await client.send("a")

        assert set(broker.parts.postoffice.addresses.by_name["a"].routing_types) == {
            RoutingType.ANYCAST
        }
        assert (await only(session, "a")).content == "text"


@asynchronous
async def test_a_qualified_name_is_that_queue():
    async with serving() as broker, Stomp.of(broker) as client:
        await client.send("a::one", b"1", **ANYCAST)
        await client.send("a::two", b"2", **{"destination-type": "MULTICAST"})
        await client.subscribe("a\\c\\ctwo", "two")

        assert await client.bodies(1) == ["2"]
        await client.subscribe("a::one", "one")
        assert await client.bodies(1) == ["1"]


@pytest.mark.parametrize("name", ["stompEnableMessageId", "stomp-enable-message-id"])
@asynchronous
async def test_a_message_id_property_where_the_acceptor_wants_it(name):
    parameters = {name: "true"}
    async with serving(parameters=parameters) as broker, Stomp.of(broker) as client:
        await client.subscribe("q", subscription_type="ANYCAST")
        await client.send("q", **ANYCAST)

        headers = (await client.get("MESSAGE")).headers
        assert headers["amqMessageId"] == "STOMP" + headers["message-id"].split(",")[1]


@asynchronous
async def test_producers_are_counted_for_operators():
    async with serving() as broker, Stomp.of(broker) as client:
        for _ in range(3):
            await client.send("q", b"12345")

        (session,) = broker.clients.sessions.values()
        (producer,) = session.producers.values()
        assert (producer.address, producer.sent_count) == ("q", 3)


@asynchronous
async def test_management_is_asked_and_answers_by_stomp():
    async with serving() as broker, Stomp.of(broker) as client:
        await client.send("q", **ANYCAST)
        await client.subscribe("answers", subscription_type="ANYCAST")
        await client.do(
            "SEND",
            {
                "destination": "activemq.management",
                "reply-to": "answers",
                "_AMQ_ResourceName": "queue.q",
                "_AMQ_Attribute": "messageCount",
            },
        )
        assert (await client.get("MESSAGE")).body == b"[1]"
        await client.do(
            "SEND",
            {
                "destination": "activemq.management",
                "reply-to": "answers",
                "_AMQ_ResourceName": "queue.q",
                "_AMQ_OperationName": "removeAllMessages",
            },
            b"[]",
        )
        assert (await client.get("MESSAGE")).body == b"[1]"


@asynchronous
async def test_a_core_client_and_a_stomp_client_exchange_both_ways():
    async with serving() as broker, Stomp.of(broker) as client:
        uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}"
        async with AsyncClient(uri) as other, await other.session() as session:
            await session.create_queue("q", "q", routing_type=RoutingType.ANYCAST)
            consumer = await session.consumer("q")
            await client.send("q", b"to core", colour="red")
            received = await consumer.receive(30)
            assert (received.content, received.message.get("colour")) == ("to core", "red")
            await received.acknowledge()
