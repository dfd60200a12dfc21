"""What is the same for every protocol: security, full addresses, paging, TLS, management."""

import asyncio
import contextlib
import json
import ssl

import pytest

from broker.config.load import load
from broker.config.tls import server_context
from broker.config.transport import parse_transport
from broker.options.from_config import broker_options, security_of
from broker.server.server import Broker
from broker.settings.settings import AddressFullPolicy
from tests.broker.certificates import Authority
from tests.broker.protocols.stomp.client import Stomp, core, serving, until
from tests.interop.asynchronous import asynchronous

ANYCAST = {"destination-type": "ANYCAST"}
PERMISSIONS = "".join(
    f'<permission type="{kind}" roles="{roles}"/>'
    for kind, roles in {
        "send": "senders,all",
        "consume": "readers,all",
        "createAddress": "all",
        "createDurableQueue": "all",
        "deleteDurableQueue": "all",
        "createNonDurableQueue": "readers,all",
        "deleteNonDurableQueue": "readers,all",
        "manage": "all",
    }.items()
)


def instance(folder, core="", acceptors="tcp://127.0.0.1:0"):
    """The options of a broker.xml with users: sue may send, rob read, all do all."""
    etc = folder / "etc"
    etc.mkdir()
    (etc / "artemis-users.properties").write_text("sue = s\nrob = r\nall = a\n")
    (etc / "artemis-roles.properties").write_text("senders = sue\nreaders = rob\nall = all\n")
    (etc / "login.config").write_text(
        "activemq {\n"
        "org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required\n"
        'org.apache.activemq.jaas.properties.user="artemis-users.properties"\n'
        'org.apache.activemq.jaas.properties.role="artemis-roles.properties";\n};\n'
    )
    (etc / "broker.xml").write_text(
        f"<configuration><core><persistence-enabled>false</persistence-enabled>{core}"
        f'<acceptors><acceptor name="a">{acceptors}</acceptor></acceptors>'
        f'<security-settings><security-setting match="#">{PERMISSIONS}</security-setting>'
        '</security-settings><addresses><address name="q"><anycast><queue name="q"/></anycast>'
        '</address><address name="t"><multicast/></address></addresses></core></configuration>'
    )
    return load(etc / "broker.xml")


@contextlib.asynccontextmanager
async def configured(folder, **parts):
    config = instance(folder, **parts)
    broker = Broker(broker_options(config), security=security_of(config))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


@asynchronous
async def test_who_does_not_log_in_or_may_not_is_refused(tmp_path):
    marks = "<populate-validated-user>true</populate-validated-user>"
    async with configured(tmp_path, core=marks) as broker:
        for login in ({}, {"login": "sue"}, {"login": "sue", "passcode": "wrong"}):
            async with Stomp.raw(broker) as client:
                error = await client.refused("CONNECT", {"accept-version": "1.1", **login})
                name = login.get("login")
                text = f"Security Error occurred: User name [{name}] or password is invalid"
                assert error.headers["message"] == text
                assert await client.is_closed()
        async with (
            Stomp.of(broker, "1.1", login="sue", passcode="s") as sue,
            Stomp.of(broker, "1.1", login="rob", passcode="r") as rob,
        ):
            await rob.subscribe("q")
            await sue.send("q", b"for rob")
            got = await rob.get("MESSAGE")
            assert (got.body, got.headers["JMSXUserID"]) == (b"for rob", "sue")

            error = await rob.refused("SEND", {"destination": "q"}, b"x")
            assert error.headers["message"].startswith("AMQ339011: Error sending message to q: AMQ")
            assert "SEND" in error.headers["message"].upper()
            for destination in ("q", "t"):
                error = await sue.refused("SUBSCRIBE", {"destination": destination, "id": "1"})
                assert error.headers["message"].startswith("AMQ339016: Error creating subscription")
            error = await sue.refused("SEND", {"destination": "new"}, b"x")
            assert "CREATE_ADDRESS" in error.headers["message"]
            # A type that the frame does not name is not asked for: no permission is needed.
            await sue.send("q", b"again")
            assert await rob.bodies(1) == ["again"]
            await rob.subscribe("t", "t")
            await rob.do("UNSUBSCRIBE", {"id": "t"})


