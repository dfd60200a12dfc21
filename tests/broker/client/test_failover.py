"""Our clients on a pair: what becomes of their sessions when the backup takes over."""

import asyncio
import contextlib
import dataclasses
import queue
import re
import threading
from pathlib import Path

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.blocking import Client
from broker.client.errors import BrokerRefused, CallInterrupted, ClientError
from broker.config import BrokerConfig
from broker.config.cluster import ClusterConfig, ClusterConnection
from broker.config.cluster_connections import StaticConnectors
from broker.config.core import SecurityConfig
from broker.config.transport import parse_transport
from broker.errors import ErrorCode
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from jdbcstore.options import DatabaseStoreOptions
from tests.broker.bridges.two_brokers import until
from tests.interop.asynchronous import asynchronous
from tests.pages import fences
from tests.servers import free_port

WAIT_S = 60
GUIDE = Path(__file__).resolve().parents[3] / "docs/guide/failover.md"
UNKNOWN = (ErrorCode.TRANSACTION_OUTCOME_UNKNOWN, ErrorCode.TRANSACTION_ROLLED_BACK)


class Pair:
    """Both in this process: on a database they see each other by its leases."""

    def __init__(self, folder, *, is_cluster=False, restart_backup=True):
        self.ports = free_port(), free_port()
        self.uri = "({})?reconnectAttempts=-1&retryInterval=20".format(
            ",".join(f"tcp://127.0.0.1:{port}" for port in self.ports)
        )
        self.primary, self.backup = (
            Broker(
                BrokerOptions(
                    name=role,
                    store=DatabaseStoreOptions(
                        connection_url=f"sqlite:///{folder}/broker.db",
                        lock_expiration_ms=600_000,
                        lock_renew_period_ms=50,
                    ),
                    acceptors=(AcceptorOptions(host="127.0.0.1", port=port),),
                    is_backup=role == "backup",
                    restart_backup=restart_backup,
                    shares_store=True,
                    failover_on_shutdown=True,
                    configuration=self._cluster(port) if is_cluster else BrokerConfig(),
                )
            )
            for role, port in zip(("primary", "backup"), self.ports, strict=True)
        )
        self.waiting = None

    def _cluster(self, own_port):
        """Each tells the other one of itself."""
        other_port = next(port for port in self.ports if port != own_port)
        return BrokerConfig(
            cluster=ClusterConfig(
                connectors=tuple(
                    parse_transport(name, f"tcp://127.0.0.1:{port}")
                    for name, port in (("own", own_port), ("other", other_port))
                ),
                cluster_connections=(
                    ClusterConnection(
                        name="pair",
                        connector_ref="own",
                        retry_interval_ms=20,
                        max_retry_interval_ms=20,
                        static_connectors=StaticConnectors(connector_refs=("other",)),
                    ),
                ),
            ),
            security=SecurityConfig(cluster_user="peer", cluster_password="secret"),
        )

    async def start(self):
        await self.primary.start()
        self.waiting = asyncio.ensure_future(self.backup.start())

    async def fail_over(self):
        await self.primary.stop()
        await asyncio.wait_for(self.waiting, WAIT_S)

    async def fail_back(self):
        """The primary comes back; once it serves, the backup waits again."""
        await asyncio.wait_for(self.primary.start(), WAIT_S)
        assert not self.backup.is_active
        assert self.backup.lifecycle.is_backup

    async def stop(self):
        await self.backup.stop()
        await self.primary.stop()
        self.waiting.cancel()
        await asyncio.gather(self.waiting, return_exceptions=True)


@contextlib.asynccontextmanager
async def running(folder, **options):
    pair = Pair(folder, **options)
    await pair.start()
    try:
        yield pair
    finally:
        await pair.stop()


@asynchronous
async def test_a_client_that_knows_one_of_the_two_goes_over_and_back(tmp_path):
    """The other one has announced itself as the backup, whichever of the two that is."""
    async with running(tmp_path, is_cluster=True) as pair:
        uri = f"tcp://127.0.0.1:{pair.ports[0]}?reconnectAttempts=-1&retryInterval=20"
        async with AsyncClient(uri) as client:
            session = await client.session()
            await session.create_queue("q")
            (connection,) = client.connections

            async def knows_backup():
                while True:
                    member = client.topology.member(connection.node_id)
                    if member and member.backup and member.backup.port == pair.ports[1]:
                        return
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(knows_backup(), WAIT_S)
            # Nothing but what it was told leads it there.
            client._named = ()
            for port, change in ((pair.ports[1], pair.fail_over), (pair.ports[0], pair.fail_back)):
                back = asyncio.Event()
                connection.on_reconnected = back.set
                await change()
                await asyncio.wait_for(back.wait(), WAIT_S)
                assert connection.connector.port == port
            await session.producer("q").send("once more")


