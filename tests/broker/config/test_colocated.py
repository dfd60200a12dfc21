"""<colocated>: what is refused, and what a backup in the process of another node is made of."""

import logging
from pathlib import Path

import pytest

from broker.config.errors import ConfigError
from broker.config.ha import SharedStoreBackup, SharedStorePrimary
from broker.config.load import load
from broker.options.colocated import Folders, backup_configuration
from broker.options.from_config import broker_options
from broker.protocols.peer import WantedBackup

XML = """<core>
<name>host</name>
<acceptors>
<acceptor name="core">tcp://0.0.0.0:61616?protocols=CORE</acceptor>
<acceptor name="any">tcp://0.0.0.0:0</acceptor>
</acceptors>
<connectors>
<connector name="own">tcp://a:61616?sslEnabled=true</connector>
<connector name="other">tcp://b:61616</connector>
<connector name="upgraded">tcp://a:80?httpUpgradeEnabled=true</connector>
<connector name="default">tcp://a</connector>
</connectors>
{cluster}
<ha-policy><{kind}><colocated>{colocated}</colocated></{kind}></ha-policy>
{more}
</core>"""
CLUSTER = """<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
<static-connectors><connector-ref>other</connector-ref></static-connectors>
</cluster-connection></cluster-connections>"""
EXCLUDES = "<excludes><connector-ref>other</connector-ref></excludes>"
OTHER = Folders(*(Path("/mnt/other") / one for one in ("j", "b", "l", "p")))


@pytest.fixture
def read(tmp_path):
    def load_colocated(colocated, *, cluster=CLUSTER, kind="shared-store", more=""):
        path = tmp_path / "etc/broker.xml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(XML.format(colocated=colocated, cluster=cluster, kind=kind, more=more))
        return load(path)

    return load_colocated


def test_a_colocated_primary_is_a_primary_of_a_pair(read):
    config = read(
        f"<request-backup>true</request-backup>{EXCLUDES}"
        "<primary><failover-on-shutdown>true</failover-on-shutdown></primary>"
    )

    options = broker_options(config)

    assert options.shares_store
    assert not options.is_backup
    assert options.failover_on_shutdown
    assert options.store.lock_timeout_ms == -1
    assert options.colocated.request_backup
    assert options.colocated.backup == SharedStoreBackup()


def test_without_elements_it_has_artemis_s_defaults(read):
    policy = read("").cluster.ha_policy

    assert not policy.request_backup
    assert policy.backup_request_retries == -1
    assert policy.backup_request_retry_interval_ms == 5000
    assert policy.max_backups == 1
    assert policy.backup_port_offset == 100
    assert policy.excludes == ()
    assert policy.primary == SharedStorePrimary()
    assert not policy.is_replicated


DATABASE = """<store><database-store>
<jdbc-connection-url>sqlite:///broker.db</jdbc-connection-url></database-store></store>"""
ASKS = f"<request-backup>true</request-backup>{EXCLUDES}"
LOCK = "<node-manager-lock-directory>lock</node-manager-lock-directory>"
SCALE_DOWN = "<backup><scale-down><group-name>g</group-name></scale-down></backup>"


@pytest.mark.parametrize(
    ("colocated", "how", "words"),
    [
        ("", {"kind": "replication"}, "<replication> of <ha-policy>"),
        ("", {"more": DATABASE}, "needs a store in a folder"),
        ("", {"more": "<persistence-enabled>false</persistence-enabled>"}, "in a folder"),
        (ASKS, {"more": LOCK}, "<node-manager-lock-directory> with <request-backup>"),
        ("<request-backup>true</request-backup>", {"cluster": ""}, "needs a <cluster-connection>"),
    ],
)
def test_what_cannot_work_is_refused(read, colocated, how, words):
    config = read(colocated, **how)

    with pytest.raises(ConfigError) as refused:
        broker_options(config)

    assert words in str(refused.value)


def test_a_connector_that_is_not_there_is_refused(read):
    with pytest.raises(ConfigError, match="no connector is called 'othr'"):
        read("<excludes><connector-ref>othr</connector-ref></excludes>")


def test_a_lock_directory_of_a_node_that_only_runs_backups_is_its_own(read):
    config = read(EXCLUDES, more=LOCK)

    backup = backup_configuration(config, config.cluster.ha_policy, 1, OTHER)

    assert broker_options(config).store.lock_directory == config.path("lock")
    assert broker_options(backup).store.lock_directory is None


def test_a_connector_of_another_node_that_would_move_is_warned_of(read, caplog):
    with caplog.at_level(logging.WARNING, "broker"):
        broker_options(read(""))
        assert "connector other of cluster-connection c is not in <excludes>" in caplog.text
        caplog.clear()
        broker_options(read(EXCLUDES))
    assert "excludes" not in caplog.text


def test_a_backup_scales_down_to_the_node_whose_process_it_runs_in(read):
    config = read(f"{EXCLUDES}{SCALE_DOWN}")

    backup = backup_configuration(config, config.cluster.ha_policy, 1, OTHER)

    assert backup.cluster.scale_down_policy.target == config.cluster.connectors[0]
    # The node itself does not scale down.
    assert config.cluster.scale_down_policy is None


@pytest.mark.parametrize("number", [1, 3])
def test_a_backup_has_its_host_s_configuration_but_name_folders_and_ports(read, number):
    config = read(
        f"{EXCLUDES}<backup-port-offset>10</backup-port-offset>"
        "<backup><allow-failback>false</allow-failback></backup>",
        more="<journal-min-files>7</journal-min-files><journal-retention-directory "
        'period="7" unit="DAYS">r</journal-retention-directory>',
    )

    backup = backup_configuration(config, config.cluster.ha_policy, number, OTHER)
    options = broker_options(backup)

    assert options.name == f"colocated_backup_{number}"
    assert options.is_backup
    assert options.colocated is None
    assert not options.allow_failback
    assert options.store.messages.directory == OTHER.journal
    assert options.store.messages.min_files == 7
    assert options.store.messages.retention_directory is None
    assert options.store.bindings.directory == OTHER.bindings
    assert options.store.large_messages == OTHER.large_messages
    assert options.store.paging == OTHER.paging
    assert [one.port for one in options.acceptors] == [61616 + 10 * number, 0]
    assert {one.name: one.port for one in backup.cluster.connectors} == {
        "own": 61616 + 10 * number,
        "other": 61616,
        "upgraded": 80,
        "default": 61616 + 10 * number,
    }
    assert backup.cluster.connectors[0].parameters == {"sslEnabled": "true"}
    # Its host, which no connector of the configuration names any more.
    (connection,) = backup.cluster.cluster_connections
    assert connection.members == (config.cluster.connectors[0],)


def test_a_port_that_is_too_high_is_refused(read):
    config = read(f"{EXCLUDES}<backup-port-offset>4000</backup-port-offset>")

    with pytest.raises(ConfigError, match="the port 65616, which is more than 65535"):
        backup_configuration(config, config.cluster.ha_policy, 1, OTHER)


def test_folders_are_told_whole_and_absolute(read):
    config = read("")
    own = Folders.of(config)

    assert own.journal == config.instance / "data/journal"
    assert all(one.is_absolute() for one in own)
    assert Folders.wanted(WantedBackup(0, None, *map(str, own))) == own
    assert Folders.wanted(WantedBackup(0, None, "/j", "/b", "/l", None)) is None
    assert Folders.wanted(WantedBackup(0, None, "j", "/b", "/l", "/p")) is None
