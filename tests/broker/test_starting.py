"""A broker starts in two steps: it answers probes before its lock is free, and then is active."""

import asyncio
import contextlib
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from broker.client import AsyncClient
from broker.errors import BrokerError
from broker.management.registry import Resources
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions, WebOptions
from broker.server import activation, active, loading
from broker.server.lifecycle import ServerState
from broker.server.server import Broker
from broker.sessions.session import SessionOptions
from broker.settings.queue_defaults import QueueRequest
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from broker.transport.acceptor import Acceptor, AcceptorOptions
from jdbcstore import Database, NodeManager
from jdbcstore.options import DatabaseStoreOptions
from journal.errors import JournalClosed
from tests.broker.management.test_web import get
from tests.interop.asynchronous import asynchronous
from tests.servers import free_port
from tests.sighup import default_sighup

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60
KINDS = ("files", "tables")
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
XML = """<core>
<name>waits</name>
{store}
<acceptors><acceptor name="a">tcp://127.0.0.1:0</acceptor></acceptors>
<security-enabled>false</security-enabled>
</core>
"""
STORES = {
    "files": """<journal-type>NIO</journal-type><journal-file-size>100K</journal-file-size>
<journal-lock-acquisition-timeout>-1</journal-lock-acquisition-timeout>
<bindings-directory>{place}/bindings</bindings-directory>
<journal-directory>{place}/journal</journal-directory>
<paging-directory>{place}/paging</paging-directory>
<large-messages-directory>{place}/large</large-messages-directory>""",
    "tables": """<store><database-store>
<jdbc-connection-url>sqlite:///{place}/broker.db</jdbc-connection-url>
<jdbc-lock-expiration>600000</jdbc-lock-expiration>
<jdbc-lock-renew-period>50</jdbc-lock-renew-period>
</database-store></store>""",
}
# What `broker run` says while another one has the lock.
SAYS = {"files": "waiting for the lock", "tables": "waiting for the lease"}


def store_of(folder, kind):
    if kind == "files":
        return FileStoreOptions(
            bindings=bindings_options(folder / "bindings"),
            messages=messages_options(folder / "journal", journal_type="NIO"),
            lock_timeout_ms=-1,
        )
    # A machine that stands still for a while is not a failure.
    return DatabaseStoreOptions(
        connection_url=f"sqlite:///{folder}/broker.db",
        lock_expiration_ms=600_000,
        lock_renew_period_ms=50,
    )


def options_of(folder, kind, **changes):
    given = BrokerOptions(
        name="b",
        store=store_of(folder, kind),
        acceptors=(AcceptorOptions(host="127.0.0.1", port=0),),
        web=(WebOptions(host="127.0.0.1", port=0),),
    )
    return replace(given, **changes)


@contextlib.contextmanager
def held(folder, kind):
    """Let another one have the lock of a store."""
    if kind == "tables":
        database = Database(store_of(folder, kind))
        node = NodeManager(database)
        node.start()
        node.start_primary()
        try:
            yield
        finally:
            node.stop()
            database.close()
        return
    (folder / "journal").mkdir(exist_ok=True)
    # A process of its own: within one the system sees no conflict.
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "journal" / "serverlock.1")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout.readline() == "held\n"
        yield
    finally:
        other.communicate()


@contextlib.contextmanager
def slow_reading(monkeypatch):
    """Let the reading of data wait until what this gives is set."""
    read, goes_on = loading.StoredData._read, threading.Event()

    def slow(data, wait):
        assert goes_on.wait(WAIT_S)
        return read(data, wait)

    monkeypatch.setattr(loading.StoredData, "_read", slow)
    try:
        yield goes_on
    finally:
        goes_on.set()


async def until(broker, why):
    """Wait until that is why the broker is not ready."""
    async with asyncio.timeout(WAIT_S):
        # Asked for as a probe would: nothing else tells of a step.
        while why not in (broker.lifecycle.not_ready or "ready") or not broker.web:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def probed(broker):
    """What /livez and /readyz answer, and which of the metrics is told."""
    port = broker.web[0].port
    alive, ready, metrics = [
        (await get(port, path))[::2] for path in ("/livez", "/readyz", "/metrics?all")
    ]
    assert metrics[0] == 200
    active = 'artemis_active{broker="b"} 1.0' in metrics[1]
    assert active or 'artemis_active{broker="b"} 0.0' in metrics[1]
    rows = "artemis_message_count{" in metrics[1]
    return alive[0], ready[0], ready[1].strip(), active, rows