@asynchronous
async def test_a_client_knows_the_one_that_gave_its_place_before_that_waits_again(tmp_path):
    """A primary that is killed at once must not leave a client that knows no other one."""
    async with running(tmp_path, is_cluster=True, restart_backup=False) as pair:
        await pair.fail_over()
        await asyncio.wait_for(pair.primary.start(), WAIT_S)
        async with AsyncClient(f"tcp://127.0.0.1:{pair.ports[0]}") as client:
            await client.session()
            (member,) = client.topology.members

    assert member.primary.port == pair.ports[0]
    assert member.backup.port == pair.ports[1]


@asynchronous
async def test_sessions_go_over_and_back_with_what_is_stored(tmp_path):
    async with running(tmp_path) as pair, AsyncClient(pair.uri) as client:
        session = await client.session(AckMode.CLIENT, ack_batch_size=0, block_on_acknowledge=True)
        connection = client.connections[0]
        lost, back = [], asyncio.Event()
        connection.on_failure, connection.on_reconnected = lost.append, back.set
        await session.create_queue("q")
        producer = session.producer("q")
        consumer = await session.consumer("q")
        for text in ("a", "b"):
            await producer.send(text)
        first = await consumer.receive(WAIT_S)
        await first.acknowledge()
        await consumer.receive(WAIT_S)

        await pair.fail_over()

        await asyncio.wait_for(back.wait(), WAIT_S)
        assert lost
        assert connection.connector.port == pair.ports[1]
        again = await consumer.receive(WAIT_S)
        assert (again.text, again.is_redelivered) == ("b", True)
        await again.acknowledge()
        await producer.send("c")
        assert (await consumer.receive(WAIT_S)).text == "c"

        back.clear()
        await pair.fail_back()

        await asyncio.wait_for(back.wait(), WAIT_S)
        assert connection.connector.port == pair.ports[0]
        assert (await consumer.receive(WAIT_S)).text == "c"


@asynchronous
async def test_a_transaction_that_was_open_is_rolled_back_and_its_retry_is_exact(tmp_path):
    async with running(tmp_path) as pair, AsyncClient(pair.uri) as client:
        session = await client.session(AckMode.TRANSACTED)
        await session.create_queue("q")
        producer = session.producer("q")

        async def unit():
            for number in range(3):
                await producer.send(str(number), duplicate_id=f"unit.{number}")
            await session.commit()

        for number in range(3):
            await producer.send(str(number), duplicate_id=f"unit.{number}")
        await pair.fail_over()
        with pytest.raises((ClientError, BrokerRefused)) as caught:
            await session.commit()
        assert caught.value.code in UNKNOWN

        await unit()
        # Once more, as after a lost answer: nothing of it counts.
        with pytest.raises((ClientError, BrokerRefused)):
            await unit()

        async with AsyncClient(pair.uri) as other:
            taken = await other.session()
            assert (await taken.query_queue("q")).message_count == 3


@asynchronous
async def test_a_client_without_attempts_is_told_and_ends(tmp_path):
    async with running(tmp_path) as pair:
        uri = pair.uri.replace("reconnectAttempts=-1", "reconnectAttempts=0")
        async with AsyncClient(uri) as client:
            session = await client.session()
            ended = asyncio.Event()
            client.connections[0].on_ended = lambda error: ended.set()

            await pair.fail_over()

            await asyncio.wait_for(ended.wait(), WAIT_S)
            with pytest.raises(ClientError):
                await session.create_queue("q")


@asynchronous
async def test_a_blocking_client_goes_over(tmp_path):
    async with running(tmp_path) as pair:

        def begin():
            client = Client(pair.uri)
            session = client.session()
            session.create_queue("q")
            session.producer("q").send("before")
            return client, session

        client, session = await asyncio.to_thread(begin)
        await pair.fail_over()

        def go_on():
            with client, session.consumer("q") as consumer:
                session.producer("q").send("after")
                return [consumer.receive(WAIT_S).text for _ in range(2)]

        assert await asyncio.to_thread(go_on) == ["before", "after"]


@asynchronous
async def test_a_blocking_client_is_told_of_each_step(tmp_path):
    async with running(tmp_path) as pair:
        told = queue.Queue()

        def begin():
            client = Client(pair.uri)
            client.session()
            (connection,) = client.connections
            connection.on_failure = lambda error: told.put(("lost", error))
            connection.on_reconnected = lambda: told.put(("back", connection.port))
            connection.on_ended = lambda error: told.put(("ended", error))
            return client

        client = await asyncio.to_thread(begin)
        await pair.fail_over()
        first, error = await asyncio.to_thread(told.get, timeout=WAIT_S)
        second = await asyncio.to_thread(told.get, timeout=WAIT_S)

        assert first == "lost"
        assert isinstance(error, ClientError)
        assert second == ("back", pair.ports[1])
        assert client.connections[0].is_connected
        await asyncio.to_thread(client.close)
        # An application that closes is not told of it.
        assert told.empty()


