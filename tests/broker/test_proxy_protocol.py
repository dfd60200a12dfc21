"""The PROXY protocol: whom connections are from, with TLS and without."""

import asyncio
import contextlib
import ipaddress
import ssl
import struct

import pytest

from broker.config.tls import server_context
from broker.config.transport import parse_transport
from broker.transport.event_loop import loop_factory
from broker.transport.proxy_protocol import ProxiedFrom, ProxyHeader, ProxyHeaderError
from tests.broker.certificates import Authority
from tests.broker.protocols.stomp.client import Stomp, serving, until

WAIT_S = 30
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOGIN = b"CONNECT\naccept-version:1.2\n\n\0"


def version_2(source="10.0.0.1", destination="10.0.0.2", *, command=0x21, family=None, more=b""):
    addresses = [ipaddress.ip_address(one) for one in (source, destination)]
    rest = b"".join(one.packed for one in addresses) + struct.pack(">HH", 1000, 2000) + more
    if family is None:
        family = 0x11 if addresses[0].version == 4 else 0x21
    return SIGNATURE + struct.pack(">BBH", command, family, len(rest)) + rest


FROM_V4 = ("10.0.0.1:1000", "10.0.0.2:2000")
HEADERS = {
    "v1": (b"PROXY TCP4 10.0.0.1 10.0.0.2 1000 2000\r\n", ProxiedFrom(1, *FROM_V4)),
    "v1 of IPv6": (
        b"PROXY TCP6 ::1 fe80::2 1000 2000\r\n",
        ProxiedFrom(1, "::1:1000", "fe80::2:2000"),
    ),
    "v1 unknown": (b"PROXY UNKNOWN\r\n", ProxiedFrom(1)),
    "v1 unknown with more": (b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n", ProxiedFrom(1)),
    "v2": (version_2(), ProxiedFrom(2, *FROM_V4)),
    "v2 of IPv6": (version_2("::1", "fe80::2"), ProxiedFrom(2, "::1:1000", "fe80::2:2000")),
    "v2 with TLVs": (version_2(more=b"\x04\0\x03abc"), ProxiedFrom(2, *FROM_V4)),
    "v2 local": (version_2(command=0x20), ProxiedFrom(2)),
    "v2 of UNIX": (version_2(family=0x31), ProxiedFrom(2)),
    "v2 empty": (SIGNATURE + b"\x20\0\0\0", ProxiedFrom(2)),
}


def fed(data, most=1 << 16):
    """What a header says, read as the reader wants; how many bytes it took."""
    header, at = ProxyHeader(), 0
    while header.wanted and at < len(data):
        part = data[at : at + min(header.wanted, most)]
        header.feed(part)
        at += len(part)
    return header.found, at


@pytest.mark.parametrize("most", [1, 5, 1 << 16])
@pytest.mark.parametrize(("data", "found"), HEADERS.values(), ids=HEADERS)
def test_a_header_and_not_a_byte_more(data, found, most):
    assert fed(data + b"rest", most) == (found, len(data))


@pytest.mark.parametrize("data", [data for data, _ in HEADERS.values()], ids=HEADERS)
def test_a_header_that_is_cut_says_nothing(data):
    for size in range(len(data)):
        assert fed(data[:size])[0] is None


@pytest.mark.parametrize(
    "data",
    [
        b"CONNECT\n\n\0....",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1000\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1000 65536\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 +1 2\r\n",
        b"PROXY TCP4 ::1 ::1 1000 2000\r\n",
        b"PROXY TCP4 10.0.0.1 x 1000 2000\r\n",
        b"PROXY UDP4 10.0.0.1 10.0.0.2 1000 2000\r\n",
        b"PROXY \xff\xff\xff\xff\xff\xff\r\n",
        b"PROXY " + b"x" * 101,
        SIGNATURE + b"\x11\x11\0\0",
        SIGNATURE + b"\x22\x11\0\0",
        SIGNATURE + b"\x21\x11\0\x0b" + bytes(11),
        SIGNATURE + b"\x21\x21\0\x23" + bytes(35),
    ],
)
def test_what_is_no_header_is_refused(data):
    with pytest.raises(ProxyHeaderError):
        fed(data)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    ours = Authority(tmp_path_factory.mktemp("tls"), "ours")
    return {"authority": ours.certificate, "server": ours.issue("server", host="localhost")}


def secured(files, more=""):
    """The TLS of an acceptor."""
    return server_context(
        parse_transport("a", f"tcp://h:0?sslEnabled=true;keyStorePath={files['server']}{more}")
    )


def run(work, *, is_uvloop=True, **acceptor):
    async def serve():
        async with serving(**acceptor) as broker, asyncio.timeout(2 * WAIT_S):
            return await work(broker)

    with asyncio.Runner(loop_factory=loop_factory() if is_uvloop else None) as runner:
        return runner.run(serve())


async def logged_in(broker, header, context=None):
    """What the broker knows of a client behind a proxy, which logs in at once."""
    async with Stomp.raw(broker) as raw:
        if context is None:
            raw.writer.write(header + LOGIN)
        else:
            raw.writer.write(header)
            await raw.writer.start_tls(context, server_hostname="localhost")
            raw.writer.write(LOGIN)
        assert b"CONNECTED" in await asyncio.wait_for(raw.reader.readuntil(b"\0"), WAIT_S)
        (connection,) = broker.acceptors[0].connections
        (handler,) = broker.clients.connections.values()
        assert handler.origin.remote == connection.remote
        return connection.remote, connection.local


@pytest.mark.parametrize("is_uvloop", [True, False])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("name", ["v1", "v2", "v2 with TLVs"])
def test_a_client_behind_a_proxy_is_known_by_its_own_address(files, name, tls, is_uvloop):
    context = ssl.create_default_context(cafile=files["authority"]) if tls else None

    async def work(broker):
        for _ in range(3):
            found = await logged_in(broker, HEADERS[name][0], context)
            assert found == FROM_V4
            await until(lambda: not broker.acceptors[0].connections)

    options = {"ssl": secured(files)} if tls else {}
    run(work, is_uvloop=is_uvloop, is_behind_proxy=True, **options)


def test_a_proxy_that_connects_for_itself_has_its_own_address():
    async def work(broker):
        return await logged_in(broker, HEADERS["v2 local"][0])

    remote, _ = run(work, is_behind_proxy=True)

    assert remote.startswith("127.0.0.1:")


async def closed(broker, data):
    async with Stomp.raw(broker) as raw:
        raw.writer.write(data)
        return await ended(raw)


async def ended(raw):
    """What still comes; whatever was not read makes it a reset."""
    try:
        return await asyncio.wait_for(raw.reader.read(), WAIT_S)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("data", [LOGIN, b"PROXY TCP9 a b c d\r\n" + LOGIN])
def test_who_does_not_use_it_is_refused(data, caplog):
    async def work(broker):
        assert await closed(broker, data) == b""
        assert not broker.acceptors[0].connections

    run(work, is_behind_proxy=True)

    assert "AMQ224152" in caplog.text
    assert "proxyProtocolEnabled=true" in caplog.text


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_who_uses_it_where_it_is_not_spoken_is_refused(name, caplog):
    async def work(broker):
        assert await closed(broker, HEADERS[name][0] + LOGIN) == b""

    run(work)

    assert "AMQ224152" in caplog.text
    assert "proxyProtocolEnabled=false" in caplog.text


def test_a_proxy_that_says_nothing_is_closed(caplog):
    async def work(broker):
        assert await closed(broker, b"PROXY TCP4") == b""

    run(work, is_behind_proxy=True, handshake_timeout_s=0.1)

    assert "AMQ224088" in caplog.text


def test_a_client_that_speaks_no_tls_behind_its_proxy_is_closed(files, caplog):
    async def work(broker):
        answer = await closed(broker, HEADERS["v2"][0] + LOGIN)
        assert b"CONNECTED" not in answer
        await until(lambda: "AMQ222208" in caplog.text)

    run(work, is_behind_proxy=True, ssl=secured(files))

    assert "10.0.0.1:1000" in caplog.text


def test_those_who_have_not_arrived_count_and_are_closed(caplog):
    async def work(broker):
        async with Stomp.raw(broker) as waiting, Stomp.raw(broker) as other:
            await until(lambda: len(broker.acceptors[0]._arriving) == 2)
            other.writer.write(HEADERS["v1"][0] + LOGIN)
            assert await ended(other) == b""
            await broker.stop()
            assert await ended(waiting) == b""

    run(work, is_behind_proxy=True, connections_allowed=1)

    assert "AMQ222193" in caplog.text


@pytest.mark.parametrize(
    ("host", "gets_in"), [("localhost", True), ("LOCALHOST", True), ("other", False)]
)
def test_a_client_may_ask_for_the_hosts_of_the_acceptor_alone(files, host, gets_in):
    refused = contextlib.nullcontext() if gets_in else pytest.raises(OSError, match=r"NRECOG|^$")

    async def work(broker):
        with refused:
            await secured_to(broker, files, host)

    run(work, ssl=secured(files, ";sniHost=local.*"))


def test_a_client_that_asks_for_no_host_gets_in(files):
    async def work(broker):
        await secured_to(broker, files, "")

    run(work, ssl=secured(files, ";sniHost=other"))


async def secured_to(broker, files, host):
    """Connect by TLS, asking for a host."""
    context = ssl.create_default_context(cafile=files["authority"])
    context.check_hostname = False
    port = broker.acceptors[0].port
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
    writer.close()
