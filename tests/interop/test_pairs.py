"""Pairs on one store: ours with Artemis's JMS client, and one broker of ours with one of Artemis.

The backup announces itself to the primary, so clients learn of it there; a primary that comes back
announces itself likewise, without which an Artemis backup keeps its place.
"""

import asyncio
import contextlib
import shutil
import signal
import time
from dataclasses import dataclass

import pytest

from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from tests.broker.history.pair import SHORT_LEASE
from tests.interop.artemis import PeerUnavailableError, jars
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous
from tests.interop.jms import test_tables_swapped
from tests.interop.jms.client import JmsClient
from tests.interop.our_broker import OurBroker
from tests.servers import free_port

pytestmark = pytest.mark.slow

WAIT_S = 120
COUNT = 200
USER = ("--cluster-user", "peer", "--cluster-password", "secret")
FOR_EVER = "reconnectAttempts=-1&initialConnectAttempts=-1&retryInterval=50"
# Failovers and failbacks of a mixed pair, each way; `effort` of them.
ROUNDS = 10
# Of a pair of ours with JMS clients; `effort` of them. So many messages in each keep the clients
# at work to the end.
JMS_ROUNDS = 20
JMS_COUNT = COUNT * 20
# Each starts a JVM for a broker of Artemis, or takes a database's lease, again and again.
STORES = ["files", "postgresql", pytest.param("mariadb", marks=pytest.mark.soak)]
DRIVERS = {"postgresql": "org.postgresql.Driver", "mariadb": "org.mariadb.jdbc.Driver"}


@dataclass(frozen=True)
class Store:
    """Where a pair keeps its data.

    Attributes:
        kind: "files", or that of a database.
        ours, theirs: words of `create`, ours and Artemis's.
        our_changes, their_changes: of broker.xml.
    """

    kind: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    our_changes: tuple[tuple[str, str], ...] = ()
    their_changes: tuple[tuple[str, str], ...] = ()


def folder_store(folder):
    words = "--data", str(folder / "data")
    return Store("files", words, ("--nio", *words))


@pytest.fixture
def store(request, tmp_path, new_database):
    """Of the kind that the test is parametrised with (indirect)."""
    kind = request.param
    if kind == "files":
        return folder_store(tmp_path)
    url = new_database(kind).jdbc_url
    theirs = "--jdbc", "--jdbc-driver-class-name", DRIVERS[kind], "--jdbc-connection-url", url
    lease = test_tables_swapped.SHORT_LEASE
    return Store(kind, ("--jdbc", url), theirs, (SHORT_LEASE,), lease)


def member_options(role, other_port):
    """Words of `create`, ours and Artemis's: they have the same names."""
    return (
        *("--shared-store", *(("--backup",) if role == "backup" else ())),
        *("--failover-on-shutdown", *USER),
        *("--static-cluster", f"tcp://127.0.0.1:{other_port}"),
    )


class OurMember(OurBroker):
    def __init__(self, folder, store, role, port, other_port):
        folder.mkdir()
        options = (*store.ours, *member_options(role, other_port), "--port", str(port))
        super().__init__(folder, *store.our_changes, options=options, starts=False)
        self.port = port

    def begin(self):
        self.process = self.broker("run", self.folder)

    def broker(self, *words):
        """A command of `broker`, begun; what it says is in log()."""
        return self._broker(*words)

    def kill(self):
        self.end(signal.SIGKILL)


class ArtemisMember(ArtemisBroker):
    def __init__(self, folder, store, role, other_port):
        folder.mkdir()
        options = *store.theirs, "--no-autotune", *member_options(role, other_port)
        super().__init__(folder, options)
        self.change_configuration(*store.their_changes)
        if store.kind in DRIVERS:
            for driver in jars().glob(f"{store.kind}-*.jar"):
                shutil.copy(driver, folder / "broker" / "lib")

    def begin(self):
        """Started in a thread: it returns when it serves, and a backup does so late."""
        self._begin()

    def ensure_ended(self):
        self.kill()


class Both:
    """A primary and a backup, and where clients find them."""

    def __init__(self, primary, backup):
        self.primary, self.backup = primary, backup
        places = ",".join(f"tcp://127.0.0.1:{one.port}" for one in (primary, backup))
        self.uri = f"({places})?{FOR_EVER}"
        self.login = {"user": OurBroker.USER, "password": OurBroker.PASSWORD}


def our_pair(folder, store):
    ports = free_port(), free_port()
    return Both(
        OurMember(folder / "primary", store, "primary", ports[0], ports[1]),
        OurMember(folder / "backup", store, "backup", ports[1], ports[0]),
    )


def mixed_pair(folder, store, our_role):
    port = free_port()
    their_role = "backup" if our_role == "primary" else "primary"
    theirs = ArtemisMember(folder / their_role, store, their_role, port)
    ours = OurMember(folder / our_role, store, our_role, port, theirs.port)
    return Both(ours, theirs) if our_role == "primary" else Both(theirs, ours)


@contextlib.contextmanager
def ended(pair):
    try:
        yield pair
    finally:
        for one in (pair.primary, pair.backup):
            one.ensure_ended()


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - nothing tells of it.
            await asyncio.sleep(0.05)


def backup_of(client):
    """The port of the backup that the client was told of."""
    for member in client.topology.members:
        if member.backup is not None:
            return member.backup.port
    return None


def works_at(client, port):
    (connection,) = client.connections
    return connection.is_connected and connection.connector.port == port


async def send_all(producer, numbers):
    """Each once: what a lost connection leaves open is sent again with its duplicate id."""
    for number in numbers:
        while True:
            try:
                await producer.send(str(number), duplicate_id=f"n.{number}")
            except ClientError:
                await asyncio.sleep(0.05)
            else:
                break


