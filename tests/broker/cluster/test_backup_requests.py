"""A node of this process runs backups of others; their primaries are locks of other processes."""

import asyncio
import contextlib
import logging
import subprocess
import sys
import uuid

import pytest

from broker.client import AsyncClient
from broker.cluster.backup_requester import BackupRequester, Offer
from broker.cluster.connectors import told_connector
from broker.cluster.introduction import Identity
from broker.cluster.topology import ClusterTopology
from broker.config.cluster_connections import ClusterConnection
from broker.config.ha import Colocated
from broker.config.load import load
from broker.discovery.topology import Departure, Member
from broker.environment import Environment
from broker.options.colocated import Folders
from broker.options.from_config import broker_options
from broker.protocols.peer import WantedBackup
from broker.server.colocated_backups import ColocatedBackups
from broker.server.lifecycle import HaState
from broker.server.server import Broker
from tests.broker.cluster.mesh import until
from tests.interop.asynchronous import asynchronous
from tests.servers import free_port

HOST = """<core>
<name>host</name>
<journal-type>NIO</journal-type><journal-file-size>100K</journal-file-size>
<acceptors><acceptor name="a">tcp://127.0.0.1:{port}</acceptor></acceptors>
<connectors><connector name="own">tcp://127.0.0.1:{port}</connector></connectors>
<cluster-user>peer</cluster-user><cluster-password>secret</cluster-password>
<security-enabled>false</security-enabled>
<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
</cluster-connection></cluster-connections>
{policy}
<addresses><address name="q"><anycast><queue name="q"/></anycast></address></addresses>
</core>"""
COLOCATED = """<ha-policy><shared-store><colocated>
<max-backups>{most}</max-backups><backup-port-offset>{offset}</backup-port-offset>
</colocated></shared-store></ha-policy>"""
# What a primary of another process has of its folder while it serves.
PRIMARY = """
import fcntl, pathlib, sys, time, uuid
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True)
(folder / "server.lock").write_bytes(b"L00" + uuid.UUID(sys.argv[2]).bytes)
lock = (folder / "serverlock.1").open("wb")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("serves", flush=True)
time.sleep(3600)
"""


def host_of(folder, *, most=1, offset=1, policy=None):
    """A broker that runs backups, not started, and its port."""
    port = free_port()
    path = folder / "etc/broker.xml"
    path.parent.mkdir(parents=True)
    wanted = COLOCATED.format(most=most, offset=offset) if policy is None else policy
    path.write_text(HOST.format(port=port, policy=wanted))
    return Broker(broker_options(load(path))), port


@contextlib.contextmanager
def primary_in(folder):
    """The id of a node that serves on a folder, in another process, and that process."""
    node_id = str(uuid.uuid4())
    process = subprocess.Popen(
        [sys.executable, "-c", PRIMARY, str(folder / "journal"), node_id], stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        yield node_id, process
    finally:
        process.kill()
        process.communicate()


def folders_of(folder):
    return Folders(*(folder / one for one in ("journal", "bindings", "large", "paging")))


class Asking:
    """A primary that asks."""

    def __init__(self, node_id, folder, *, retries=-1):
        clock = Environment().clock
        self.topology = ClusterTopology(node_id, None, clock.now_ms)
        self.requester = BackupRequester(
            Colocated(
                request_backup=True,
                backup_request_retries=retries,
                backup_request_retry_interval_ms=50,
            ),
            connection=ClusterConnection(
                name="c", connector_ref="own", discovery_group_ref=None, static_connectors=None
            ),
            topology=self.topology,
            identity=Identity(node_id, None, "peer", "secret", self.topology.event_id_after),
            folders=folders_of(folder),
            environment=Environment(),
        )

    def knows(self, broker):
        """Have it know a broker as a member."""
        (own,) = broker.options.configuration.cluster.connectors
        self.topology.told(Member(broker.node_id, 1, told_connector(own)))

    async def __aenter__(self):
        self.requester.start()
        return self

    async def __aexit__(self, *error):
        await self.requester.stop()


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "broker")
    return caplog


@asynchronous
async def test_it_asks_until_a_node_is_there_whose_backup_serves_and_gives_its_place_back(
    tmp_path, lines
):
    offset = 7
    host, port = host_of(tmp_path / "host", offset=offset)
    with primary_in(tmp_path / "data") as (node_id, primary):
        async with Asking(node_id, tmp_path / "data") as asking:
            await until(lambda: "of 0 other nodes none takes one" in lines.text)
            await host.start()
            try:
                asking.knows(host)
                await until(lambda: asking.requester.granted_by == host.node_id)
                (backup,) = host.colocation.backups.brokers
                await until(lambda: backup.lifecycle.ha_state is HaState.WAITING)
                assert backup.options.name == "colocated_backup_1"
                # Faults of the loop are its host's.
                handler = asyncio.get_running_loop().get_exception_handler()
                assert handler is not None

                primary.kill()
                await until(lambda: backup.is_active)
                assert backup.node_id == node_id
                async with AsyncClient(f"tcp://127.0.0.1:{port + offset}") as client:
                    session = await client.session()
                    await session.producer("q").send("here", durable=True)

                # The primary asks for its place; it is none that takes the lock.
                state = tmp_path / "data/journal/server.lock"
                state.write_bytes(b"F" + state.read_bytes()[1:])
                await until(lambda: backup.lifecycle.ha_state is HaState.WAITING)
                assert host.is_active
                assert host.colocation.backups.holds(node_id)
            finally:
                await host.stop()
    assert host.colocation.backups.count == 0
    assert backup.lifecycle.ha_state is HaState.STOPPED
    assert "backups of other nodes in this process stop with it: 1" in lines.text


