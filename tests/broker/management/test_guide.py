"""The guide names every operation that there is, and no other."""

import re
from pathlib import Path

import pytest

from broker.management.acceptor_control import AcceptorControl
from broker.management.address_control import AddressControl
from broker.management.bridge_control import BridgeControl
from broker.management.broadcast_group_control import BroadcastGroupControl
from broker.management.broker_control import BrokerControl
from broker.management.cluster_connection_control import ClusterConnectionControl
from broker.management.connection_router_control import ConnectionRouterControl
from broker.management.discovery_group_control import DiscoveryGroupControl
from broker.management.divert_control import DivertControl
from broker.management.jms_bridge_control import JMSBridgeResource
from broker.management.metrics import SERIES_MAX
from broker.management.queue_control import QueueControl

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "management.md"


@pytest.mark.parametrize(
    ("resource", "control"),
    [
        ("broker", BrokerControl),
        ("queue.NAME", QueueControl),
        ("address.NAME", AddressControl),
        ("divert.NAME", DivertControl),
        ("acceptor.NAME", AcceptorControl),
        ("bridge.NAME", BridgeControl),
        ("jmsbridge.NAME", JMSBridgeResource),
        ("broadcastgroup.NAME", BroadcastGroupControl),
        ("discoverygroup.NAME", DiscoveryGroupControl),
        ("clusterconnection.NAME", ClusterConnectionControl),
        ("connectionrouter.NAME", ConnectionRouterControl),
    ],
)
def test_every_operation_is_named(resource, control):
    section = re.search(rf"### `{re.escape(resource)}`\n\n(.*?)\n\n", GUIDE.read_text(), re.DOTALL)

    assert set(re.findall(r"\w+", section[1])) == control.names()


def test_how_many_series_there_are_is_said():
    assert f"the {SERIES_MAX} with most in them" in GUIDE.read_text()
