"""A colocated node of ours and one of Artemis's: each runs the backup of the other one."""

import pytest

from tests.broker.colocated_nodes import exchange, free_ports, node_in
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.fetched import PeerUnavailableError

pytestmark = pytest.mark.slow

POLICY = """<ha-policy><shared-store><colocated>
<request-backup>true</request-backup>
<backup-request-retry-interval>500</backup-request-retry-interval>
<max-backups>1</max-backups>
<backup-port-offset>{offset}</backup-port-offset>
<primary/><backup/>
</colocated></shared-store></ha-policy>
<security-enabled>false</security-enabled>
<acceptors>"""


@pytest.fixture
def pair(tmp_path):
    """Ours and Artemis's, not started."""
    (port, _), offset = free_ports(2)
    try:
        theirs = ArtemisBroker(
            tmp_path,
            (
                *("--nio", "--no-autotune", "--clustered", "--cluster-user", "peer"),
                *("--cluster-password", "secret", "--staticCluster", f"tcp://127.0.0.1:{port}"),
            ),
        )
    except PeerUnavailableError as missing:
        pytest.skip(str(missing))
    theirs.change_configuration(
        ("<acceptors>", POLICY.format(offset=offset)),
        (
            "<addresses>",
            '<addresses><address name="q"><anycast><queue name="q"/></anycast></address>',
        ),
    )
    ours = node_in(tmp_path / "node", port, [theirs.port], offset)
    yield ours, theirs
    ours.ensure_ended()
    theirs.kill()


def test_each_asks_the_other_one_and_serves_in_its_place(pair):
    ours, theirs = pair
    ours.start()
    ours.serves()
    theirs.start()
    # Theirs has asked ours, and ours theirs.
    ours.says("AMQ221050")
    ours.says("runs the backup of this one")
    ours.says("AMQ221031: backup announced")
    exchange(theirs.port, send=["theirs 1", "theirs 2"])
    exchange(ours.port, send=["ours"])

    theirs.kill()
    ours.says("colocated_backup_1 serves in place of node")
    assert exchange(ours.port + ours.offset, receive=1) == ["theirs 1"]

    theirs.start()
    ours.says("backup: failing-back -> waiting")
    assert exchange(theirs.port, receive=1) == ["theirs 2"]
    # The backup of ours ended with their process: ours has asked once more.
    ours.says("runs the backup of this one", 2)

    ours.ensure_ended()
    assert exchange(theirs.port + ours.offset, receive=1) == ["ours"]
