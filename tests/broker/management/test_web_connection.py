"""HTTP clients that send, or read, half of something do not delay other clients."""

import asyncio

import pytest

from broker.management.web_connection import WebConnection
from broker.server.server import Broker
from tests.broker.management.test_web import OPTIONS, get

HALF = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
END_S = 60


def serving(work):
    """What a coroutine gives that is run with the port of a broker's web server."""

    async def run():
        broker = Broker(OPTIONS)
        await broker.start()
        try:
            return await work(broker.web[0].port)
        finally:
            await broker.stop()

    return asyncio.run(run())


async def half_sent(port, count, sent=HALF):
    """Connections that have sent so much; the server has taken it when this returns."""
    made = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        await writer.drain()
        made.append((reader, writer))
    assert (await get(port, "/livez"))[0] == 200
    return made


@pytest.mark.parametrize(
    "sent", [b"", HALF, b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"]
)
def test_a_probe_is_answered_beside_many_that_are_half_sent(sent):
    async def work(port):
        held = await half_sent(port, 2 * WebConnection.connections_max, sent)
        answers = [(await get(port, path))[0] for path in ("/livez", "/readyz", "/metrics")]
        ends = [reader.read() for reader, _ in held[:3]]
        oldest = await asyncio.wait_for(asyncio.gather(*ends, return_exceptions=True), END_S)
        for _, writer in held:
            writer.close()
        return answers, oldest

    answers, oldest = serving(work)

    assert answers == [200, 200, 200]
    assert len(oldest) == 3  # They have ended, by a reset or a close.


def test_a_request_that_is_never_complete_is_ended(monkeypatch):
    monkeypatch.setattr(WebConnection, "header_timeout_s", 0.05)

    async def work(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF)
        try:
            return await asyncio.wait_for(reader.read(), END_S)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    assert serving(work) == b""


def test_a_second_request_that_is_never_complete_is_ended(monkeypatch):
    """On a connection that was kept: its first byte ends the keep-alive time."""
    monkeypatch.setattr(WebConnection, "header_timeout_s", 0.05)

    async def work(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF + b"\r\n")
        answer = await asyncio.wait_for(reader.readuntil(b"alive\n"), END_S)
        writer.write(HALF)
        try:
            rest = await asyncio.wait_for(reader.read(), END_S)
        except ConnectionResetError:
            rest = b""
        writer.close()
        return answer, rest

    answer, rest = serving(work)

    assert answer.startswith(b"HTTP/1.1 200")
    assert rest == b""


def test_a_request_with_too_large_a_head_is_refused():
    async def work(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF + b"X: " + b"x" * 100_000)
        answer = await asyncio.wait_for(reader.read(100), END_S)
        writer.close()
        return answer

    assert serving(work).startswith(b"HTTP/1.1 400")
