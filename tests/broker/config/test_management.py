"""What a configuration says of management, of the web server, and what it says in vain."""

import pytest

from broker.config import load
from broker.config.bootstrap import render_bootstrap_xml
from broker.config.errors import ConfigError
from broker.config.unsupported import NOTIFICATION_PLUGIN, without_effect
from broker.options import ManagementOptions, NotificationOptions, WebOptions
from broker.options.from_config import broker_options


@pytest.fixture
def configured(tmp_path):
    def make(core, bootstrap=None):
        etc = tmp_path / "etc"
        etc.mkdir(exist_ok=True)
        (etc / "broker.xml").write_text(
            '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">'
            f"<persistence-enabled>false</persistence-enabled>{core}</core></configuration>"
        )
        if bootstrap is not None:
            (etc / "bootstrap.xml").write_text(
                f'<broker xmlns="http://activemq.apache.org/schema">{bootstrap}</broker>'
            )
        return load(etc / "broker.xml")

    return make


def test_the_defaults_are_artemis(configured):
    options = broker_options(configured(""))

    assert options.management == ManagementOptions(address="activemq.management")
    assert options.notifications == NotificationOptions(address="activemq.notifications")
    assert options.web == ()
    assert options.wildcards.routing_enabled


def test_addresses_permissions_and_what_is_told(configured):
    keys = ("CONNECTION", "ADDRESS", "DELIVERED", "EXPIRED")
    properties = "".join(
        f'<property key="SEND_{key}_NOTIFICATIONS" value="{"true" if key != "EXPIRED" else "no"}"/>'
        for key in keys
    )
    config = configured(
        "<management-address>m</management-address>"
        "<management-notification-address>n</management-notification-address>"
        "<management-message-rbac>true</management-message-rbac>"
        "<management-rbac-prefix>p</management-rbac-prefix>"
        "<suppress-session-notifications>true</suppress-session-notifications>"
        "<jmx-management-enabled>true</jmx-management-enabled>"
        "<wild-card-routing-enabled>false</wild-card-routing-enabled>"
        '<metrics><jvm-memory>true</jvm-memory><plugin class-name="x.Y"/></metrics>'
        f'<broker-plugins><broker-plugin class-name="{NOTIFICATION_PLUGIN}">{properties}'
        "</broker-plugin></broker-plugins>"
    )

    options = broker_options(config)

    assert (options.management.address, options.management.rbac_prefix) == ("m", "p")
    assert options.notifications == NotificationOptions(
        address="n", sessions=False, connections=True, addresses=True, deliveries=True
    )
    assert not options.wildcards.routing_enabled
    assert without_effect(config) == []


def test_what_changes_nothing_is_named(configured):
    config = configured(
        '<grouping-handler name="g"><type>LOCAL</type></grouping-handler>'
        "<max-disk-usage>90</max-disk-usage>"
        '<broker-plugins><broker-plugin class-name="x.Y"/></broker-plugins>'
        '<address-settings><address-setting match="#">'
        "<redistribution-delay>0</redistribution-delay><max-delivery-attempts>3"
        "</max-delivery-attempts></address-setting></address-settings>"
        '<acceptors><acceptor name="a">tcp://h:1?verifyHost=true;useEpoll=true</acceptor></acceptors>'
    )

    assert without_effect(config) == [
        *("<grouping-handler>", "<broker-plugins>"),
        "verifyHost of acceptor a",
    ]


def test_a_grouping_handler_takes_effect_in_a_cluster(configured):
    config = configured(
        '<connectors><connector name="c">tcp://h:1</connector></connectors>'
        '<grouping-handler name="g"><type>REMOTE</type></grouping-handler><cluster-connections>'
        '<cluster-connection name="m"><connector-ref>c</connector-ref><static-connectors/>'
        "</cluster-connection></cluster-connections>"
    )

    assert without_effect(config) == []


@pytest.mark.parametrize(
    ("bootstrap", "found"),
    [
        ('<server configuration="${artemis.instance.etc.uri}broker.xml"/>', []),
        ('<web path="web"><binding uri="http://localhost:8161"/></web>', [("localhost", 8161)]),
        ('<web bind="http://0.0.0.0:${port:99}" path="web"/>', [("0.0.0.0", 99)]),
        (
            '<web><binding uri="http://[::1]:0"/><binding uri="http://a"/></web>',
            [("::1", 0), ("a", 80)],
        ),
    ],
)
def test_the_web_server_is_where_bootstrap_says(configured, bootstrap, found):
    options = broker_options(configured("", bootstrap))

    assert options.web == tuple(WebOptions(host=host, port=port) for host, port in found)


@pytest.mark.parametrize("host", ["localhost", "::1", "[::1]"])
def test_what_is_written_of_the_web_server_is_read_again(configured, tmp_path, host):
    configured("")
    (tmp_path / "etc/bootstrap.xml").write_text(render_bootstrap_xml(host, 81))

    (found,) = broker_options(load(tmp_path / "etc/broker.xml")).web

    assert found == WebOptions(host=host.strip("[]"), port=81)


@pytest.mark.parametrize("uri", ["", "https://localhost:1", "http://localhost:x", "tcp://a:1"])
def test_a_binding_that_cannot_be_is_one_line(configured, uri):
    config = configured("", f'<web><binding uri="{uri}"/></web>')

    with pytest.raises(ConfigError, match=r"bootstrap\.xml:1: web binding"):
        broker_options(config)
