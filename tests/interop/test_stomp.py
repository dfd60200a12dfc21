"""STOMP on both brokers: a client's own tests, and the same conversations with the same answers.

`stomp.py` has its tests in the sources of version 4.1.24; later ones on PyPI are without.
"""

import asyncio
import os
import queue
import re
import subprocess
import sys
import tarfile

import pytest

from broker.client import AsyncClient
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from tests.broker.protocols.stomp.client import Stomp
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.fetched import PeerUnavailableError, cache_root, into

SOURCES = "stomp.py-4.1.24"
SUITES = ("s10_test", "s11_test", "s12_test", "nonascii_test", "basic_test")
# They want a broker on port 61613 of this machine, or a second port.
ELSEWHERE = re.compile(r"test_(default_to_localhost|host_bind_port|timeout)")
VERSIONS = ["1.0", "1.1", "1.2"]
BOTH = ["distributed_broker", "our_broker"]
USER = {"login": ArtemisBroker.USER, "passcode": ArtemisBroker.PASSWORD}


@pytest.fixture(scope="module")
def suite():
    """The folder that stomp.py's sources are in."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", "--dest", "{}", SOURCES.replace("-", "==")]
    try:
        fetched = into(cache_root() / SOURCES, "pip download", command)
    except PeerUnavailableError as error:
        pytest.skip(f"stomp.py's sources cannot be had: {error}")
    folder = fetched / SOURCES
    if not folder.exists():
        (archive,) = fetched.glob("*.tar.gz")
        with tarfile.open(archive) as found:
            found.extractall(fetched, filter="data")
    return folder


def results(suite, port, name):
    """What of a module of stomp.py's tests passes on a broker: {test: passed}."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(suite),
        "STD_HOST": "127.0.0.1",
        "STD_PORT": str(port),
        "STD_USER": ArtemisBroker.USER,
        "STD_PASSWORD": ArtemisBroker.PASSWORD,
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "unittest", "-v", f"stomp.test.{name}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    found = re.findall(
        r"^(test\w+) .*?\.\.\. (?:.*\n)*?.*?\b(ok|FAIL|ERROR)$", done.stderr, re.MULTILINE
    )
    assert found, done.stderr
    return {test: how == "ok" for test, how in found if not ELSEWHERE.match(test)}


@pytest.mark.parametrize("name", SUITES)
def test_stomp_py_finds_no_difference(suite, distributed_broker, our_broker, name):
    ours = results(suite, our_broker.port, name)
    theirs = results(suite, distributed_broker.port, name)

    assert len(ours) == len(theirs)
    assert [test for test in theirs if theirs[test] and not ours[test]] == []
    assert any(ours.values())


# --- the same conversations -----------------------------------------------------------------------


async def both(conversation, *brokers):
    """What a conversation gives on each broker."""
    return [await conversation(broker.port) for broker in brokers]


def session(port):
    return AsyncClient(f"tcp://127.0.0.1:{port}", user=USER["login"], password=USER["passcode"])


def compared(one, other):
    """Only what differs, to be read."""
    return [(a, b) for a, b in zip(one, other, strict=True) if a != b]


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_connected_has_the_same_headers(distributed_broker, our_broker, version):
    async def connect(port):
        seen = []
        for headers in (
            {},
            {"heart-beat": "0,0"},
            {"heart-beat": "100,200"},
            {"heart-beat": "7000,9000"},
            {"request-id": "7", "client-id": "c"},
            {"receipt": "1"},
        ):
            async with Stomp.raw(port, version) as client:
                client.put("CONNECT", {"accept-version": version, **USER, **headers})
                reply = await client.get("CONNECTED")
                for name in ("session", "server"):
                    if name in reply.headers:
                        reply.headers[name] = "its own"
                seen.append(reply)
        return seen

    theirs, ours = await both(connect, distributed_broker, our_broker)
    assert compared(theirs, ours) == []