def managed(broker):
    """What management says: isStarted, isActive, isBackup."""
    control = Resources(broker).find("broker")
    return tuple(control.invoke(name, ()) for name in ("isStarted", "isActive", "isBackup"))


async def is_open(port):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def create_queue(broker):
    broker.parts.administration.create_queue(
        QueueRequest(name="q", address="q", routing_type=RoutingType.ANYCAST)
    )


@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_each_step_is_told_by_probes_metrics_and_management(tmp_path, monkeypatch, kind):
    broker = Broker(options_of(tmp_path, kind, graceful_shutdown_timeout=-1))
    assert broker.lifecycle.not_ready == "not started"
    with slow_reading(monkeypatch) as goes_on:
        with held(tmp_path, kind):
            starting = asyncio.ensure_future(broker.start())
            await until(broker, "waiting for the lock")
            assert await probed(broker) == (
                *(200, 503, "not ready: waiting for the lock on its store", False, False),
            )
            assert managed(broker) == (False, False, False)
            assert broker.lifecycle.state is ServerState.STARTING
        await until(broker, "loading")
        assert await probed(broker) == (200, 503, "not ready: loading its data", False, False)
        assert managed(broker) == (False, False, False)
        port, web = broker.acceptors[0].port, broker.web[0].port
        assert port
        assert not await is_open(port)
        goes_on.set()
        await starting

    create_queue(broker)
    assert await probed(broker) == (200, 200, "ready", True, True)
    assert managed(broker) == (True, True, False)

    _, client = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(WAIT_S):
        while not broker.acceptors[0].connections:  # noqa: ASYNC110 - it has no event.
            await asyncio.sleep(0.001)
    stopping = asyncio.ensure_future(broker.stop())
    await until(broker, "stopping")
    # Those that are there may stay: it is active, and takes no more.
    assert await probed(broker) == (200, 503, "not ready: stopping", True, True)
    assert managed(broker) == (False, True, False)
    assert not await is_open(port)
    broker.stop_waiting()
    await stopping
    client.close()
    assert managed(broker) == (False, False, False)
    assert broker.lifecycle.not_ready == "stopped"
    assert not await is_open(web)


@asynchronous
async def test_while_it_recovers_it_says_so(tmp_path, monkeypatch):
    told = []
    recover = active.recover
    broker = Broker(options_of(tmp_path, "files"))

    def look(*found, **parts):
        told.append((broker.lifecycle.not_ready, managed(broker), broker.lifecycle.is_loaded))
        return recover(*found, **parts)

    monkeypatch.setattr(active, "recover", look)
    await broker.start()
    await broker.stop()

    assert told == [("recovering its queues", (False, False, False), False)]


@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_a_backup_that_waits_is_started_and_not_active(tmp_path, kind):
    first = Broker(options_of(tmp_path, kind, failover_on_shutdown=True, web=()))
    await first.start()
    if kind == "files":
        # Its state stays "active"; within one process the system sees no conflict.
        await first.stop()
    backup = Broker(options_of(tmp_path, kind, is_backup=True))
    with held(tmp_path, kind) if kind == "files" else contextlib.nullcontext():
        starting = asyncio.ensure_future(backup.start())
        await until(backup, "waiting for the lock")
        assert managed(backup) == (True, False, True)
        assert (await probed(backup))[:2] == (200, 503)
    await first.stop()
    await asyncio.wait_for(starting, WAIT_S)

    assert managed(backup) == (True, True, False)
    assert (await probed(backup))[:2] == (200, 200)
    await backup.stop()


@asynchronous
async def test_one_that_waits_becomes_active_when_the_other_has_stopped(tmp_path):
    first = Broker(options_of(tmp_path, "tables", web=()))
    await first.start()
    create_queue(first)
    second = Broker(options_of(tmp_path, "tables"))
    starting = asyncio.ensure_future(second.start())
    await until(second, "waiting for the lock")
    assert not starting.done()

    await first.stop()
    await asyncio.wait_for(starting, WAIT_S)

    assert (await probed(second))[:3] == (200, 200, "ready")
    assert "q" in second.parts.postoffice.addresses.queues
    await second.stop()


