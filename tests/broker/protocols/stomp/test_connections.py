"""CONNECT, versions, heart-beats, DISCONNECT, and what ends a connection."""

import asyncio

import pytest

from tests.broker.protocols.stomp.client import Stomp, serving
from tests.interop.asynchronous import asynchronous

VERSIONS = ["1.0", "1.1", "1.2"]


@pytest.mark.parametrize(
    ("accepted", "spoken"),
    [
        ("1.0", "1.0"),
        ("1.0,1.1", "1.1"),
        ("1.2,1.0,1.1", "1.2"),
        ("1.1, 1.2", "1.2"),
        ("2,1.1", "1.1"),
    ],
)
@asynchronous
async def test_the_highest_version_of_both_is_spoken(accepted, spoken):
    async with serving() as broker, Stomp.raw(broker) as client:
        client.put("CONNECT", {"accept-version": accepted, "host": "h", "request-id": "7"})

        headers = (await client.get("CONNECTED")).headers
        assert headers["version"] == spoken
        assert headers["response-id"] == "7"
        assert ("server" in headers) == (spoken != "1.0")
        (connection,) = broker.clients.connections.values()
        assert headers["session"] == connection.origin.connection_id


@asynchronous
async def test_a_client_that_names_no_version_speaks_1_0():
    async with serving() as broker, Stomp.raw(broker, "1.0") as client:
        client.put("CONNECT")

        assert set((await client.get("CONNECTED")).headers) == {"session"}
        error = await client.refused("NACK", {"message-id": "1,1"})
        assert "AMQ339023" in error.headers["message"]
        assert await client.is_closed()


@asynchronous
async def test_the_command_stomp_is_as_good_as_connect_from_1_1_on():
    async with serving() as broker:
        async with Stomp.raw(broker) as client:
            client.put("STOMP", {"accept-version": "1.1", "host": "h"})
            await client.get("CONNECTED")
        async with Stomp.raw(broker, "1.0") as client:
            error = await client.refused("STOMP", {"accept-version": "1.0"})
            assert "AMQ339029" in error.headers["message"]
            client.put("CONNECT")
            await client.get("CONNECTED")


@asynchronous
async def test_other_versions_are_refused_with_those_that_are_spoken():
    async with serving() as broker, Stomp.raw(broker) as client:
        error = await client.refused("CONNECT", {"accept-version": "1.3,2.0"})

        assert error.headers["version"] == "1.0,1.1,1.2"
        assert error.body == b"Supported protocol versions are v1.0 v1.1 v1.2"
        assert await client.is_closed()


@asynchronous
async def test_another_protocol_or_command_first_is_not_taken_for_stomp():
    async with serving() as broker:
        for first in (b"SEND\n\n\0", b"CONNEXION\n", b"LIST / HTTP/1.1\r\n\r\n"):
            async with Stomp.raw(broker) as client:
                client.write(first)
                assert await client.is_closed()
        assert broker.clients.connections == {}


@asynchronous
async def test_it_is_found_byte_by_byte_and_lines_may_end_in_cr_lf():
    async with serving() as broker, Stomp.raw(broker) as client:
        for byte in b"CONNECT\r\naccept-version:1.2\r\nhost:h\r\n\r\n\0\r\n":
            client.write(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)
        await client.get("CONNECTED")
        client.write(b"DISCONNECT\r\nreceipt:1\r\n\r\n\0")
        await client.get("RECEIPT")
        assert await client.is_closed()


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_second_connect_is_refused(version):
    async with serving() as broker, Stomp.of(broker, version) as client:
        error = await client.refused("CONNECT", {"accept-version": version, "receipt": "2"})

        assert "established already" in error.headers["message"]
        assert error.headers["receipt-id"] == "2"
        if version == "1.2":
            assert await client.is_closed()
        else:
            await client.send("q")


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_disconnect_is_answered_once_all_before_is_durable(tmp_path, version):
    async with serving(tmp_path) as broker, Stomp.of(broker, version) as client:
        for number in range(20):
            client.put(
                "SEND",
                {
                    "destination": "q",
                    "persistent": "true",
                    "receipt": number,
                    "destination-type": "ANYCAST",
                },
                b"m",
            )
        client.put("DISCONNECT", {"receipt": "bye"})

        receipts = [(await client.get("RECEIPT")).headers["receipt-id"] for _ in range(21)]
        assert receipts == [*map(str, range(20)), "bye"]
        assert await client.is_closed()
        assert broker.clients.sessions == {}


@asynchronous
async def test_disconnect_without_receipt_closes():
    async with serving() as broker, Stomp.of(broker) as client:
        client.put("DISCONNECT")
        client.put("SEND", {"destination": "q"}, b"too late")

        assert await client.is_closed()
        assert "q" not in broker.parts.postoffice.addresses.by_name