SENT = [
    ({}, b"text"),
    ({}, b""),
    ({"content-length": "4"}, b"\0raw"),
    ({"content-length": "0"}, b""),
    ({"persistent": "TRUE", "priority": "9", "expires": "4000000000000"}, b"x"),
    ({"correlation-id": "c", "type": "t", "reply-to": "r"}, b"x"),
    ({"content-type": "text/plain", "JMSXGroupID": "g", "own": "header"}, b"x"),
    ({"_AMQ_DUPL_ID": "d", "_AMQ_GROUP_SEQUENCE": "3", "JMSXGroupID": "g"}, b"x"),
    ({"AMQ_SCHEDULED_DELAY": "0", "empty": ""}, "größe €".encode()),
]
# Properties of the frame, which Artemis stores, and ours does not.
OF_THE_FRAME = {"destination", "destination-type", "receipt", "transaction", "content-length"}


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_core_clients_receive_the_same_of_what_is_sent(
    distributed_broker, our_broker, version
):
    async def send(port):
        seen = []
        queue = f"stomp-to-core-{version}"
        async with Stomp.of(port, version, **USER) as client, session(port) as core:
            for headers, body in SENT:
                await client.do(
                    "SEND", {"destination": queue, "destination-type": "ANYCAST", **headers}, body
                )
            async with await core.session() as receiving:
                consumer = await receiving.consumer(queue)
                for _ in SENT:
                    got = await consumer.receive(30)
                    await got.acknowledge()
                    message = got.message
                    properties = {
                        name: (int(one.type), one.value)
                        for name, one in message.properties.items()
                        if name not in OF_THE_FRAME
                    }
                    if "_AMQ_GROUP_SEQUENCE" in properties:
                        # A text there; here the number that it means.
                        value = int(properties["_AMQ_GROUP_SEQUENCE"][1])
                        properties["_AMQ_GROUP_SEQUENCE"] = value
                    # They have no order there.
                    properties = sorted(properties.items())
                    fields = (message.type, message.durable, message.priority)
                    seen.append((*fields, message.expiration, bytes(message.body), properties))
        # By content: priorities change the order.
        return sorted(seen, key=repr)

    theirs, ours = await both(send, distributed_broker, our_broker)
    assert compared(theirs, ours) == []


def of_core(version):
    """Messages of a Core client; in 1.0 a line feed ends the header there."""
    properties = {
        "flag": True,
        "whole": 7,
        "long": 2**40,
        "real": 1e10,
        "line": "a:b" if version == "1.0" else "a\nb:c\\d",
        "null": None,
        "byte": Property("byte", PropertyType.BYTE, -3),
        "float": Property("float", PropertyType.FLOAT, 0.25),
        "JMSCorrelationID": "c",
        "JMSType": "t",
        "JMSReplyTo": "queue://r",
        "_AMQ_GROUP_ID": "g",
    }
    return [("text", properties), (b"\0raw", {}), ("", {}), (b"", {}), (None, {})]


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_subscriber_receives_the_same_of_core_clients(
    distributed_broker, our_broker, version
):
    async def receive(port):
        seen = []
        queue = f"core-to-stomp-{version}"
        async with Stomp.of(port, version, **USER) as client, session(port) as core:
            await client.subscribe(queue, "s", "client", subscription_type="ANYCAST")
            async with await core.session() as sending:
                for content, properties in of_core(version):
                    await sending.producer(queue).send(content, properties=properties, priority=3)
            for _ in of_core(version):
                got = await client.get("MESSAGE")
                for name in ("message-id", "ack", "timestamp"):
                    if name in got.headers:
                        got.headers[name] = "its own"
                known = got.names.index("whole") if "whole" in got.names else len(got.names)
                # Properties have no order there.
                seen.append((got.headers, got.body, [*got.names[: min(known, 9)]]))
        return seen

    theirs, ours = await both(receive, distributed_broker, our_broker)
    for one in ours:
        # Empty bytes have their length here.
        if one[1] == b"" and "content-length" in one[0]:
            del one[0]["content-length"]
            one[2].remove("content-length")
    for one, other in zip(theirs, ours, strict=True):
        assert one[0] == other[0]
        assert one[1] == other[1]