@asynchronous
async def test_an_acceptor_of_its_own_is_configured_and_speaks_nothing_else(tmp_path):
    uri = (
        "tcp://127.0.0.1:0?protocols=STOMP;useEpoll=true;stompConsumerCredits=0;"
        "stompMaxFramePayloadLength=65536;anycastPrefix=queue://"
    )
    async with configured(tmp_path, acceptors=uri) as broker:
        async with Stomp.of(broker, login="all", passcode="a") as client:
            await client.send("queue://q", b"1")
            await client.subscribe("queue://q", ack="client")
            assert (await client.get("MESSAGE")).headers["destination"] == "queue://q"
        async with Stomp.raw(broker) as client:
            client.write(b"ARTEMIS")
            assert await client.is_closed()


@asynchronous
async def test_a_parameter_of_stomp_leaves_acceptors_of_others_alone(tmp_path):
    uri = "tcp://127.0.0.1:0?protocols=CORE;connectionTtl=5000"
    async with configured(tmp_path, acceptors=uri) as broker:
        assert broker.acceptors[0].is_listening


@asynchronous
async def test_a_sender_to_a_blocked_address_waits_and_others_do_not(tmp_path):
    address = {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.BLOCK}
    async with (
        serving(tmp_path, match="full", address=address) as broker,
        Stomp.of(broker, heart_beat="1000,0") as sender,
        Stomp.of(broker) as other,
    ):
        for number in range(2):
            await sender.send("full", str(number).encode(), **ANYCAST)
        for number in range(2, 6):
            headers = {"destination": "full", "persistent": "true", "receipt": number}
            sender.put("SEND", headers, str(number).encode())
        await other.send("free", b"x", **ANYCAST)
        assert await sender.is_silent(0.3)
        assert broker.parts.postoffice.addresses.queues["full"].message_count == 2

        await other.subscribe("full")
        assert sorted(await other.bodies(6)) == [*"012345"]
        receipts = [(await sender.get("RECEIPT")).headers["receipt-id"] for _ in range(4)]
        assert receipts == [*"2345"]


@asynchronous
async def test_a_sender_that_waits_and_leaves_has_not_sent(tmp_path):
    address = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
    async with serving(tmp_path, match="full", address=address) as broker:
        # It is not read from: that it is gone is found out by a beat.
        async with Stomp.of(broker, heart_beat="0,500") as sender:
            await sender.send("full", b"1", **ANYCAST)
            sender.put("SEND", {"destination": "full"}, b"never")
            await sender.writer.drain()
            assert await sender.is_silent()
            sender.writer.transport.abort()
        await until(lambda: not broker.clients.connections)
        async with Stomp.of(broker) as client:
            await client.subscribe("full")
            assert await client.bodies(1) == ["1"]
            assert await client.is_silent()


@asynchronous
async def test_a_full_address_pages_and_all_comes_in_order(tmp_path):
    address = {"max_size_messages": 5, "page_size_bytes": 64 * 1024}
    async with serving(tmp_path, address=address) as broker, Stomp.of(broker) as client:
        for number in range(60):
            await client.send("q", str(number).encode(), **ANYCAST)
        assert broker.parts.postoffice.addresses.by_name["q"].memory.count < 60

    async with serving(tmp_path, address=address) as broker, Stomp.of(broker) as client:
        await client.subscribe("q", ack="client-individual")
        for number in range(60):
            got = await client.get("MESSAGE")
            assert got.body == str(number).encode()
            client.put("ACK", {"id": got.headers["ack"]})


@asynchronous
async def test_a_slow_consumer_is_told_and_its_connection_closed():
    async with serving() as broker, Stomp.of(broker) as slow:
        await slow.subscribe("q", ack="client", subscription_type="ANYCAST")
        (session,) = broker.clients.sessions.values()
        broker.clients.kill(session)
        error = await slow.get("ERROR")
        assert "too slow" in error.headers["message"]
        assert await slow.is_closed()


