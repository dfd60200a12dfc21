"""TLS acceptors: who gets in with which certificates, and that plain connections do not."""

import asyncio
import contextlib
import re
import socket
import ssl
import time
from pathlib import Path

import pytest
import uvloop

from broker.client.aio import AsyncClient
from broker.client.aio.transport import Driver
from broker.client.errors import NotConnected
from broker.config.tls import server_context
from broker.config.transport import parse_transport
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.broker.certificates import Authority

WAIT_S = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Certificates with their keys, by name, and the two authorities."""
    folder = tmp_path_factory.mktemp("tls")
    ours, foreign = Authority(folder, "ours"), Authority(folder, "foreign")
    return {
        "authority": ours.certificate,
        "foreign authority": foreign.certificate,
        "server": ours.issue("server", host="localhost"),
        "expired server": ours.issue("expired-server", host="localhost", is_expired=True),
        "other server": ours.issue("other-server", host="elsewhere.example"),
        "client": ours.issue("client"),
        "expired client": ours.issue("expired-client", is_expired=True),
        "foreign client": foreign.issue("foreign-client"),
    }


async def serving(files, parameters, work, **options):
    """Let a broker serve by TLS with these parameters while `work(port)` runs; what that gives.

    Without parameters it serves without TLS.
    """
    context = None
    if parameters:
        transport = parse_transport("tls", f"tcp://localhost:0?sslEnabled=true;{parameters}")
        context = server_context(transport)
    acceptor = AcceptorOptions(host="127.0.0.1", port=0, ssl=context, **options)
    broker = Broker(BrokerOptions(acceptors=(acceptor,)))
    await broker.start()
    try:
        async with asyncio.timeout(WAIT_S):
            return await work(broker.acceptors[0].port)
    finally:
        await broker.stop()


def by_client(**parameters):
    """Work that sends and receives one message by our client."""

    async def work(port):
        wanted = {"sslEnabled": "true", **parameters}
        query = "&".join(f"{name}={value}" for name, value in wanted.items())
        async with AsyncClient(f"tcp://localhost:{port}?{query}") as client:
            session = await client.session()
            await session.create_queue("q")
            await session.producer("q").send("by TLS")
            async with await session.consumer("q") as consumer:
                return (await consumer.receive(WAIT_S)).text

    return work


def run(files, server, client, **more):
    return asyncio.run(serving(files, server, by_client(**client), **more))


def test_a_client_that_trusts_the_certificate_gets_in(files):
    found = run(files, f"keyStorePath={files['server']}", {"trustStorePath": files["authority"]})

    assert found == "by TLS"


@pytest.mark.parametrize(
    ("server", "authority", "reason"),
    [
        ("server", "foreign authority", "unable to get local issuer certificate"),
        ("expired server", "authority", "certificate has expired"),
        ("other server", "authority", "Hostname mismatch"),
    ],
)
def test_a_client_refuses_a_server_that_it_has_no_reason_to_trust(files, server, authority, reason):
    with pytest.raises(NotConnected, match=reason):
        run(files, f"keyStorePath={files[server]}", {"trustStorePath": files[authority]})


def test_a_client_that_was_told_so_does_not_look_at_the_name(files):
    trusting = {"trustStorePath": files["authority"], "verifyHost": "false"}

    assert run(files, f"keyStorePath={files['other server']}", trusting) == "by TLS"


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_may_be_closed_again_and_dropped(files, loop):
    async def work(port):
        driver = Driver(lambda reason: None, is_secured=True)
        trusting = ssl.create_default_context(cafile=files["authority"])
        running = asyncio.get_running_loop()
        transport, _ = await running.create_connection(
            lambda: driver, "localhost", port, ssl=trusting
        )
        driver.close()
        driver.close()
        driver.abort()
        return transport.is_closing()

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(serving(files, f"keyStorePath={files['server']}", work))


def mutual(files):
    return f"keyStorePath={files['server']};trustStorePath={files['authority']};needClientAuth=true"


def test_a_client_with_a_certificate_of_ours_gets_in(files):
    own = {"trustStorePath": files["authority"], "keyStorePath": files["client"]}

    assert run(files, mutual(files), own) == "by TLS"


@pytest.mark.parametrize("key_store", [None, "expired client", "foreign client"])
def test_a_client_without_a_good_certificate_does_not(files, key_store):
    own = {"trustStorePath": files["authority"]}
    if key_store is not None:
        own["keyStorePath"] = files[key_store]

    with pytest.raises(NotConnected):
        run(files, mutual(files), own)


def test_a_certificate_that_is_only_wanted_may_be_missing(files):
    wanted = mutual(files).replace("needClientAuth", "wantClientAuth")

    assert run(files, wanted, {"trustStorePath": files["authority"]}) == "by TLS"


def refused(speak):
    """Work that does something with a plain socket, and waits until the broker ends it."""

    async def work(port):
        def wait():
            with socket.create_connection(("127.0.0.1", port), WAIT_S) as plain:
                speak(plain)
                try:
                    while plain.recv(4096):
                        pass
                except ConnectionResetError:
                    pass

        await asyncio.to_thread(wait)
        # Others get in all the same.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.close()
        return "served"

    return work


@pytest.mark.parametrize(
    "speak",
    [
        lambda plain: plain.sendall(b"ARTEMIS" + bytes(20)),
        lambda plain: plain.sendall(b"GET / HTTP/1.1\r\n\r\n"),
        lambda plain: plain.sendall(b"\x16\x03\x01\xff\xff"),
        lambda plain: plain.shutdown(socket.SHUT_WR),
        lambda plain: None,
    ],
    ids=["plain Core", "HTTP", "half a hello", "half closed", "nothing"],
)
def test_who_does_not_speak_tls_is_closed(files, speak):
    work = serving(
        files, f"keyStorePath={files['server']}", refused(speak), handshake_timeout_s=0.5
    )

    assert asyncio.run(work) == "served"


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - a line in the log sets no event.
            await asyncio.sleep(0.01)


def failures(caplog):
    return [one.getMessage() for one in caplog.records if "AMQ222208" in one.getMessage()]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    ("speak", "reason"),
    [
        (b"ARTEMIS" + bytes(20), "(?i)wrong.version.number"),
        (b"GET / HTTP/1.1\r\n\r\n", "(?i)http.request"),
        (b"", "the client has closed the connection"),
        (None, "handshake is taking longer than 0.5 seconds"),
    ],
)
def test_a_failed_handshake_is_logged(files, caplog, new_loop, speak, reason):
    async def work(port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        host, own_port = writer.get_extra_info("sockname")
        if speak is not None:
            writer.write(speak)
            writer.close()
        await until(lambda: failures(caplog))
        writer.close()
        return f"AMQ222208: SSL handshake failed for client from {host}:{own_port}: "

    parameters = f"keyStorePath={files['server']}"
    with asyncio.Runner(loop_factory=new_loop) as runner:
        head = runner.run(serving(files, parameters, work, handshake_timeout_s=0.5))

    (line,) = failures(caplog)
    assert line.startswith(head)
    assert re.search(reason, line)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_trusts_it_not_is_logged(files, caplog, new_loop):
    async def work(port):
        context = ssl.create_default_context(cafile=files["foreign authority"])

        def connect():
            with socket.create_connection(("127.0.0.1", port), WAIT_S) as plain:
                context.wrap_socket(plain, server_hostname="localhost")

        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(connect)
        await until(lambda: failures(caplog))

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serving(files, f"keyStorePath={files['server']}", work))

    assert re.search("(?i)unknown.ca", failures(caplog)[0])


def test_many_failed_handshakes_are_few_lines_and_leave_nothing(files, caplog):
    async def work():
        transport = parse_transport(
            "tls", f"tcp://localhost:0?sslEnabled=true;keyStorePath={files['server']}"
        )
        options = AcceptorOptions(host="127.0.0.1", port=0, ssl=server_context(transport))
        broker = Broker(BrokerOptions(acceptors=(options,)))
        await broker.start()
        try:
            (acceptor,) = broker.acceptors
            for _ in range(50):
                reader, writer = await asyncio.open_connection("127.0.0.1", acceptor.port)
                writer.write(b"not TLS at all")
                with contextlib.suppress(ConnectionError):
                    await reader.read()
                writer.close()
            await until(lambda: not acceptor.connections)
            await until(lambda: sum(map(told, failures(caplog))) == 50)
        finally:
            await broker.stop()

    def told(line):
        more = re.search(r"; and (\d+) others within a second$", line)
        return 1 + (int(more[1]) if more else 0)

    started = time.monotonic()
    asyncio.run(asyncio.wait_for(work(), WAIT_S))
    assert len(failures(caplog)) <= 2 + time.monotonic() - started


def test_a_client_without_tls_is_asked_whether_the_port_expects_it(files):
    with pytest.raises(NotConnected, match=r"does the port expect TLS \(sslEnabled=true\)\?"):
        run(files, f"keyStorePath={files['server']}", {"sslEnabled": "false"})


def test_a_client_with_tls_is_asked_whether_the_port_expects_it(files):
    with pytest.raises(NotConnected, match="handshake; does the port expect TLS"):
        run(files, "", {"trustStorePath": files["authority"]})


def test_a_trust_store_that_is_not_there_is_told(files):
    with pytest.raises(NotConnected, match="No such file"):
        run(files, f"keyStorePath={files['server']}", {"trustStorePath": Path("/none.pem")})