REFUSED = {
    "1.0": [
        ("SEND", {"destination": "a", "expires": "x"}),
        ("SUBSCRIBE", {"destination": "a", "id": "1", "selector": "a ="}),
        ("UNSUBSCRIBE", {}),
        ("UNSUBSCRIBE", {"id": "none"}),
        ("BEGIN", {}),
        ("COMMIT", {"transaction": "none"}),
        ("ABORT", {}),
        ("ACK", {"message-id": "1,1"}),
        ("NACK", {"message-id": "1,1"}),
    ],
    "1.1": [
        ("SUBSCRIBE", {"destination": "a", "id": "1", "durable-subscription-name": "d"}),
        ("UNSUBSCRIBE", {}),
        ("ACK", {"message-id": "1,1"}),
        ("ACK", {"message-id": "1,1", "subscription": "s"}),
        ("COMMIT", {}),
        ("NO-COMMAND", {}),
        ("SEND", {"destination": "a", "bad": "\\t"}),
    ],
    "1.2": [
        ("ACK", {}),
        ("ACK", {"id": "1,1"}),
        ("BEGIN", {}),
        ("SEND", {"destination": "a", "bad": "\\t"}),
        ("SUBSCRIBE", {"destination": "a", "id": "1", "selector": ""}),
    ],
}


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_what_is_refused_is_refused_by_both_and_closes_the_same(
    distributed_broker, our_broker, version
):
    async def refuse(port):
        seen = []
        for command, headers in REFUSED[version]:
            async with Stomp.of(port, version, **USER) as client:
                client.put(command, {**headers, "receipt": "r"})
                reply = await client.next()
                closed = True
                try:
                    client.put("BEGIN", {"transaction": "t", "receipt": "still"})
                    closed = (await client.next()).command != "RECEIPT"
                except (asyncio.IncompleteReadError, ConnectionError):
                    pass
                seen.append((command, headers, reply.command, closed))
        return seen

    theirs, ours = await both(refuse, distributed_broker, our_broker)
    assert compared(theirs, ours) == []


@pytest.mark.parametrize("broker", BOTH)
@asynchronous
async def test_large_messages_go_both_ways(request, broker):
    port = request.getfixturevalue(broker).port
    body, text = bytes(range(256)) * 2000, "größe " * 50_000
    async with Stomp.of(port, **USER) as client, session(port) as core:
        await client.do(
            "SEND",
            {"destination": "large", "destination-type": "ANYCAST", "content-length": len(body)},
            body,
        )
        headers = {"destination": "large", "destination-type": "ANYCAST"}
        await client.do("SEND", headers, text.encode())
        async with await core.session() as both_ways:
            consumer = await both_ways.consumer("large")
            for content in (body, text):
                got = await consumer.receive(30)
                await got.read()
                assert got.content == content
                await got.acknowledge()
            await consumer.close()
            await client.subscribe("large")
            for content in (body, text):
                await both_ways.producer("large").send(content)
            assert (await client.get("MESSAGE")).body == body
            assert (await client.get("MESSAGE")).body.decode() == text


@asynchronous
async def test_a_message_without_type_is_a_text_where_it_is_one(distributed_broker, our_broker):
    async def receive(port):
        async with Stomp.of(port, **USER) as client, session(port) as core:
            await client.subscribe("untyped", subscription_type="ANYCAST")
            async with await core.session() as sending:
                await sending.producer("untyped").send(Message(None, b"\0"))
            return (await client.get("MESSAGE")).body

    assert await both(receive, distributed_broker, our_broker) == [b"", b""]


@pytest.mark.parametrize("broker", BOTH)
@pytest.mark.parametrize("window", [None, 0], ids=["usual", "no prefetch"])
def test_stomp_py_of_today_receives_what_it_sends(request, broker, window):
    """As its tests with Artemis have it, which PyPI has in no version."""
    stomp = pytest.importorskip("stomp")
    events = queue.SimpleQueue()

    class Listener(stomp.ConnectionListener):
        def on_message(self, frame):
            events.put(("message", frame.body))

        def on_receipt(self, frame):
            events.put(("receipt", frame.headers["receipt-id"]))

        def on_error(self, frame):
            events.put(("error", frame.body))

    headers = {} if window is None else {"consumerWindowSize": window}
    port = request.getfixturevalue(broker).port
    connection = stomp.Connection11([("127.0.0.1", port)])
    connection.set_listener("", Listener())
    connection.connect(USER["login"], USER["passcode"], wait=True, headers=headers)
    try:
        destination = f"/queue/stomp.py.{window}"
        connection.subscribe(destination, id=1, ack="auto", headers=headers)
        connection.send(destination, "to itself", receipt="r")
        found = {events.get(timeout=30) for _ in range(2)}
    finally:
        connection.disconnect()

    assert found == {("message", "to itself"), ("receipt", "r")}