@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_one_that_waits_stops_at_once(tmp_path, kind):
    broker = Broker(options_of(tmp_path, kind))
    with held(tmp_path, kind):
        starting = asyncio.ensure_future(broker.start())
        await until(broker, "waiting for the lock")
        web = broker.web[0].port

        await asyncio.wait_for(broker.stop(), WAIT_S)

        assert starting.done()
        with pytest.raises(JournalClosed):
            await starting
        assert broker.lifecycle.state is ServerState.STOPPED
        assert broker.failure is None
        assert (broker.web, broker.acceptors) == ([], [])
        assert not await is_open(web)


@asynchronous
async def test_one_that_reads_its_data_stops_and_starts_again(tmp_path, monkeypatch):
    broker = Broker(options_of(tmp_path, "files"))
    with slow_reading(monkeypatch) as goes_on:
        starting = asyncio.ensure_future(broker.start())
        await until(broker, "loading")
        stopping = asyncio.ensure_future(broker.stop())
        await until(broker, "stopping")
        goes_on.set()
        await asyncio.wait_for(stopping, WAIT_S)
        with pytest.raises(JournalClosed):
            await starting
    await broker.start()
    assert broker.is_active
    await broker.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_broker_run_that_waits_stops_when_told_with_status_0(tmp_path, kind):
    (tmp_path / "etc").mkdir()
    store = STORES[kind].format(place=tmp_path)
    (tmp_path / "etc" / "broker.xml").write_text(XML.format(store=store))
    with held(tmp_path, kind):
        running = subprocess.Popen(
            [sys.executable, "-m", "broker.cli.main", "run", str(tmp_path)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=default_sighup,
        )
        try:
            said = []
            for line in running.stderr:
                said.append(line)
                if SAYS[kind] in line:
                    break
            running.send_signal(signal.SIGTERM)
            _, rest = running.communicate(timeout=WAIT_S)
        finally:
            running.kill()
            running.wait()

    assert SAYS[kind] in said[-1], said
    assert "AMQ221000: primary Message Broker is starting: waits" in "".join(said)
    assert running.returncode == 0
    assert "stopped before the broker was active" in rest
    assert "serving" not in rest


@asynchronous
async def test_a_session_that_comes_while_acceptors_open_is_served(tmp_path, monkeypatch):
    """The first listens, the second does not yet: it was "Server not started" once."""
    start, goes_on = Acceptor.start, asyncio.Event()

    async def slow(acceptor):
        if acceptor.options.name == "second":
            assert await asyncio.wait_for(goes_on.wait(), WAIT_S)
        await start(acceptor)

    monkeypatch.setattr(Acceptor, "start", slow)
    acceptors = [
        AcceptorOptions(name=name, host="127.0.0.1", port=0) for name in ("first", "second")
    ]
    broker = Broker(options_of(tmp_path, "files", acceptors=tuple(acceptors)))
    starting = asyncio.ensure_future(broker.start())
    await until(broker, "opening its acceptors")

    async with AsyncClient(f"tcp://127.0.0.1:{broker.acceptors[0].port}") as client:
        session = await client.session()
        await session.create_queue("q")
    ready = (await probed(broker))[1]

    assert (ready, starting.done()) == (503, False)
    goes_on.set()
    await asyncio.wait_for(starting, WAIT_S)
    assert (await probed(broker))[1] == 200
    await broker.stop()


@asynchronous
async def test_nothing_can_connect_before_the_store_says_that_the_broker_serves(
    tmp_path, monkeypatch
):
    tell, goes_on = activation.activate, asyncio.Event()
    is_told = asyncio.Event()

    async def slow(stores, wait):
        is_told.set()
        assert await asyncio.wait_for(goes_on.wait(), WAIT_S)
        await tell(stores, wait)

    monkeypatch.setattr(activation, "activate", slow)
    broker = Broker(options_of(tmp_path, "files"))
    starting = asyncio.ensure_future(broker.start())
    await asyncio.wait_for(is_told.wait(), WAIT_S)

    assert not await is_open(broker.acceptors[0].port)
    goes_on.set()
    await asyncio.wait_for(starting, WAIT_S)
    assert await is_open(broker.acceptors[0].port)
    await broker.stop()


@asynchronous
async def test_a_lost_lease_ends_activity_at_once_and_is_told(tmp_path):
    broker = Broker(options_of(tmp_path, "tables"))
    await broker.start()
    with contextlib.closing(sqlite3.connect(tmp_path / "broker.db", timeout=WAIT_S)) as database:
        database.execute("UPDATE node_manager_store SET HOLDER_ID = 'another' WHERE ID = 1")
        database.commit()

    error = await asyncio.wait_for(broker.failed(), WAIT_S)

    alive, ready, why, active, _ = await probed(broker)
    assert (alive, ready, active) == (200, 503, False)
    assert why == f"not ready: {error}"
    assert managed(broker) == (False, False, False)
    with pytest.raises(BrokerError, match="Server not started"):
        broker.clients.create_session("s", None, SessionOptions(), set())
    await broker.stop()
    assert broker.lifecycle.state is ServerState.STOPPED


@asynchronous
async def test_a_lost_lease_counts_before_the_event_loop_has_a_turn(tmp_path):
    broker = Broker(options_of(tmp_path, "files"))
    await broker.start()
    lease = threading.Thread(target=broker._lost_lease, args=(JournalClosed("lost"),))
    lease.start()
    lease.join()

    # Nothing was awaited since.
    assert not broker.is_active
    assert broker.lifecycle.not_ready == "lost"

    assert str(await asyncio.wait_for(broker.failed(), WAIT_S)) == "lost"
    await broker.stop()


@asynchronous
async def test_a_lease_that_is_lost_while_it_loads_fails_the_start(tmp_path, monkeypatch):
    broker = Broker(options_of(tmp_path, "files"))
    with slow_reading(monkeypatch) as goes_on:
        starting = asyncio.ensure_future(broker.start())
        await until(broker, "loading")
        broker._lost_lease(JournalClosed("lost"))
        goes_on.set()
        with pytest.raises(JournalClosed, match="lost"):
            await asyncio.wait_for(starting, WAIT_S)
    assert broker.web == []


def break_protocols(monkeypatch):
    """Nothing: the options do."""


def break_reading(monkeypatch):
    monkeypatch.setattr(loading.StoredData, "_read", refuse)


def break_recovery(monkeypatch):
    monkeypatch.setattr(active, "recover", refuse)


def break_periodic(monkeypatch):
    monkeypatch.setattr(active, "Periodic", refuse)


def refuse(*_, **how):
    raise BrokerError(1, "no")


@pytest.mark.parametrize("breaks", [break_protocols, break_reading, break_recovery, break_periodic])
@asynchronous
async def test_a_start_that_fails_leaves_no_port_open_and_no_web_server(
    tmp_path, monkeypatch, breaks
):
    web = WebOptions(host="127.0.0.1", port=free_port())
    acceptor = AcceptorOptions(
        host="127.0.0.1",
        port=free_port(),
        protocols=("NONE",) if breaks is break_protocols else (),
    )
    broker = Broker(options_of(tmp_path, "files", acceptors=(acceptor,), web=(web,)))
    with monkeypatch.context() as patched:
        breaks(patched)
        with pytest.raises(BrokerError, match="no"):
            await broker.start()

    assert (broker.web, broker.acceptors) == ([], [])
    assert broker.lifecycle.state is ServerState.STOPPED
    assert broker.lifecycle.not_ready == "stopped"
    assert listening_ports().isdisjoint({web.port, acceptor.port})
    # And no lock.
    await broker.stop()
    other = Broker(options_of(tmp_path, "files", acceptors=(), web=(web,)))
    await other.start()
    assert web.port in listening_ports()
    await other.stop()
    assert web.port not in listening_ports()


def listening_ports():
    """Ports that this process has bound, whether it listens there or not."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            one = socket.socket(fileno=int(entry.name))
            try:
                if one.family == socket.AF_INET:
                    found.add(one.getsockname()[1])
            finally:
                # It is not this function's to close.
                one.detach()
    return found


@asynchronous
async def test_a_stop_may_come_twice_at_once_and_before_a_start(tmp_path):
    broker = Broker(options_of(tmp_path, "files"))
    await broker.stop()
    await broker.start()
    web = broker.web[0].port

    await asyncio.gather(broker.stop(), broker.stop())
    await broker.stop()

    assert broker.lifecycle.state is ServerState.STOPPED
    assert not await is_open(web)


@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_it_starts_again_after_a_stop_and_not_while_it_runs(tmp_path, kind):
    broker = Broker(options_of(tmp_path, kind))
    await broker.start()
    create_queue(broker)
    with pytest.raises(BrokerError, match="started already"):
        await broker.start()
    assert (await probed(broker))[:2] == (200, 200)
    await broker.stop()

    await broker.start()

    assert (await probed(broker))[:2] == (200, 200)
    assert "q" in broker.parts.postoffice.addresses.queues
    assert len(broker.acceptors) == len(broker.web) == 1
    await broker.stop()
