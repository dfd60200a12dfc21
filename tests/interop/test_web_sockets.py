"""WebSockets on Artemis 2.44 and on ours: the same clients of others, and the same bytes."""

import asyncio
import contextlib

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from tests.broker.web_socket_clients import BODY, WAIT_S, received
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.our_broker import OurBroker

LOGIN = (
    f"CONNECT\naccept-version:1.2\nlogin:{ArtemisBroker.USER}\npasscode:{ArtemisBroker.PASSWORD}"
)


@pytest.fixture(params=["distributed_broker", "ours"])
def port(request, tmp_path):
    """Of Artemis, and of our broker."""
    if request.param != "ours":
        yield request.getfixturevalue(request.param).port
        return
    broker = OurBroker(tmp_path)
    yield broker.port
    broker.end()


def test_stomp_py_receives_what_paho_publishes(port):
    user, password = ArtemisBroker.USER, ArtemisBroker.PASSWORD

    assert received("127.0.0.1", port, user=user, password=password) == [BODY]


@asynchronous
async def test_the_first_known_subprotocol_is_answered_and_decides_nothing(port):
    for offered, answered in (
        (["unknown", "v11.stomp", "mqtt"], "v11.stomp"),
        (["mqtt"], "mqtt"),
        (["unknown"], None),
        (None, None),
    ):
        async with connect(f"ws://127.0.0.1:{port}/any", subprotocols=offered) as socket:
            assert socket.subprotocol == answered
            await socket.send(f"{LOGIN}\n\n\0")
            found = await asyncio.wait_for(socket.recv(), WAIT_S)
            assert isinstance(found, bytes)
            assert found.startswith(b"CONNECTED\n")


@asynchronous
async def test_a_frame_beyond_the_limit_ends_it_and_ours_says_why(port, request):
    async with connect(f"ws://127.0.0.1:{port}/") as socket:
        with contextlib.suppress(ConnectionClosedError):
            await socket.send("x" * 65_537)
            await asyncio.wait_for(socket.recv(), WAIT_S)
        is_ours = request.node.callspec.params["port"] == "ours"
        assert socket.close_code == (1009 if is_ours else 1006)