@asynchronous
async def test_one_that_does_not_read_is_not_written_to_and_delays_no_other(tmp_path):
    body = bytes(50_000)
    async with (
        serving(tmp_path) as broker,
        Stomp.of(broker) as stalled,
        Stomp.of(broker) as other,
    ):
        for client in (stalled, other):
            await client.subscribe("t")
        stalled.writer.transport.pause_reading()
        for _ in range(200):
            await other.send("t", body, **{"content-length": len(body)})
            assert (await other.get("MESSAGE")).body == body
        (queue,) = (
            one for one in broker.parts.postoffice.addresses.queues.values() if one.message_count
        )
        assert queue.message_count > 20
        stalled.writer.transport.resume_reading()
        for _ in range(200):
            await stalled.get("MESSAGE")


@asynchronous
async def test_it_is_spoken_over_tls(tmp_path):
    authority = Authority(tmp_path, "ours")
    certificate = authority.issue("server", host="localhost")
    transport = parse_transport(
        "s", f"tcp://localhost:0?sslEnabled=true;keyStorePath={certificate}"
    )
    context = ssl.create_default_context(cafile=authority.certificate)
    async with serving(ssl=server_context(transport)) as broker:
        port = broker.acceptors[0].port
        reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
        client = Stomp(reader, writer, "1.2")
        client.put("CONNECT", {"accept-version": "1.2"})
        await client.get("CONNECTED")
        await client.send("q", b"by TLS", **ANYCAST)
        await client.subscribe("q")
        assert await client.bodies(1) == ["by TLS"]
        writer.close()


@asynchronous
async def test_management_lists_connections_sessions_consumers_and_producers():
    async with (
        serving() as broker,
        Stomp.of(broker, client_id="me") as client,
        core(broker) as session,
    ):
        await client.subscribe("q", subscription_type="ANYCAST", selector="a = '1'")
        await client.send("q", **ANYCAST)
        rows = {}
        for kind in ("Connections", "Sessions", "Consumers", "Producers"):
            found = json.loads(await session.manage("broker", f"list{kind}", "", 1, 100))
            rows[kind] = [
                one for one in found["data"] if "me" in one.values() or "STOMP" in one.values()
            ]
        assert [one["protocol"] for one in rows["Connections"]] == ["STOMP"]
        assert [one["clientID"] for one in rows["Sessions"]] == ["me"]
        (consumer,) = rows["Consumers"]
        assert (consumer["queue"], consumer["protocol"], consumer["filter"]) == (
            "q",
            "STOMP",
            "a = '1'",
        )
        (producer,) = rows["Producers"]
        assert (producer["address"], producer["msgSent"]) == ("q", "1") or producer[
            "address"
        ] == "q"


@asynchronous
async def test_times_of_arrival_are_told_where_the_address_says_so():
    address = {"enable_ingress_timestamp": True}
    async with serving(address=address) as broker, Stomp.of(broker) as client:
        await client.subscribe("q", subscription_type="ANYCAST")
        client.put("SEND", {"destination": "q"}, b"m")
        headers = (await client.get("MESSAGE")).headers
        assert abs(int(headers["ingress-timestamp"]) - int(headers["timestamp"])) < 60_000


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@asynchronous
async def test_frames_of_a_known_client_have_limits_too(version):
    async with serving() as broker:
        async with Stomp.of(broker, version) as client:
            client.write(b"SEND\nn:" + b"x" * (1024 * 1024 + 1))
            assert "too large" in (await client.get("ERROR")).headers["message"]
            assert await client.is_closed()
        async with Stomp.of(broker, version) as client:
            client.write(b"SEND\n" + b"n:1\n" * 10_001 + b"\n\0")
            assert "too large" in (await client.get("ERROR")).headers["message"]
        async with Stomp.of(broker, version) as client:
            client.write(b"SEND\ncontent-length:134217729\n\n")
            assert "too large" in (await client.get("ERROR")).headers["message"]
