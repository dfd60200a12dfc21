"""Clients of every protocol are who their certificates say, where no password counts.

AMQP has a mechanism of its own for it: tests/broker/protocols/amqp/test_external.py.
"""

import asyncio
import contextlib
import ssl

import pytest

from broker.client import AsyncClient, ClientError
from broker.protocols.openwire.commands import ExceptionResponse
from tests.broker.protocols.openwire.client import OpenWire
from tests.broker.security.certified import make_certificates, serving
from tests.interop.asynchronous import asynchronous

CONNECTED = b"CONNECTED"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("tls"))


@contextlib.asynccontextmanager
async def socket(broker, files, client):
    context = ssl.create_default_context(cafile=files["authority"])
    context.load_cert_chain(files[client])
    port = broker.acceptors[0].port
    reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def users(broker):
    return [session.user for session in broker.clients.sessions.values()]


async def by_core(broker, files, client, name, password):
    uri = (
        f"tcp://localhost:{broker.acceptors[0].port}?sslEnabled=true"
        f"&trustStorePath={files['authority']}&keyStorePath={files[client]}"
    )
    try:
        async with (
            AsyncClient(uri, user=name, password=password) as connected,
            await connected.session(),
        ):
            return users(broker)
    except ClientError:
        return []


async def by_stomp(broker, files, client, name, password):
    login = "" if name is None else f"login:{name}\npasscode:{password}\n"
    async with socket(broker, files, client) as (reader, writer):
        writer.write(f"CONNECT\naccept-version:1.2\nhost:any\n{login}\n\0".encode())
        found = await reader.read(65536)
        return users(broker) if found.startswith(CONNECTED) else []


async def by_mqtt(broker, files, client, name, password):
    # MQTT 3.1.1, a clean session, 60 s, the client's id.
    flags, payload = 0x02, b"\0\1c"
    for given, flag in ((name, 0x80), (password, 0x40)):
        if given is not None:
            flags |= flag
            payload += len(given).to_bytes(2, "big") + given.encode()
    body = b"\0\4MQTT\4" + bytes([flags]) + b"\0\x3c" + payload
    async with socket(broker, files, client) as (reader, writer):
        writer.write(bytes([0x10, len(body)]) + body)
        answer = await reader.readexactly(4)
        return users(broker) if answer == b"\x20\2\0\0" else []


async def by_openwire(broker, files, client, name, password):
    async with socket(broker, files, client) as (reader, writer):
        peer = OpenWire(reader, writer, 12, True)
        await peer.negotiate()
        answer = await peer.refused(peer.login("test", user_name=name, password=password))
        is_refused = isinstance(answer, ExceptionResponse)
        return [] if is_refused else [one.user for one in broker.clients.handlers]


@pytest.mark.parametrize("by", [by_core, by_stomp, by_mqtt, by_openwire])
@pytest.mark.parametrize(
    ("client", "name", "password", "found"),
    [
        ("known", None, None, ["sender"]),
        ("known", "me", "pw", ["me"]),
        ("known", "me", "wrong", ["sender"]),
        ("stranger", "me", "pw", ["me"]),
        ("stranger", "me", "wrong", []),
        ("stranger", None, None, []),
    ],
)
@asynchronous
async def test_the_password_counts_and_then_the_certificate(
    tmp_path, files, by, client, name, password, found
):
    async with serving(tmp_path, files, has_passwords=True) as broker:
        assert await by(broker, files, client, name, password) == found
