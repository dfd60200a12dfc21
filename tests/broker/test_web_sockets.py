"""WebSockets: AMQP, STOMP and MQTT inside them, by clients of others and by bytes."""

import asyncio
import contextlib

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedError
from websockets.frames import CloseCode

from broker.config.tls import server_context
from broker.config.transport import parse_transport
from broker.protocols.mqtt.encoding import encode
from broker.protocols.mqtt.packets import Connect, Version, Will
from broker.protocols.registry import Detection
from broker.transport.web_socket_options import WebSocketEncoder, WebSocketOptions, is_http
from tests.broker.certificates import Authority
from tests.broker.protocols.amqp.pumped import Pumped
from tests.broker.protocols.mqtt.client import Mqtt
from tests.broker.protocols.stomp.client import Stomp, serving, until
from tests.broker.web_socket_clients import BODY, WAIT_S, received
from tests.pages import ROOT, fences

LOGIN = encode(Connect(Version.V5, "c", True, 0), Version.V5)


def run(work, **acceptor):
    async def serve():
        async with serving(**acceptor) as broker, asyncio.timeout(2 * WAIT_S):
            return await work(broker)

    return asyncio.run(serve())


def opened(broker, *subprotocols, **options):
    return connect(
        f"ws://127.0.0.1:{broker.acceptors[0].port}/anything",
        subprotocols=subprotocols or None,
        **options,
    )


async def stomp_frames(socket, *ends):
    """What comes until each of the ends has been seen."""
    found = b""
    for end in ends:
        while end not in found:
            part = await asyncio.wait_for(socket.recv(), WAIT_S)
            found += part.encode() if isinstance(part, str) else part
    return found


def test_the_client_of_the_guide_connects():
    [program] = [
        one for one in fences(ROOT / "docs/guide/acceptors.md") if one.language == "python"
    ]

    async def work(broker):
        code = "\n".join(program.lines).replace("61616", str(broker.acceptors[0].port))
        names = {}
        await asyncio.to_thread(exec, code, names)
        names["client"].loop_start()
        await until(names["client"].is_connected)
        names["client"].disconnect()
        names["client"].loop_stop()

    run(work)


@pytest.mark.parametrize("subprotocol", ["v10.stomp", "v11.stomp", "v12.stomp"])
def test_stomp_inside_a_web_socket(subprotocol):
    async def work(broker):
        async with opened(broker, "unknown", subprotocol, "mqtt") as socket:
            assert socket.subprotocol == subprotocol
            await socket.send("CONNECT\naccept-version:1.2\n\n\0")
            assert b"version:1.2" in await stomp_frames(socket, b"\0")
            await socket.send("SUBSCRIBE\nid:1\ndestination:q\nreceipt:r\n\n\0")
            await stomp_frames(socket, b"RECEIPT")
            # A frame in pieces, and two frames in one message.
            await socket.send(iter([b"SEND\ndestina", b"tion:q\n\n", b"one\0"]))
            await socket.send(b"SEND\ndestination:q\n\ntwo\0SEND\ndestination:q\n\nthree\0")
            await stomp_frames(socket, b"one\0", b"two\0", b"three\0")

    run(work)


def test_amqp_inside_a_web_socket():
    async def work(broker):
        async with opened(broker, "amqp") as socket:
            assert socket.subprotocol == "amqp"
            client = Pumped(socket.send, socket.recv)
            link = await client.sender("q")
            delivery = link.delivery("t")
            link.send(b"\x00\x53\x75\xa0\x01x")
            link.advance()
            await client.until(lambda: delivery.settled)

    run(work)


def test_a_subprotocol_is_not_needed_and_decides_nothing():
    async def work(broker):
        async with opened(broker) as socket:
            assert socket.subprotocol is None
            await socket.send(LOGIN)
            assert (await socket.recv())[:1] == b"\x20"
        async with opened(broker, "mqtt") as socket:
            assert socket.subprotocol == "mqtt"
            await socket.send(b"CONNECT\n\n\0")
            assert b"CONNECTED" in await stomp_frames(socket, b"\0")

    run(work)


async def told(socket):
    """With which code the broker closes it."""
    with contextlib.suppress(ConnectionClosedError):
        async with asyncio.timeout(WAIT_S):
            async for _ in socket:
                pass
    return socket.close_code


def test_mqtt_takes_no_messages_of_text():
    async def work(broker):
        async with opened(broker, "mqtt") as socket:
            await socket.send(LOGIN)
            await socket.recv()
            await socket.send("\x0c\0")
            return await told(socket)

    assert run(work) == CloseCode.UNSUPPORTED_DATA


