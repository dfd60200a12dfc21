"""Every attribute and operation of Artemis's control interfaces is there, with every overload.

artemis_controls.tsv has those of Artemis 2.44, made by tests/interop/java/Controls.java, whose
comment has the command.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from broker.management.acceptor_control import AcceptorControl
from broker.management.address_control import AddressControl
from broker.management.bridge_control import BridgeControl
from broker.management.broadcast_group_control import BroadcastGroupControl
from broker.management.broker_control import BrokerControl
from broker.management.divert_control import DivertControl
from broker.management.queue_control import QueueControl

TABLE = Path(__file__).with_name("artemis_controls.tsv")
CONTROLS = {
    "ActiveMQServerControl": BrokerControl,
    "AddressControl": AddressControl,
    "QueueControl": QueueControl,
    "AcceptorControl": AcceptorControl,
    "DivertControl": DivertControl,
    "BridgeControl": BridgeControl,
    "BroadcastGroupControl": BroadcastGroupControl,
}
# Operations of what this version does not have: clusters.
CLUSTERS = {"freezeReplication", "setFailoverOnServerShutdown"}
# Names that no interface of 2.44 has: of newer versions, of its implementing classes, and ours.
BEYOND = {
    # sendQueueInfoToQueue is one of its class, and not of its interface.
    "ActiveMQServerControl": {
        *("getDuplicateCount", "getJMSBridgeNames", "sendQueueInfoToQueue"),
        *("getStrandedMessagesAsJSON", "queryTraceAsJSON"),
        "getLeftClusterConnectionNames",
        *("addDuplicateIds", "beginScaleDown", "isScaledDown", "updateDuplicateIdCache"),
        # With a second signature.
        "scaleDown",
    },
    "QueueControl": {"retryMessages", "queryReasonsAsJSON"},
    "AddressControl": set(),
    "AcceptorControl": {"getConnectionCount"},
    "DivertControl": set(),
    "BridgeControl": {"getStatusAsJSON", "pause", "resume"},
    "BroadcastGroupControl": set(),
}


class Row(NamedTuple):
    control: str
    kind: str
    returned: str
    name: str
    types: tuple[str, ...]


def rows():
    for line in TABLE.read_text().splitlines():
        control, kind, returned, name, types = line.split("\t")
        yield Row(control, kind, returned, name, () if types == "-" else tuple(types.split(",")))


ROWS = list(rows())


def test_the_table_is_whole():
    counts = dict.fromkeys(CONTROLS, 0)
    for row in ROWS:
        counts[row.control] += 1

    assert counts == {
        "ActiveMQServerControl": 217,
        "AddressControl": 42,
        "QueueControl": 111,
        "AcceptorControl": 7,
        "DivertControl": 11,
        "BridgeControl": 22,
        "BroadcastGroupControl": 10,
    }


@pytest.mark.parametrize("control", CONTROLS)
def test_every_signature_of_artemis_is_there(control):
    there = CONTROLS[control].signatures()
    wanted = {
        (row.name, row.types) for row in ROWS if row.control == control and row.name not in CLUSTERS
    }

    assert sorted(wanted - there) == []


@pytest.mark.parametrize("control", CONTROLS)
def test_what_is_beyond_artemis_is_known(control):
    wanted = {(row.name, row.types) for row in ROWS if row.control == control}

    assert {name for name, _ in CONTROLS[control].signatures() - wanted} == BEYOND[control]
