"""SASL EXTERNAL: a client is who its certificate says, where TLS has verified that."""

import asyncio
import contextlib
import ssl

import pytest

from tests.broker.protocols.amqp.pumped import Pumped
from tests.broker.protocols.amqp.test_connections import SASL, init
from tests.broker.security.certified import make_certificates, serving
from tests.interop.asynchronous import asynchronous


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("tls"))


@contextlib.asynccontextmanager
async def outcome(broker, files, client):
    """Of EXTERNAL with a certificate; and the connection behind it."""
    context = ssl.create_default_context(cafile=files["authority"])
    if client is not None:
        context.load_cert_chain(files[client])
    port = broker.acceptors[0].port
    reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
    try:
        writer.write(SASL + init("EXTERNAL", b""))
        assert await reader.readexactly(8) == SASL
        for _ in range(2):
            size = int.from_bytes(await reader.readexactly(4), "big")
            found = await reader.readexactly(size - 4)
        yield found[-1], reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@asynchronous
async def test_a_client_is_who_its_certificate_says(tmp_path, files):
    async with (
        serving(tmp_path, files) as broker,
        outcome(broker, files, "known") as (code, reader, writer),
    ):
        assert code == 0

        async def send(data):
            writer.write(data)

        client = Pumped(send, lambda: reader.read(65536))
        assert (await client.sender("q")).remote_condition is None
        (session,) = broker.clients.sessions.values()
        assert session.user == "sender"


@pytest.mark.parametrize(("client", "code"), [("stranger", 1), (None, 2)])
@asynchronous
async def test_a_certificate_of_a_stranger_or_none_is_refused(tmp_path, files, client, code):
    async with (
        serving(tmp_path, files) as broker,
        outcome(broker, files, client) as (found, reader, _),
    ):
        assert found == code
        assert await reader.read() == b""