def test_what_is_no_protocol_is_told(caplog):
    async def work(broker):
        async with opened(broker) as socket:
            await socket.send(b"GET / HTTP/1.1\r\n\r\n")
            return await told(socket)

    assert run(work) == CloseCode.UNSUPPORTED_DATA
    assert "no protocol of this acceptor" in caplog.text


def test_a_frame_has_a_limit_and_a_message_has_none(caplog):
    async def work(broker):
        async with opened(broker, "v12.stomp") as socket:
            await socket.send(b"CONNECT\naccept-version:1.2\n\n\0")
            await stomp_frames(socket, b"\0")
            await socket.send(b"SUBSCRIBE\nid:1\ndestination:q\n\n\0")
            body = bytes(range(1, 256)) * 20
            await socket.send(
                [b"SEND\ndestination:q\ncontent-length:5100\n\n", *_pieces(body, 100), b"\0"]
            )
            # Out in frames of no more, which the package puts together.
            assert body in await stomp_frames(socket, body)
            await socket.send(b"SEND\ndestination:q\n\n" + b"x" * 100 + b"\0")
            return await told(socket)

    options = WebSocketOptions(frame_size_max=100)

    assert run(work, web_socket=options) == CloseCode.MESSAGE_TOO_BIG
    assert "WebSocket closed: frame" in caplog.text


def _pieces(data, size):
    return [data[first : first + size] for first in range(0, len(data), size)]


def test_frames_of_the_broker_are_within_the_limit():
    """Byte by byte, as no client would show it."""

    async def work(broker):
        async with Stomp.raw(broker) as raw:
            raw.writer.write(UPGRADE)
            head = await raw.reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 ")
            assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
            raw.writer.write(_masked(0x82, b"CONNECT\naccept-version:1.2\n\n\0"))
            seen = []
            while not seen or not seen[-1][0] & 0x80:
                first, size = await raw.reader.readexactly(2)
                seen.append((first, await raw.reader.readexactly(size)))
            assert {len(data) for _, data in seen[:-1]} == {30}
            assert [first for first, _ in seen] == [0x02, *[0] * (len(seen) - 2), 0x80]
            return b"".join(data for _, data in seen)

    assert run(work, web_socket=WebSocketOptions(frame_size_max=30)).startswith(b"CONNECTED\n")


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def _masked(first, data):
    assert len(data) < 126
    return bytes((first, 0x80 | len(data), 0, 0, 0, 0)) + data


def test_text_for_those_who_ask_for_it(caplog):
    async def work(broker):
        async with opened(broker, "v12.stomp") as socket:
            await socket.send("CONNECT\naccept-version:1.2\n\n\0")
            assert isinstance(await socket.recv(), str)
            await socket.send("SUBSCRIBE\nid:1\ndestination:q\n\n\0")
            text = "ä€\U0001f600" * 50_000
            size = len(text.encode())
            head = f"SEND\ndestination:q\ncontent-length:{size}\n\n".encode()
            await socket.send(_pieces(head + text.encode() + b"\0", 65536))
            assert text.encode() in await stomp_frames(socket, b"\0")
            # MQTT has no text.
            async with opened(broker, "mqtt") as other:
                await other.send(LOGIN)
                assert isinstance(await other.recv(), bytes)
            await socket.send(b"SEND\ndestination:q\ncontent-length:2\n\n\xff\xfe\0")
            return await told(socket)

    options = WebSocketOptions(encoder=WebSocketEncoder.text)

    assert run(work, web_socket=options) == CloseCode.INVALID_DATA
    assert "webSocketEncoderType is text" in caplog.text


@pytest.mark.parametrize("compresses", [True, False])
def test_compression_where_it_is_supported(compresses):
    async def work(broker):
        async with opened(broker, "mqtt") as socket:
            assert bool(socket.protocol.extensions) == compresses
            await socket.send(LOGIN)
            assert (await socket.recv())[:1] == b"\x20"

    run(work, web_socket=WebSocketOptions(compresses=compresses))