@asynchronous
async def test_beyond_max_backups_a_node_refuses_and_one_that_has_a_backup_gets_no_second_one(
    tmp_path, lines
):
    host, _ = host_of(tmp_path / "host")
    await host.start()
    try:
        with (
            primary_in(tmp_path / "one") as (one, _),
            primary_in(tmp_path / "two") as (two, _),
        ):
            async with Asking(one, tmp_path / "one") as first:
                first.knows(host)
                await until(lambda: first.requester.granted_by == host.node_id)
            async with Asking(two, tmp_path / "two", retries=2) as second:
                second.knows(host)
                await until(lambda: "after 3 requests (backup-request-retries)" in lines.text)
                assert second.requester.granted_by is None
            # As a primary that is back, in a process that knows of nothing.
            async with Asking(one, tmp_path / "one") as again:
                again.knows(host)
                await until(lambda: again.requester.granted_by == host.node_id)
            assert host.colocation.backups.count == 1

            # One that was asked beside the vote, as by two at once.
            answers = []
            for count in (0, 1):
                wanted = WantedBackup(count, two, *map(str, folders_of(tmp_path / "two")))
                host.colocation.backups.request(wanted, answers.append)
                await until(lambda count=count: len(answers) == count + 1)
            assert answers == [False, False]
            assert "<max-backups> is 1" in lines.text
    finally:
        await host.stop()


@asynchronous
async def test_it_asks_again_when_the_node_that_runs_its_backup_has_left(tmp_path, lines):
    hosts = [host_of(tmp_path / name)[0] for name in ("first", "second")]
    for host in hosts:
        await host.start()
    try:
        with primary_in(tmp_path / "data") as (node_id, _):
            async with Asking(node_id, tmp_path / "data") as asking:
                asking.knows(hosts[0])
                await until(lambda: asking.requester.granted_by == hosts[0].node_id)
                # As its announcement, which nothing takes back.
                (own,) = hosts[0].options.configuration.cluster.connectors
                asking.topology.told(Member(node_id, 2, None, told_connector(own)))
                asking.knows(hosts[1])
                asking.topology.told(Departure(hosts[0].node_id, 1))

                await until(lambda: asking.requester.granted_by == hosts[1].node_id)
    finally:
        await asyncio.gather(*(one.stop() for one in hosts))
    assert f"node {hosts[0].node_id}, which ran the backup of this one, has left" in lines.text


@asynchronous
async def test_a_backup_of_before_is_not_replaced_by_one_of_another_node(tmp_path):
    host, _ = host_of(tmp_path / "host")
    await host.start()
    try:
        with primary_in(tmp_path / "data") as (node_id, _):
            asking = Asking(node_id, tmp_path / "data")
            (own,) = host.options.configuration.cluster.connectors
            asking.topology.told(Member(node_id, 2, None, told_connector(own)))
            asking.knows(host)
            assert not await asking.requester._ask()
            assert host.colocation.backups.count == 0
    finally:
        await host.stop()


@asynchronous
async def test_a_node_without_colocated_says_no(tmp_path, lines):
    host, _ = host_of(tmp_path / "host", policy="")
    await host.start()
    try:
        asking = Asking(str(uuid.uuid4()), tmp_path / "data")
        asking.knows(host)
        assert not await asking.requester._ask()
        (member,) = [one for one in asking.topology.members if one.node_id == host.node_id]
        offer = Offer(0, host.node_id, member.primary)
        assert not await asking.requester._request(offer)
    finally:
        await host.stop()
    assert "runs none of others: it has no <colocated>" in lines.text


def none_is_made(config):
    raise AssertionError("a backup begins")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"journal": None}, "has not told where its data lie"),
        ({"paging": "relative"}, "has not told where its data lie"),
        ({"journal": "{place}/nowhere"}, "has no data of a node here"),
        ({"journal": "{place}/own/data/journal"}, "is the journal of this node itself"),
        ({"node_id": str(uuid.uuid4())}, "the folder has to be the same one on both machines"),
        ({"backup_count": 1}, "was told of 1 backups here, and now there are 0"),
    ],
)
@asynchronous
async def test_what_cannot_work_is_refused(tmp_path, lines, changes, words):
    path = tmp_path / "own/etc/broker.xml"
    path.parent.mkdir(parents=True)
    path.write_text(HOST.format(port=1, policy=COLOCATED.format(most=1, offset=1)))
    config = load(path)
    backups = ColocatedBackups(config, config.cluster.ha_policy, none_is_made)
    with primary_in(tmp_path / "data") as (node_id, _):
        wanted = WantedBackup(0, node_id, *map(str, folders_of(tmp_path / "data")))
        given = {
            name: value.format(place=tmp_path) if isinstance(value, str) else value
            for name, value in changes.items()
        }
        answers = []
        backups.request(wanted._replace(**given), answers.append)
        await until(lambda: answers)
    assert answers == [False]
    assert words in lines.text


@asynchronous
async def test_a_primary_of_the_same_process_is_refused_a_backup(tmp_path, lines):
    host, _ = host_of(tmp_path / "host")
    other, _ = host_of(tmp_path / "other")
    await asyncio.gather(host.start(), other.start())
    try:
        wanted = WantedBackup(0, other.node_id, *map(str, Folders.of(other.options.configuration)))
        answers = []
        host.colocation.backups.request(wanted, answers.append)
        await until(lambda: answers)
        assert answers == [False]
        assert other.is_active
    finally:
        await asyncio.gather(host.stop(), other.stop())
    assert "runs in this process" in lines.text