@pytest.mark.parametrize(
    ("header", "answer"),
    [
        ("0,0", "0,30000"),
        ("0,700", "700,30000"),
        ("0,1", "500,30000"),
        ("2000,0", "0,2000"),
        ("1,0", "0,500"),
    ],
)
@asynchronous
async def test_heart_beats_are_agreed_by_artemis_rules(header, answer):
    async with serving() as broker, Stomp.raw(broker) as client:
        client.put("CONNECT", {"accept-version": "1.1", "heart-beat": header})

        assert (await client.get("CONNECTED")).headers["heart-beat"] == answer


@asynchronous
async def test_the_broker_beats_also_beside_data():
    async with serving() as broker, Stomp.of(broker, heart_beat="0,500") as client:
        assert await asyncio.wait_for(client.reader.readexactly(2), 30) == b"\n\n"


@pytest.mark.parametrize("header", ["x,y", "1", "1,2,3", "-1,5", ""])
@asynchronous
async def test_a_heart_beat_that_is_not_two_numbers_is_refused(header):
    async with serving() as broker, Stomp.raw(broker) as client:
        error = await client.refused("CONNECT", {"accept-version": "1.2", "heart-beat": header})

        assert "Incorrect heartbeat header" in error.headers["message"]


@asynchronous
async def test_a_silent_client_is_told_and_closed_and_one_that_beats_is_not():
    parameters = {"connectionTtlMin": "200", "heartBeatToConnectionTtlModifier": "1.0"}
    options = {"connection_ttl_check_interval": 100}
    async with (
        serving(options=options, parameters=parameters) as broker,
        Stomp.of(broker, heart_beat="300,0") as silent,
        Stomp.of(broker, heart_beat="5000,0") as patient,
    ):
        error = await silent.get("ERROR")

        assert error.headers["message"].startswith("AMQ229014: Did not receive data from 127.0.0.1")
        assert "300ms connection TTL" in error.headers["message"]
        assert await silent.is_closed()
        await patient.send("q")


@asynchronous
async def test_parameters_of_the_acceptor_set_the_ttl():
    parameters = {
        "connectionTtl": "20000",
        "connectionTtlMin": "10000",
        "connectionTtlMax": "30000",
        "heartBeatToConnectionTtlModifier": "1.5",
        "disableStompServerHeader": "true",
    }
    async with serving(parameters=parameters) as broker:
        for header, answer in (
            ("0,0", "0,13333"),
            ("1,0", "0,6666"),
            ("50000,0", "0,20000"),
            ("10000,0", "0,10000"),
        ):
            async with Stomp.raw(broker) as client:
                client.put("CONNECT", {"accept-version": "1.2", "heart-beat": header})
                headers = (await client.get("CONNECTED")).headers
                assert headers["heart-beat"] == answer
                assert "server" not in headers


@asynchronous
async def test_the_broker_lists_connection_and_sessions_with_the_client_id():
    async with serving() as broker, Stomp.of(broker, client_id="me") as client:
        await client.do("BEGIN", {"transaction": "t"})
        (connection,) = broker.clients.connections.values()

        assert connection.origin.protocol == "STOMP"
        assert connection.origin.client_id == "me"
        sessions = list(broker.clients.sessions.values())
        assert [one.origin.client_id for one in sessions] == ["me", "me"]


@asynchronous
async def test_an_operator_ends_a_session_or_connection_and_the_client_is_told():
    async with serving() as broker, Stomp.of(broker) as client:
        await client.do("BEGIN", {"transaction": "t"})
        (connection,) = broker.clients.connections.values()
        _, transaction = broker.clients.sessions.values()
        connection.close_session(transaction)
        error = await client.refused("COMMIT", {"transaction": "t"})
        assert "No transaction started" in error.headers["message"]
    async with serving() as broker, Stomp.of(broker) as client:
        (connection,) = broker.clients.connections.values()
        connection.close_session(next(iter(broker.clients.sessions.values())))
        error = await client.get("ERROR")
        assert "closed by an operator" in error.headers["message"]
        assert await client.is_closed()
        assert broker.clients.sessions == {}


@asynchronous
async def test_when_the_broker_stops_connections_are_closed_without_an_error():
    async with serving() as broker, Stomp.of(broker) as client:
        ending = asyncio.ensure_future(broker.stop())

        assert await client.is_closed()
        await ending


@asynchronous
async def test_a_frame_too_large_or_slow_before_login_ends_the_connection():
    async with serving() as broker:
        async with Stomp.raw(broker) as client:
            client.write(b"CONNECT\nn:" + b"x" * 70_000)
            error = await client.get("ERROR")
            assert "too large" in error.headers["message"]
            assert await client.is_closed()
        async with Stomp.raw(broker) as client:
            client.write(b"CONNECT\ncontent-length:9999999999\n\n")
            assert "too large" in (await client.get("ERROR")).headers["message"]
            assert await client.is_closed()
    options = {"connection_ttl_check_interval": 50}
    async with (
        serving(options=options, handshake_timeout_s=0.3) as broker,
        Stomp.raw(broker) as client,
    ):
        client.write(b"CONNECT\nlogin:")
        assert await client.is_closed()