@pytest.mark.parametrize(
    "behind",
    [_masked(0x82, b"CONNECT\n\n\0") + _masked(0x88, b"\x03\xe8"), b"\xff" * 8],
    ids=["an end", "no frame"],
)
def test_what_ends_behind_its_request_without_waiting_for_the_answer_is_closed(behind, caplog):
    async def work(broker):
        async with Stomp.raw(broker) as raw:
            raw.writer.write(UPGRADE + behind)
            return await asyncio.wait_for(raw.reader.read(), WAIT_S)

    assert run(work) == b""
    assert "WebSocket closed: it ended before it was open" in caplog.text
    assert "AssertionError" not in caplog.text


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"426 "),
        (b"POST / HTTP/1.1\r\nHost: h\r\n\r\n", b"405 "),
        (UPGRADE.replace(b": 13", b": 7"), b"400 "),
        (UPGRADE.replace(b"Host", b"X" * 9000), b"431 "),
        (b"GET /" + b"x" * 9000, b"414 "),
    ],
    ids=["no upgrade", "no GET", "version", "header", "line"],
)
def test_a_request_that_is_no_web_socket_is_answered(request_, status, caplog):
    async def work(broker):
        async with Stomp.raw(broker) as raw:
            raw.writer.write(request_)
            return await asyncio.wait_for(raw.reader.read(), WAIT_S)

    assert run(work).startswith(b"HTTP/1.1 " + status)
    assert "WebSocket closed" in caplog.text


def test_a_peer_that_does_not_go_on_is_closed(caplog):
    async def work(broker):
        async with Stomp.raw(broker) as raw, opened(broker) as socket:
            raw.writer.write(b"GET / HT")
            await socket.send(b"CON")
            await asyncio.wait_for(raw.reader.read(), WAIT_S)
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(socket.recv(), WAIT_S)

    run(work, handshake_timeout_s=0.1)

    assert caplog.text.count("AMQ224088") == 2


def test_an_acceptor_of_core_alone_speaks_no_http():
    async def work(broker):
        async with Stomp.raw(broker) as raw:
            raw.writer.write(UPGRADE)
            return await asyncio.wait_for(raw.reader.read(), WAIT_S)

    assert run(work, protocols=("CORE",)) == b""


def test_the_broker_says_why_it_closes():
    async def work(broker):
        async with opened(broker, "v12.stomp") as socket:
            await socket.send(b"CONNECT\naccept-version:1.2\n\n\0")
            await socket.recv()
            await socket.send(b"DISCONNECT\nreceipt:r\n\n\0")
            assert b"receipt-id:r" in await stomp_frames(socket, b"\0")
            return await told(socket)

    assert run(work) == CloseCode.NORMAL_CLOSURE


def test_bytes_one_by_one():
    async def work(broker):
        async with Stomp.raw(broker) as raw:
            data = UPGRADE + b"".join(_masked(0x82, bytes((one,))) for one in b"CONNECT\n\n\0")
            for one in data:
                raw.writer.write(bytes((one,)))
                await asyncio.sleep(0)
            head = await raw.reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 ")
            return await asyncio.wait_for(raw.reader.readuntil(b"\0"), WAIT_S)

    assert b"CONNECTED" in run(work)


def test_a_web_socket_that_is_gone_takes_its_will_along():
    async def work(broker):
        async with Mqtt.of(broker, "s") as other:
            await other.subscribe("w", qos=1)
            login = Connect(Version.V5, "c", True, 0, will=Will("w", b"gone", 1, False))
            async with opened(broker, "mqtt") as socket:
                await socket.send(encode(login, Version.V5))
                await socket.recv()
            await other.message(topic="w", payload=b"gone")

    run(work)


def test_detection_needs_no_more_than_it_says():
    assert is_http(b"G") is Detection.MORE
    assert is_http(b"OPTIONS /") is Detection.YES
    assert is_http(b"CONNECT ") is Detection.NO


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    ours = Authority(tmp_path_factory.mktemp("tls"), "ours")
    return {"authority": ours.certificate, "server": ours.issue("server", host="localhost")}


@pytest.mark.parametrize("secured", [False, True])
def test_clients_of_others(files, secured):
    """paho-mqtt publishes, stomp.py receives and answers."""
    acceptor = {}
    if secured:
        transport = parse_transport(
            "a", f"tcp://h:0?sslEnabled=true;keyStorePath={files['server']}"
        )
        acceptor["ssl"] = server_context(transport)

    async def work(broker):
        port = broker.acceptors[0].port
        authority = files["authority"] if secured else None
        seen = await asyncio.to_thread(received, "localhost", port, authority=authority)
        # TLS is closed by both sides, and the loop ends with the test.
        await until(lambda: not broker.acceptors[0].connections)
        return seen

    assert run(work, **acceptor) == [BODY]
