"""A broker that stops while its machine reaches no network, and starts again with it."""

import asyncio
import contextlib
import logging
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from broker.cli.isolation import WatchedBroker
from broker.options import BrokerOptions
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import AcceptorOptions
from broker.transport.network_check import NetworkCheck
from tests.broker.log_lines import Lines

# Of TEST-NET-1: no machine has it.
NOWHERE = "192.0.2.1"
WAIT_S = 60


class Switch:
    """A ping of our own: it answers as long as a file is there, and notes what it was called with.

    Attributes:
        command: for network-check-ping-command.
    """

    def __init__(self, folder):
        self.file, self.called = folder / "network", folder / "called"
        script = folder / "ping.py"
        script.write_text(
            "import pathlib, sys\n"
            f"pathlib.Path({str(self.called)!r}).write_text(' '.join(sys.argv[1:]))\n"
            f"sys.exit(not pathlib.Path({str(self.file)!r}).exists())\n"
        )
        self.command = f"{sys.executable} {script} -w %d %s"

    def set(self, is_up):
        if is_up:
            self.file.touch()
        else:
            self.file.unlink()


@pytest.fixture
def switch(tmp_path):
    return Switch(tmp_path)


def healthy(**options):
    return asyncio.run(NetworkCheck(**options).is_healthy())


def test_a_host_that_is_pinged(switch):
    assert not healthy(hosts=(NOWHERE,), ping=switch.command, timeout_ms=2000)
    assert switch.called.read_text() == f"-w 2 {NOWHERE}"
    switch.set(is_up=True)
    assert healthy(hosts=(NOWHERE,), ping=switch.command)


def test_positions_in_a_command_as_java_has_them(switch):
    command = switch.command.replace("%d %s", "%1$d %2$s")
    switch.set(is_up=True)

    assert healthy(hosts=(NOWHERE,), ping=command)
    assert switch.called.read_text() == f"-w 1 {NOWHERE}"


def test_hosts_of_this_machine_say_nothing(switch):
    assert healthy(hosts=("127.0.0.1", "::1"), ping=switch.command)
    assert not switch.called.exists()


def test_a_command_that_is_not_there_and_a_name_that_does_not_exist(caplog):
    assert not healthy(hosts=(NOWHERE,), ping="/no/such/ping %s")
    assert "cannot run /no/such/ping" in caplog.text
    assert not healthy(hosts=("no-such-host.invalid",))


@contextlib.contextmanager
def web(status):
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"x")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("status", "found"), [(200, True), (404, False), (503, False)])
def test_a_url_that_is_opened(status, found):
    with web(status) as url:
        assert healthy(urls=(url,), timeout_ms=WAIT_S * 1000) is found


def test_one_that_answers_is_enough(switch):
    with web(200) as url:
        assert healthy(hosts=(NOWHERE,), ping=switch.command, urls=(url,))


def test_the_broker_goes_and_comes_with_the_network(switch, tmp_path, caplog):
    caplog.set_level(logging.INFO, "broker")
    options = BrokerOptions(
        store=FileStoreOptions(
            bindings=bindings_options(tmp_path / "bindings"),
            messages=messages_options(tmp_path / "journal", journal_type="NIO"),
            lock_timeout_ms=0,
        ),
        acceptors=(AcceptorOptions(host="127.0.0.1", port=0),),
    )
    check = NetworkCheck(hosts=(NOWHERE,), ping=switch.command, period_ms=20)

    async def connect(broker):
        _, writer = await asyncio.open_connection("127.0.0.1", broker.acceptors[0].port)
        writer.close()

    async def serve():
        lines = Lines()
        logging.getLogger("broker").addHandler(lines)
        try:
            broker = WatchedBroker(options, check)
            starting = asyncio.ensure_future(broker.start())
            await lines.until("AMQ201001: Network is unhealthy: the broker does not run")
            switch.set(is_up=True)
            await starting
            await connect(broker)
            switch.set(is_up=False)
            await lines.until("AMQ201001: Network is unhealthy: the broker stops")
            # Another one may have the store meanwhile.
            await lines.until("stopped")
            assert not broker.acceptors
            switch.set(is_up=True)
            await lines.until("AMQ221007")
            await connect(broker)
            # A stop counts while it is away, too.
            switch.set(is_up=False)
            await lines.until("AMQ201001: Network is unhealthy: the broker stops")
            await lines.until("stopped")
            await broker.stop()
            assert broker.failure is None
        finally:
            logging.getLogger("broker").removeHandler(lines)

    asyncio.run(serve())


def test_a_store_that_another_broker_took_meanwhile_ends_it(switch, tmp_path, caplog):
    caplog.set_level(logging.INFO, "broker")

    def options():
        return BrokerOptions(
            store=FileStoreOptions(
                bindings=bindings_options(tmp_path / "bindings"),
                messages=messages_options(tmp_path / "journal", journal_type="NIO"),
                lock_timeout_ms=0,
            ),
            acceptors=(),
        )

    always = NetworkCheck()
    check = NetworkCheck(hosts=(NOWHERE,), ping=switch.command, period_ms=20)
    switch.set(is_up=True)

    async def serve():
        lines = Lines()
        logging.getLogger("broker").addHandler(lines)
        try:
            isolated, other = WatchedBroker(options(), check), WatchedBroker(options(), always)
            await isolated.start()
            switch.set(is_up=False)
            await lines.until("stopped")
            await other.start()
            switch.set(is_up=True)
            async with asyncio.timeout(WAIT_S):
                error = await isolated.failed()
            await isolated.stop()
            await other.stop()
            return str(error)
        finally:
            logging.getLogger("broker").removeHandler(lines)

    assert "in use by another journal of this process" in asyncio.run(serve())
