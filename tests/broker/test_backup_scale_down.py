"""A backup with <scale-down>: what its primary had goes to another node, once; then it waits.

Three nodes, each a process: a primary, its backup, and the one that gets everything.
"""

import signal

import pytest

from tests.broker.colocated_nodes import Node, exchange
from tests.servers import free_port

# Processes that start and load, three of them and more.
pytestmark = pytest.mark.slow

COUNT = 30
XML = """<core>
<name>{name}</name>
<journal-type>NIO</journal-type><journal-file-size>100K</journal-file-size>
<bindings-directory>{data}/bindings</bindings-directory>
<journal-directory>{data}/journal</journal-directory>
<paging-directory>{data}/paging</paging-directory>
<large-messages-directory>{data}/large</large-messages-directory>
<acceptors><acceptor name="a">tcp://127.0.0.1:{port}</acceptor></acceptors>
<connectors>
<connector name="own">tcp://127.0.0.1:{port}</connector>
<connector name="other">tcp://127.0.0.1:{other}</connector>
</connectors>
<cluster-user>peer</cluster-user><cluster-password>secret</cluster-password>
<security-enabled>false</security-enabled>
<cluster-connections><cluster-connection name="c">
<connector-ref>own</connector-ref><retry-interval>50</retry-interval>
<static-connectors><connector-ref>other</connector-ref></static-connectors>
</cluster-connection></cluster-connections>
<ha-policy>{policy}</ha-policy>
<address-settings><address-setting match="#">
<redistribution-delay>-1</redistribution-delay>
</address-setting></address-settings>
<addresses><address name="q"><anycast><queue name="q"/></anycast></address></addresses>
</core>
"""
POLICY = """<shared-store><{role}>
<failover-on-shutdown>{failover}</failover-on-shutdown>{more}
</{role}></shared-store>"""
SCALE_DOWN = """<scale-down>
<connectors><connector-ref>other</connector-ref></connectors>
</scale-down>"""


@pytest.fixture
def started(tmp_path):
    """`started(name, port, other, policy, data)`: a node that runs."""
    made = []

    def start(name, port, other, policy, data):
        folder = tmp_path / name
        (folder / "etc").mkdir(parents=True, exist_ok=True)
        text = XML.format(name=name, port=port, other=other, policy=policy, data=tmp_path / data)
        (folder / "etc/broker.xml").write_text(text)
        node = Node(folder, port, 0)
        node.start()
        made.append(node)
        return node

    yield start
    for node in made:
        node.ensure_ended()


@pytest.mark.parametrize("failover", ["true", "false"])
def test_a_backup_hands_all_that_the_primary_had_to_another_node_and_waits(
    started, tmp_path, failover
):
    first, second, third = (free_port() for _ in range(3))
    more = POLICY.format(role="backup", failover=failover, more=SCALE_DOWN)
    target = started("target", third, first, "<primary-only/>", "target-data")
    target.serves()
    policy = POLICY.format(role="primary", failover=failover, more="")
    primary = started("primary", first, third, policy, "data")
    primary.serves()
    backup = started("backup", second, third, more, "data")
    backup.says("AMQ221031: backup announced")
    texts = [str(one) for one in range(COUNT)]
    exchange(first, send=texts)

    primary.end(signal.SIGKILL)

    backup.says("AMQ221063: scale-down is complete")
    backup.says("not active, or was stopped in good order (state P)")
    assert (tmp_path / "data/journal/server.lock").read_bytes()[:1] == b"P"
    assert exchange(third, send=["last"], receive=COUNT + 1) == [*texts, "last"]
    # The primary comes back to an empty store, and the backup is its backup as before.
    again = started("primary", first, third, policy, "data")
    again.serves()
    exchange(first, send=["new"])
    assert exchange(first, receive=1) == ["new"]
    assert backup.log.read_text().count("waiting -> activating") == 1
    assert again.end() == 0
    assert backup.end() == 0
    assert target.end() == 0