@asynchronous
async def test_a_blocking_client_is_told_when_no_attempt_is_left(tmp_path):
    async with running(tmp_path) as pair:
        told = queue.Queue()

        def begin():
            client = Client(pair.uri.replace("reconnectAttempts=-1", "reconnectAttempts=0"))
            connection = client.connect()
            connection.on_failure = connection.on_ended = told.put
            return client

        client = await asyncio.to_thread(begin)
        await pair.fail_over()

        for _ in range(2):
            assert isinstance(await asyncio.to_thread(told.get, timeout=WAIT_S), ClientError)
        await asyncio.to_thread(client.close)


@asynchronous
async def test_what_an_application_raises_when_it_is_told_holds_nothing_up(tmp_path, monkeypatch):
    async with running(tmp_path) as pair, AsyncClient(pair.uri) as client:
        session = await client.session()
        await session.create_queue("q")
        raised = []
        monkeypatch.setattr(
            asyncio.get_running_loop(),
            "call_exception_handler",
            lambda context: raised.append(context["exception"]),
        )
        error = RuntimeError("of the application")

        def fail(reason):
            raise error

        client.connections[0].on_failure = fail
        await pair.fail_over()

        await session.producer("q").send("arrives")
        assert raised == [error]


@asynchronous
async def test_a_temporary_queue_is_there_again_and_ends_with_its_client(tmp_path):
    async with running(tmp_path) as pair, AsyncClient(pair.uri) as other:
        async with AsyncClient(pair.uri) as client:
            session = await client.session()
            await session.create_queue("answers", temporary=True, durable=False)
            consumer = await session.consumer("answers")
            sending = await other.session()
            back = [asyncio.Event(), asyncio.Event()]
            for one, event in zip((client, other), back, strict=True):
                one.connections[0].on_reconnected = event.set

            await pair.fail_over()
            for event in back:
                await asyncio.wait_for(event.wait(), WAIT_S)

            await sending.producer("answers").send("an answer")
            assert (await consumer.receive(WAIT_S)).text == "an answer"
            assert (await sending.query_queue("answers")).temporary
        async with asyncio.timeout(WAIT_S):
            while (await sending.query_queue("answers")).exists:  # noqa: ASYNC110 - of the broker.
                await asyncio.sleep(0.01)


@asynchronous
async def test_a_call_waits_for_another_broker_no_longer_than_its_timeout(tmp_path):
    async with running(tmp_path) as pair:
        # One that does not come: the backup knows that the primary was stopped in good order.
        pair.primary.options = dataclasses.replace(pair.primary.options, failover_on_shutdown=False)
        async with AsyncClient(f"{pair.uri}&callFailoverTimeout=50") as client:
            session = await client.session()
            await session.create_queue("q")
            lost = asyncio.Event()
            client.connections[0].on_failure = lambda error: lost.set()
            await pair.primary.stop()
            await asyncio.wait_for(lost.wait(), WAIT_S)

            with pytest.raises(CallInterrupted, match="did not come back in time"):
                await session.producer("q").send("nowhere")

            # The connection goes on to be tried.
            back = asyncio.Event()
            client.connections[0].on_reconnected = back.set
            await pair.primary.start()
            await asyncio.wait_for(back.wait(), WAIT_S)
            await session.producer("q").send("arrives")


@asynchronous
async def test_the_program_of_the_guide_is_told_of_a_failover(tmp_path, capsys):
    (program,) = [one for one in fences(GUIDE) if one.language == "python"]
    text = "\n".join(program.lines)
    async with running(tmp_path) as pair:
        for name, port in zip("ab", pair.ports, strict=True):
            text = text.replace(f"{name}:61616", f"127.0.0.1:{port}")
        stop = threading.Event()

        def run():
            exec(text, {"work": lambda session: stop.wait(WAIT_S)})

        program = asyncio.ensure_future(asyncio.to_thread(run))
        await until(lambda: pair.primary.clients.sessions)

        await pair.fail_over()

        said = []

        def is_back():
            said.append(capsys.readouterr().out)
            return "back at" in "".join(said)

        # Its sessions are there a moment before it is told so.
        await until(is_back)
        stop.set()
        await program
    said.append(capsys.readouterr().out)
    assert re.fullmatch(r"lost: .*\nback at 127.0.0.1\n", "".join(said)), "as the comments say"