async def over_and_back(pair, rounds):
    """The primary is killed, the backup serves; the primary comes back, and serves again."""
    pair.primary.begin()
    async with AsyncClient(pair.uri, **pair.login) as client:
        session = await client.session()
        await session.create_queue("pair.q")
        producer = session.producer("pair.q")
        pair.backup.begin()
        outages_s = []
        for first in range(0, rounds * 2 * COUNT, 2 * COUNT):
            await until(lambda: backup_of(client) == pair.backup.port)
            sending = asyncio.ensure_future(send_all(producer, range(first, first + COUNT)))
            await until(lambda: works_at(client, pair.primary.port))
            began_s = time.monotonic()
            await asyncio.to_thread(pair.primary.kill)
            await until(lambda: works_at(client, pair.backup.port))
            outages_s.append(round(time.monotonic() - began_s, 2))
            await sending
            sending = asyncio.ensure_future(
                send_all(producer, range(first + COUNT, first + 2 * COUNT))
            )
            pair.primary.begin()
            await until(lambda: works_at(client, pair.primary.port))
            await sending
        consumer = await session.consumer("pair.q")
        wanted = rounds * 2 * COUNT
        found = [int((await consumer.receive(WAIT_S)).text) for _ in range(wanted)]
        assert await consumer.receive_now() is None
    assert found == list(range(wanted))
    return outages_s


@pytest.mark.parametrize("our_role", ["primary", "backup"])
@pytest.mark.parametrize("store", STORES, indirect=True)
def test_a_broker_of_artemis_is_the_other_one_of_the_pair(
    tmp_path, store, our_role, figures, effort
):
    try:
        pair = mixed_pair(tmp_path, store, our_role)
    except PeerUnavailableError as missing:
        pytest.skip(str(missing))
    with ended(pair):
        outages_s = asyncio.run(over_and_back(pair, effort(ROUNDS)))
    figures(f"mixed pair on {store.kind}, ours is {our_role}", outage_s=outages_s)


@asynchronous
async def told_of_backup_and_at_work(pair, queue):
    """Until a client of the primary is told of the backup, and others send and take."""
    async with AsyncClient(f"tcp://127.0.0.1:{pair.primary.port}?{FOR_EVER}", **pair.login) as one:
        session = await one.session()
        await until(lambda: backup_of(one) == pair.backup.port)
        await _until_consumed(session, queue)


@asynchronous
async def at_work(member, login, queue):
    """Until others take from a queue of the one that serves."""
    async with AsyncClient(f"tcp://127.0.0.1:{member.port}", **login) as one:
        await _until_consumed(await one.session(), queue, may_be_over=True)


async def _until_consumed(session, queue, *, may_be_over=False):
    """Until it has a consumer, or nothing is left: who has taken all has gone."""
    async with asyncio.timeout(WAIT_S):
        while True:
            found = await session.query_queue(queue)
            if found.exists and (found.consumer_count or (may_be_over and not found.message_count)):
                return
            await asyncio.sleep(0.05)


def checked(pair):
    """What `broker check node` says of both, at the primary."""
    uri = f"tcp://127.0.0.1:{pair.primary.port}"
    login = ("--user", pair.login["user"], "--password", pair.login["password"])
    words = ("check", "node", "--primary", "--backup", "--peers", "2", "--url", uri, *login)
    return pair.primary.broker(*words).wait(WAIT_S)


def over_and_back_again(pair, queue):
    """Kill the primary, and have it back; ms until the other one served, each time.

    Each serves until the clients are there: on a busy machine it would end before they come.
    """
    outages_ms = []
    for taking, step in (
        (pair.backup, pair.primary.kill),
        (pair.primary, pair.primary.begin),
    ):
        before = taking.log().count("serving at")
        began_s = time.monotonic()
        step()
        deadline_s = began_s + WAIT_S
        while taking.log().count("serving at") == before:
            assert time.monotonic() < deadline_s, taking.log()[-3000:]
            time.sleep(0.01)
        outages_ms.append(round((time.monotonic() - began_s) * 1000))
        at_work(taking, pair.login, queue)
    return outages_ms


@pytest.mark.parametrize(
    "store",
    ["files", *(pytest.param(one, marks=pytest.mark.soak) for one in DRIVERS)],
    indirect=True,
)
def test_a_jms_client_that_knows_the_primary_goes_over_to_the_backup_and_back(
    tmp_path, store, figures, effort
):
    rounds = effort(JMS_ROUNDS)
    count = JMS_COUNT * rounds
    pair = our_pair(tmp_path, store)
    with ended(pair), contextlib.ExitStack() as stack:
        pair.primary.start()
        pair.backup.begin()
        try:
            producer, consumer = (
                JmsClient(pair.primary.port, **pair.login, ha="true") for _ in range(2)
            )
        except PeerUnavailableError as missing:
            pytest.skip(str(missing))
        for client in (producer, consumer):
            stack.callback(client.close)
        options = "&reconnectAttempts=-1&retryInterval=50&callFailoverTimeout=-1"
        producer.begin("produce", "q", count, options, "id")
        consumer.begin("consume", "q", count - 1, options)
        told_of_backup_and_at_work(pair, "q")
        status = checked(pair)
        outages_ms = [over_and_back_again(pair, "q") for _ in range(rounds)]
        producer.end()
        found = [int(text.rstrip("!")) for text in consumer.end().split()]

    figures(f"pair on {store.kind} with JMS clients", failover_ms=[one for one, _ in outages_ms])
    figures(f"pair on {store.kind} with JMS clients", failback_ms=[one for _, one in outages_ms])
    assert status == 0, pair.primary.log()[-1000:]
    # What was delivered, and not known to be acknowledged when the broker died, comes again.
    assert list(dict.fromkeys(found)) == list(range(count))
