"""Brokers in this process with broadcast and discovery groups on the loopback interface."""

import asyncio
import contextlib
import socket

import pytest

from broker.config.load import load
from broker.options.from_config import broker_options
from broker.server.server import Broker

LOOPBACK = "127.0.0.1"
GROUP = "231.7.7.7"
WAIT_S = 30


def has_multicast():
    """Whether a datagram to a group comes back on the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.settimeout(1)
        membership = socket.inet_aton(GROUP) + socket.inet_aton(LOOPBACK)
        try:
            heard.bind((GROUP, 0))
            heard.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sent:
                interface = socket.inet_aton(LOOPBACK)
                sent.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
                sent.sendto(b"?", (GROUP, heard.getsockname()[1]))
            return heard.recv(1) == b"?"
        except OSError:
            return False


needs_multicast = pytest.mark.skipif(
    not has_multicast(), reason="this machine has no multicast on its loopback interface"
)


def free_udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def udp(port):
    """The elements of a group, by UDP."""
    return (
        f"<local-bind-address>{LOOPBACK}</local-bind-address>"
        f"<group-address>{GROUP}</group-address><group-port>{port}</group-port>"
    )


def configuration(folder, name, endpoint, port, more="", period_ms=50, refresh_ms=10_000):
    """The options of a broker that is in a cluster."""
    path = folder / f"{name}.xml"
    path.write_text(f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
      <name>{name}</name><persistence-enabled>false</persistence-enabled>
      <security-enabled>false</security-enabled>
      <acceptors><acceptor name="a">tcp://{LOOPBACK}:{port}</acceptor></acceptors>
      <connectors><connector name="own">tcp://{LOOPBACK}:{port}</connector></connectors>
      <cluster-user>u</cluster-user><cluster-password>p</cluster-password>
      <broadcast-groups><broadcast-group name="bg">{endpoint}
        <broadcast-period>{period_ms}</broadcast-period><connector-ref>own</connector-ref>
      </broadcast-group></broadcast-groups>
      <discovery-groups><discovery-group name="dg">{endpoint}
        <refresh-timeout>{refresh_ms}</refresh-timeout></discovery-group></discovery-groups>
      <cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
        <discovery-group-ref discovery-group-name="dg"/></cluster-connection>
      </cluster-connections>{more}</core></configuration>""")
    return broker_options(load(path))


@contextlib.asynccontextmanager
async def started(options):
    broker = Broker(options)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - nothing tells of most of them.
            await asyncio.sleep(0.01)


def heard(broker):
    """The node ids that a broker hears."""
    return {entry.node_id for entry in broker.cluster.discovery_groups["dg"].entries}
