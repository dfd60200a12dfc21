"""Acceptors: the port is taken before data are loaded and answers after; which protocols."""

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import pytest

import broker.server.active
from broker.errors import BrokerError
from broker.options import BrokerOptions
from broker.protocols.registry import Detection
from broker.server.server import Broker
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptedProtocol, AcceptorOptions
from broker.transport.event_loop import loop_factory
from tests.broker.acceptors import acceptor_of


def options(folder, **acceptor):
    return BrokerOptions(
        store=FileStoreOptions(
            bindings=bindings_options(folder / "bindings"),
            messages=messages_options(folder / "journal", journal_type="NIO"),
        ),
        acceptors=(AcceptorOptions(**{"host": "127.0.0.1", "port": 0, **acceptor}),),
    )


def test_a_port_in_use_is_told_before_data_are_loaded(tmp_path, monkeypatch):
    loads = []
    monkeypatch.setattr(broker.server.active, "recover", lambda *_, **parts: loads.append(parts))

    async def start(port):
        await Broker(options(tmp_path, port=port)).start()

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BrokerError, match=rf"cannot listen on 127\.0\.0\.1:{port}.*EADDRINUSE"):
            asyncio.run(start(port))

    assert loads == []


def test_while_data_are_loaded_the_port_is_taken_and_no_client_can_connect(tmp_path, monkeypatch):
    seen = []
    recover = broker.server.active.recover
    made = Broker(options(tmp_path))

    def look(*found, **parts):
        port = made.acceptors[0].port
        with socket.socket() as other, pytest.raises(ConnectionRefusedError):
            other.connect(("127.0.0.1", port))
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        seen.append(port)
        return recover(*found, **parts)

    monkeypatch.setattr(broker.server.active, "recover", look)

    async def serve():
        await made.start()
        try:
            port = made.acceptors[0].port
            with socket.create_connection(("127.0.0.1", port)):
                return port
        finally:
            await made.stop()

    assert asyncio.run(serve()) == seen[0]


def test_of_two_that_took_a_port_at_once_the_later_one_is_told():
    async def listen():
        first = acceptor_of(AcceptorOptions(host="127.0.0.1", port=0), {})
        first.bind()
        second = acceptor_of(AcceptorOptions(host="127.0.0.1", port=first.port), {})
        second.bind()
        await first.start()
        try:
            with pytest.raises(BrokerError, match=r"cannot listen on.*EADDRINUSE"):
                await second.start()
        finally:
            await first.stop()

    asyncio.run(listen())


def test_a_failed_start_gives_the_port_up(tmp_path, monkeypatch):
    def fail(*_, **parts):
        raise BrokerError(1, "no")

    monkeypatch.setattr(broker.server.active, "recover", fail)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

    with pytest.raises(BrokerError):
        asyncio.run(Broker(options(tmp_path, port=port)).start())

    with socket.create_server(("127.0.0.1", port)):
        pass


def test_an_acceptor_that_does_not_start_by_itself(tmp_path):
    async def serve():
        made = Broker(options(tmp_path, auto_start=False))
        await made.start()
        try:
            (acceptor,) = made.acceptors
            assert acceptor.port == 0
            await acceptor.start()
            return acceptor.port
        finally:
            await made.stop()

    assert asyncio.run(serve())


def test_a_protocol_that_the_broker_does_not_have(tmp_path):
    with pytest.raises(BrokerError, match="unknown protocol HORNETQ; the broker has AMQP, CORE"):
        asyncio.run(Broker(options(tmp_path, protocols=("CORE", "HORNETQ"))).start())


def accepted_at(port):
    """The sockets of this process that were accepted at a port."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as found:
            is_ours = found.family == socket.AF_INET and found.getsockname()[1] == port
            if is_ours and found.getpeername():
                yield found


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, loop_factory()])
def test_small_writes_are_not_held_back(new_loop):
    """An answer behind a delivery would wait 40 ms for the client's delayed acknowledgement."""
    delays = []

    def look(*_):
        delays.extend(
            not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for accepted in accepted_at(acceptor.port)
        )
        return Detection.NO

    protocol = AcceptedProtocol(8, 0, look, lambda connection: None)
    acceptor = acceptor_of(AcceptorOptions(host="127.0.0.1", port=0), {"CORE": protocol})

    async def connect():
        await acceptor.start()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", acceptor.port)
            writer.write(b"eight by")
            assert await reader.read() == b""
            writer.close()
        finally:
            await acceptor.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(connect())

    assert delays == [False]


@pytest.mark.parametrize("comes", ["while it closes", "behind that"])
def test_a_connection_that_comes_as_the_acceptor_closes_does_not_stay(comes):
    """The system accepted it; its transport is there only later."""

    class Transport:
        is_aborted = False

        def get_extra_info(self, name):
            return ("127.0.0.1", 1)

        def set_write_buffer_limits(self, **limits):
            """Nothing is written."""

        def abort(self):
            self.is_aborted = True

    async def run():
        acceptor = acceptor_of(AcceptorOptions(host="127.0.0.1", port=0), {})
        await acceptor.start()
        connection = acceptor._accept() if comes == "while it closes" else None
        await acceptor.stop()
        acceptor.close_connections()
        connection = connection or acceptor._accept()
        transport = Transport()
        connection.connection_made(transport)
        assert transport.is_aborted
        connection.connection_lost(None)
        assert not acceptor.connections
        # It can be started again.
        await acceptor.start()
        assert acceptor._accept() in acceptor.connections
        await acceptor.stop()

    asyncio.run(run())
