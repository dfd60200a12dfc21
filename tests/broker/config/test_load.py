"""broker.xml: what is read from it, and what is refused with file and line."""

import logging
from dataclasses import fields

import pytest

from broker.client.options import ClientOptions
from broker.config import ConfigError, load
from broker.config.addressing import ComponentRoutingType
from broker.config.cluster import MessageLoadBalancing
from broker.config.ha import Colocated, PrimaryOnly, ReplicationBackup, SharedStorePrimary
from broker.model.address import WildcardConfiguration
from broker.model.routing_type import RoutingType
from broker.security.permission import Permission
from broker.settings.policies import AddressFullPolicy
from journal.masking import mask
from journal.options import JournalType


@pytest.fixture
def read(tmp_path):
    """Loads what stands in <core>, which begins at line 3."""

    def load_core(core, *, file="broker.xml", **options):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            '<?xml version="1.0"?>\n'
            '<configuration xmlns="urn:activemq" xmlns:xi="http://www.w3.org/2001/XInclude">'
            f'<core xmlns="urn:activemq:core">\n{core}\n</core></configuration>\n'
        )
        return load(path, **options)

    return load_core


def refused(read, core, *, line, **options):
    with pytest.raises(ConfigError) as caught:
        read(core, **options)
    text = str(caught.value)
    assert "\n" not in text
    place, _, what = text.partition(": ")
    assert place.endswith(f"broker.xml:{line}")
    return what


def test_scalars_units_and_enumerations(read):
    config = read(
        """<name>alpha</name>
        <persistence-enabled>FALSE</persistence-enabled>
        <global-max-size>2Gi</global-max-size>
        <journal-file-size>10M</journal-file-size>
        <journal-type>NIO</journal-type>
        <max-disk-usage> -1 </max-disk-usage>
        <id-cache-size>0</id-cache-size>
        <management-address/>"""
    )

    assert config.general.name == "alpha"
    assert config.persistence.persistence_enabled is False
    assert config.limits.global_max_size_bytes == 2 << 30
    assert config.persistence.journal_file_size_bytes == 10485760
    assert config.persistence.journal_type is JournalType.NIO
    assert config.limits.max_disk_usage_percent == -1
    assert config.general.id_cache_size == 0
    assert config.management.management_address == ""


def test_addresses_queues_and_settings(read):
    config = read(
        """<addresses>
          <address name="orders"><anycast>
            <queue name="eu" max-consumers="3" exclusive="true" ring-size="9"
                   delay-before-dispatch="50"><filter string="region = 'eu'"/>
              <durable>false</durable><user>me</user></queue>
            <queue name="us"/></anycast></address>
          <address name="news"><multicast/></address>
          <address name="news"><anycast/></address>
        </addresses>
        <address-settings>
          <address-setting match="#"><address-full-policy>BLOCK</address-full-policy>
            <max-size-bytes>1K</max-size-bytes><last-value-queue>true</last-value-queue>
          </address-setting>
          <address-setting match="orders"><dead-letter-address>DLA</dead-letter-address>
          </address-setting>
        </address-settings>
        <wildcard-addresses><delimiter>/</delimiter><any-words>$</any-words>
          <routing-enabled>false</routing-enabled></wildcard-addresses>
        <resource-limit-settings><resource-limit-setting match="me">
          <max-sessions>10</max-sessions></resource-limit-setting></resource-limit-settings>
        <diverts><divert name="d"><address>orders</address>
          <forwarding-address>a,b</forwarding-address><filter string="x > 1"/>
          <exclusive>true</exclusive><routing-type>PASS</routing-type>
          <transformer><class-name>T</class-name><property key="k" value="v"/></transformer>
        </divert></diverts>"""
    )

    eu, us = config.queues
    assert (eu.name, eu.address, eu.routing_type) == ("eu", "orders", RoutingType.ANYCAST)
    assert (eu.max_consumers, eu.exclusive, eu.ring_size) == (3, True, 9)
    assert (eu.filter, eu.durable, eu.user) == ("region = 'eu'", False, "me")
    assert eu.delay_before_dispatch_ms == 50
    assert us.max_consumers is None
    news = config.addressing.addresses[1]
    assert news.routing_types == {RoutingType.ANYCAST}
    settings = dict(config.addressing.address_settings)
    assert settings["#"].address_full_policy is AddressFullPolicy.BLOCK
    assert settings["#"].max_size_bytes == 1024
    assert settings["#"].default_last_value_queue
    assert settings["orders"].given == {"dead_letter_address": "DLA"}
    assert config.addressing.wildcards == WildcardConfiguration(
        delimiter="/", any_words="$", routing_enabled=False
    )
    (limits,) = config.addressing.resource_limits
    assert (limits.match, limits.max_sessions, limits.max_queues) == ("me", 10, -1)
    (divert,) = config.addressing.diverts
    assert (divert.exclusive, divert.filter) == (True, "x > 1")
    assert divert.routing_type is ComponentRoutingType.PASS
    assert divert.transformer.properties == (("k", "v"),)


def test_acceptors_connectors_and_cluster(read):
    config = read(
        """<acceptors><acceptor name="all">tcp://0.0.0.0:61616?protocols=CORE;useEpoll=true
          </acceptor><acceptor name="six">tcp://[::]:5672?keyStorePassword=b%3Bc</acceptor></acceptors>
        <connectors><connector name="self">tcp://host:61616</connector>
          <connector name="backup">tcp://backup:61616</connector></connectors>
        <broadcast-groups><broadcast-group name="bg"><group-address>231.7.7.7</group-address>
          <group-port>9876</group-port><broadcast-period>5000</broadcast-period>
          <connector-ref>self</connector-ref><connector-ref>backup</connector-ref>
        </broadcast-group></broadcast-groups>
        <discovery-groups><discovery-group name="dg"><endpoint name="shared-folder">
          <property key="path" value="/mnt/cluster"/></endpoint></discovery-group>
        </discovery-groups>
        <cluster-connections>
          <cluster-connection name="c"><connector-ref>self</connector-ref>
            <retry-interval-multiplier>1.5</retry-interval-multiplier>
            <forward-when-no-consumers>true</forward-when-no-consumers>
            <static-connectors allow-direct-connections-only="true">
              <connector-ref>backup</connector-ref></static-connectors></cluster-connection>
          <cluster-connection-uri name="u"
            address="multicast://dg?connectorName=self;minLargeMessageSize=1"/>
          <cluster-connection-uri name="s" address="static:(tcp://a:1,tcp://[::1]:2)?connectorName=self&amp;allowDirectConnectionsOnly=true;maxHops=2"/>
        </cluster-connections>
        <bridges><bridge name="b"><queue-name>q</queue-name>
          <discovery-group-ref discovery-group-name="dg"/><user>u</user>
          <password>secret</password></bridge></bridges>
        <grouping-handler name="g"><type>LOCAL</type></grouping-handler>
        <federations><federation name="f"><anything goes="here">x</anything></federation>
        </federations>"""
    )

    cluster = config.cluster
    everything, six = cluster.acceptors
    assert (everything.host, everything.port) == ("0.0.0.0", 61616)
    assert everything.parameters == {"protocols": "CORE", "useEpoll": "true"}
    assert (six.host, six.port, six.parameters) == ("::", 5672, {"keyStorePassword": "b;c"})
    assert cluster.broadcast_groups[0].connector_refs == ("self", "backup")
    assert cluster.discovery_groups[0].endpoint.properties["path"] == "/mnt/cluster"
    connection, discovering, listing = cluster.cluster_connections
    assert connection.load_balancing is MessageLoadBalancing.STRICT
    assert connection.static_connectors.allow_direct_connections_only
    assert connection.retry_interval_multiplier == 1.5
    assert (discovering.discovery_group_ref, discovering.connector_ref) == ("dg", "self")
    assert discovering.min_large_message_size_bytes == 1
    assert [(one.host, one.port) for one in listing.members] == [("a", 1), ("::1", 2)]
    assert listing.static_connectors.allow_direct_connections_only
    assert (listing.max_hops, listing.retry_interval_ms) == (2, 500)
    (bridge,) = cluster.bridges
    assert (bridge.queue_name, bridge.password) == ("q", "secret")
    assert bridge.discovery_group_ref == "dg"
    assert "secret" not in repr(config)
    assert cluster.grouping_handler.timeout_ms == 5000
    anything = config.sections.federations.children[0].children[0]
    assert (anything.attributes, anything.text) == ({"goes": "here"}, "x")


@pytest.mark.parametrize(
    ("policy", "cls"),
    [
        ("<live-only><scale-down><group-name>g</group-name></scale-down></live-only>", PrimaryOnly),
        (
            (
                "<shared-store><master><failover-on-shutdown>true</failover-on-shutdown></master>"
                "</shared-store>"
            ),
            SharedStorePrimary,
        ),
        (
            (
                "<replication><backup><manager><class-name>M</class-name><properties>"
                '<property key="k" value="v"/></properties></manager></backup></replication>'
            ),
            ReplicationBackup,
        ),
        (
            (
                "<replication><colocated><request-backup>true</request-backup><excludes>"
                "<connector-ref>x</connector-ref></excludes><primary/><backup/></colocated>"
                "</replication>"
            ),
            Colocated,
        ),
    ],
)
def test_high_availability(read, policy, cls):
    found = read(f"<ha-policy>{policy}</ha-policy>").cluster.ha_policy

    assert isinstance(found, cls)
    if cls is PrimaryOnly:
        assert found.scale_down.group_name == "g"
    if cls is Colocated:
        assert found.excludes == ("x",)
        assert isinstance(found.backup, ReplicationBackup)


@pytest.mark.parametrize(
    ("elements", "group", "is_enabled"),
    [
        ("<scale-down-group-name>g</scale-down-group-name>", "g", False),
        (
            "<scale-down>true</scale-down><scale-down-group-name>g</scale-down-group-name>",
            "g",
            True,
        ),
        (
            (
                "<ha-policy><primary-only><scale-down><enabled>false</enabled>"
                "<group-name>g</group-name></scale-down></primary-only></ha-policy>"
            ),
            "g",
            False,
        ),
        ("<ha-policy><primary-only><scale-down/></primary-only></ha-policy>", None, True),
        ("", None, False),
    ],
)
def test_a_broker_is_of_a_group_whether_it_scales_down_or_not(read, elements, group, is_enabled):
    cluster = read(elements).cluster

    assert cluster.scale_down_group == group
    assert (cluster.scale_down_policy is not None) == is_enabled


A_TWICE = (
    "<addresses><address name='a'><anycast>{}</anycast></address>"
    "<address name='b'><anycast/></address>"
    "<address name='a'><multicast>{}</multicast></address></addresses>"
)


@pytest.mark.parametrize(
    ("queues", "types"),
    [
        (("", ""), {"MULTICAST"}),
        (("", "<queue name='m'/>"), {"MULTICAST"}),
        (("<queue name='q'/>", ""), {"ANYCAST", "MULTICAST"}),
        (("<queue name='q'/>", "<queue name='m'/>"), {"ANYCAST", "MULTICAST"}),
        (("<queue name='q'/>", "<queue name='q'/>"), {"MULTICAST"}),
    ],
)
def test_an_address_that_stands_twice_has_all_queues_and_the_last_routing_types(
    read, queues, types
):
    config = read(A_TWICE.format(*queues))

    first, other = config.addressing.addresses
    assert (first.name, other.name) == ("a", "b")
    assert {one.name for one in first.routing_types} == types
    named = {name for text in queues for name in "qm" if f"'{name}'" in text}
    assert {one.name for one in config.queues} == named


@pytest.mark.parametrize("policy", ["", "<shared-store/>", "<replication/>"])
def test_an_empty_policy_is_none(read, policy):
    assert read(f"<ha-policy>{policy}</ha-policy>").cluster.ha_policy == PrimaryOnly()


def test_what_stands_twice_counts_as_in_artemis(read, caplog):
    config = read(
        """<connectors><connector name="c">tcp://first:1</connector>
          <connector name="c">tcp://second:2</connector></connectors>
        <address-settings>
          <address-setting match="a"><expiry-address>first</expiry-address></address-setting>
          <address-setting match="a"><expiry-address>second</expiry-address></address-setting>
        </address-settings>
        <security-settings>
          <security-setting match="a"><permission type="send" roles="first"/></security-setting>
          <security-setting match="a"><permission type="send" roles="second"/></security-setting>
        </security-settings>
        <addresses><address name="a"><anycast>
            <queue name="q" max-consumers="1"/><queue name="q" max-consumers="2"/></anycast>
          </address><address name="b"><anycast><queue name="q" max-consumers="3"/></anycast>
        </address></addresses>
        <diverts>
          <divert name="d"><address>a</address><forwarding-address>first</forwarding-address>
          </divert><divert name="d"><address>a</address>
            <forwarding-address>second</forwarding-address></divert></diverts>"""
    )

    assert [one.host for one in config.cluster.connectors] == ["first"]
    ((_, settings),) = config.addressing.address_settings
    assert settings.expiry_address == "first"
    ((_, table),) = config.permissions.security_settings.permissions
    assert table.roles[Permission.SEND] == {"second"}
    assert [(one.address, one.max_consumers) for one in config.queues] == [("a", 2)]
    assert [one.forwarding_address for one in config.diverts] == ["first"]
    assert len(caplog.messages) == 6
    (setting,) = (one for one in caplog.messages if "address setting" in one)
    assert setting.startswith("AMQ222301: ")
    assert setting.endswith("address setting 'a' stands twice; the first counts")


def test_lenient_leaves_unknown_parameters_and_missing_protocols_out(read, caplog):
    config = read(
        """<acceptors><acceptor name="all">tcp://h:1?protocols=CORE,HORNETQ;sslEnabld=true</acceptor>
        <acceptor name="other">tcp://h:2?protocols=HORNETQ</acceptor></acceptors>""",
        lenient=True,
    )

    (only,) = config.cluster.acceptors
    assert only.parameters["protocols"] == "CORE"
    assert "did you mean sslEnabled?" in caplog.text
    assert "'other' has no protocol and does not listen" in caplog.text


def test_a_connector_may_have_a_clients_parameters(read):
    of_clients = [one.metadata["parameter"] for one in fields(ClientOptions)]
    query = "&amp;".join(f"{name}=1" for name in of_clients)

    config = read(f"""<connectors><connector name="c">tcp://h:1?{query}</connector></connectors>""")

    (only,) = config.cluster.connectors
    assert only.parameters["reconnectAttempts"] == "1"


def test_permissions_with_mapped_roles(read):
    config = read(
        """<security-settings>
          <role-mapping from="cn=staff" to="amq, guest"/>
          <security-setting match="orders.#">
            <permission type="send" roles="amq, other"/>
            <permission type="createTempQueue" roles="guest"/>
          </security-setting></security-settings>"""
    )

    ((match, table),) = config.permissions.security_settings.permissions
    assert match == "orders.#"
    assert table.roles == {
        Permission.SEND: {"amq", "other", "cn=staff"},
        Permission.CREATE_NON_DURABLE_QUEUE: {"guest", "cn=staff"},
    }


DATABASE = """<store><database-store>
  <jdbc-connection-url>{url}</jdbc-connection-url>
  <jdbc-user>{user}</jdbc-user><jdbc-password>{password}</jdbc-password>
  <message-table-name>M</message-table-name><jdbc-network-timeout>7000</jdbc-network-timeout>
  <jdbc-page-max-size-bytes>50K</jdbc-page-max-size-bytes>
  <data-source-class-name>org.apache.commons.dbcp2.BasicDataSource</data-source-class-name>
  <data-source-properties><data-source-property key="maxTotal" value="3"/>
    <data-source-property key="password" value="{masked}"/></data-source-properties>
</database-store></store>"""


def test_a_database_store_with_masked_passwords(read):
    url = "jdbc:postgresql://db.example/broker"
    config = read(DATABASE.format(url=url, user="me", password=mask("pw"), masked=mask("two")))

    options = config.persistence.database_options()

    assert (options.connection_url, options.user, options.password) == (url, "me", "pw")
    assert (options.message_table_name, options.network_timeout_ms) == ("M", 7000)
    assert options.max_page_size_bytes == 51200
    assert options.data_source_properties == {"maxTotal": "3", "password": "two"}
    assert "pw" not in repr(config)


def test_a_database_store_that_the_engine_refuses(read):
    config = read(
        "<store><database-store><jdbc-connection-url>sqlite:///a</jdbc-connection-url>\n"
        "<jdbc-lock-expiration>soon</jdbc-lock-expiration></database-store></store>"
    )

    with pytest.raises(ConfigError, match=r"broker\.xml:3: jdbc-lock-expiration is 'soon'"):
        config.persistence.database_options()


def test_journals_of_a_file_store(read, tmp_path):
    config = read(
        """<store><file-store/></store><journal-directory>j</journal-directory>
        <journal-pool-files>10</journal-pool-files><journal-min-files>1</journal-min-files>
        <journal-retention-directory unit="hours" period="2" storage-limit="1G">h
        </journal-retention-directory>""",
        file="etc/broker.xml",
    )

    journal = config.persistence.journal_options(config.instance)
    bindings = config.persistence.bindings_options(config.instance)

    assert config.persistence.database is None
    assert journal.directory == tmp_path / "j"
    assert (journal.pool_files, journal.min_files, journal.prefix) == (10, 2, "activemq-data")
    assert journal.retention_directory == tmp_path / "h"
    assert (journal.retention_period_ms, journal.retention_max_bytes) == (7_200_000, 1 << 30)
    assert bindings.directory == tmp_path / "data/bindings"
    assert (bindings.file_size, bindings.journal_type) == (1 << 20, JournalType.NIO)
    assert (bindings.prefix, bindings.extension) == ("activemq-bindings", "bindings")
    assert config.path("data/paging") == tmp_path / "data/paging"


@pytest.mark.parametrize(
    ("mask_password", "text", "plain"),
    [
        ("", "open", "open"),
        ("", "ENC(-4413f2d1fa455a12)", "a"),
        ("<mask-password>true</mask-password>", "-4413f2d1fa455a12", "a"),
        ("<mask-password>true</mask-password>", "ENC(-4413f2d1fa455a12)", "a"),
        ("<mask-password>false</mask-password>", "ENC(x)", "ENC(x)"),
        (
            "<password-codec>a.DefaultSensitiveStringCodec;key=another key</password-codec>",
            "ENC(-5fac209eacddffe569f1aaaaf5f2938b)",
            "swordfish",
        ),
        ("<password-codec>base64:b64encode</password-codec>", "open", "open"),
        (
            "<password-codec>tests.broker.config.codec:reverse</password-codec>",
            "ENC(terces)",
            "secret",
        ),
    ],
)
def test_masked_passwords(read, mask_password, text, plain):
    config = read(f"{mask_password}<cluster-password>{text}</cluster-password>")

    assert config.security.cluster_password == plain


def test_properties_and_their_defaults(read, monkeypatch):
    monkeypatch.setenv("broker.cluster.user", "from the environment")

    config = read(
        "<name>${node:a}-${zone}</name><cluster-user>${broker.cluster.user}</cluster-user>",
        properties={"zone": "<b>"},
    )

    assert config.general.name == "a-<b>"
    assert config.security.cluster_user == "from the environment"


def test_included_files(read, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/acceptors.xml").write_text(
        '<acceptors xmlns="urn:activemq:core"><acceptor name="a">tcp://h:1</acceptor>\n'
        "<acceptor>broken</acceptor></acceptors>"
    )

    with pytest.raises(ConfigError, match=r"parts/acceptors\.xml:2: 'broken' is not a URI"):
        read('<xi:include href="parts/acceptors.xml"/>')
    config = read(
        '<xi:include href="missing.xml"><xi:fallback><name>n</name></xi:fallback></xi:include>'
    )
    assert config.general.name == "n"


@pytest.mark.parametrize(
    ("core", "line", "what"),
    [
        ("<naem>x</naem>", 3, "no element <naem> in <core>; did you mean <name>?"),
        ("\n<journal-pool-size>1</journal-pool-size>", 4, "did you mean <journal-pool-files>?"),
        ("<name>a</name>\n<name>b</name>", 4, "<name> stands a second time, see line 3"),
        ("<global-max-size>10X</global-max-size>", 3, "'10X' is not a number of bytes"),
        ("<persist-id-cache>yes</persist-id-cache>", 3, "'yes' is not true or false"),
        ("<transaction-timeout>0</transaction-timeout>", 3, "0 is out of range: at least 1"),
        ("<transaction-timeout>5s</transaction-timeout>", 3, "'5s' is not a whole number"),
        ("<transaction-timeout/>", 3, "<transaction-timeout> is empty"),
        ("<journal-type>SLOW</journal-type>", 3, "'SLOW' is not one of NIO, ASYNCIO"),
        ("<journal-compact-percentage>101</journal-compact-percentage>", 3, "from 0 to 100"),
        ("<name unit='x'>a</name>", 3, "no attribute unit in <name>"),
        (
            (
                "<address-settings><address-setting match='a'>\n<max-size-byte>1</max-size-byte>"
                "</address-setting></address-settings>"
            ),
            4,
            "did you mean <max-size-bytes>?",
        ),
        (
            "<address-settings><address-setting match='#.a'/></address-settings>",
            2,
            "'#' is the last character of a match",
        ),
        ("<addresses>\n<address name='a'/></addresses>", 4, "address 'a' has no routing type"),
        (
            "<acceptors>\n<acceptor name='a'>tcp://h:1?sslEnabld=true</acceptor></acceptors>",
            4,
            "acceptor 'a' has no parameter sslEnabld; did you mean sslEnabled?",
        ),
        (
            "<connectors>\n<connector name='c'>tcp://h:1?useEpol=1</connector></connectors>",
            4,
            "connector 'c' has no parameter useEpol; did you mean useEpoll?",
        ),
        (
            "<acceptors>\n<acceptor name='a'>tcp://h:1?protocols=CORE,HORNETQ</acceptor></acceptors>",
            4,
            "acceptor 'a' is for protocol HORNETQ, which this version does not speak",
        ),
        (
            "<acceptors>\n<acceptor name='a'>tcp://h:1?protocols=core</acceptor></acceptors>",
            4,
            "protocol core, which is unknown; did you mean CORE?",
        ),
        (
            (
                "<addresses><address name='a'><anycast><queue name='q'>\n<filter string='x ='/>"
                "</queue></anycast></address></addresses>"
            ),
            3,
            "selector, character 4: the end where a value is expected",
        ),
        (
            (
                "<addresses><address name='a'><anycast><queue name='q' max-consumers='-2'/>"
                "</anycast></address></addresses>"
            ),
            3,
            "-2 is out of range",
        ),
        (
            (
                "<acceptors><acceptor name='a'>tcp://h:1</acceptor>\n"
                "<acceptor name='b'>tcp://h:1?useNio=true</acceptor></acceptors>"
            ),
            4,
            "port 1 is taken",
        ),
        (
            "<acceptors><acceptor name='a'>tcp://h:99999</acceptor></acceptors>",
            3,
            "which is not a number up to 65535",
        ),
        (
            (
                "<security-settings><security-setting match='a'>\n"
                "<permission type='sned' roles='r'/></security-setting></security-settings>"
            ),
            4,
            "no permission is called 'sned'",
        ),
        ("<store/>", 3, "it takes <file-store> or <database-store>"),
        (
            "<store><database-store>\n<jdbc-conection-url/></database-store></store>",
            4,
            "did you mean <jdbc-connection-url>?",
        ),
        (
            (
                "<cluster-connections><cluster-connection name='c'><connector-ref>x</connector-ref>"
                "</cluster-connection></cluster-connections>"
            ),
            3,
            "no connector is called 'x'",
        ),
        (
            "<bridges><bridge name='b'><queue-name>q</queue-name></bridge></bridges>",
            3,
            "it takes <static-connectors> or <discovery-group-ref>",
        ),
        (
            (
                "<broadcast-groups><broadcast-group name='b'><group-port>1</group-port>"
                "</broadcast-group></broadcast-groups>"
            ),
            3,
            "it takes both group-address and group-port",
        ),
        ("<diverts><divert name='d'/></diverts>", 3, "<divert> needs <address>"),
        ("<ha-policy><primary-only/><replication/></ha-policy>", 3, "<ha-policy> takes one of"),
        ("<name>${nowhere.to.be.found}</name>", 3, "${nowhere.to.be.found} is not set"),
        ("<xi:include href='/etc/hostname'/>", 3, "which is outside of"),
        ("<xi:include href='../x.xml'/>", 3, "which is outside of"),
        ("<xi:include href='http://example.org/x'/>", 3, "takes the href of an XML file"),
        ("<xi:include href='none.xml'/>", 3, "no such file"),
        ("<xi:include href='broker.xml'/>", 3, "more than 16 deep"),
        ("<cluster-password>ENC(12)</cluster-password>", 3, "does not decode"),
        ("<password-codec>com.example.Codec</password-codec>", 3, "is a Java class"),
        ("<password-codec>no.such.module:f</password-codec>", 3, "No module named"),
        ("<literal-match-markers>x</literal-match-markers>", 3, "two characters"),
        ("<wildcard-addresses><delimiter>#</delimiter></wildcard-addresses>", 3, "different"),
        ("<journal-retention-directory>h</journal-retention-directory>", 3, "needs a period"),
        ("<name>a</name", 4, "no XML"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(read, core, line, what):
    assert what in refused(read, core, line=line)


def test_lenient_warns_of_what_is_unknown_and_of_nothing_else(read, caplog):
    caplog.set_level(logging.WARNING, "broker.config")

    config = read("<naem>x</naem><name other='1'>a</name>", lenient=True)

    assert config.general.name == "a"
    told = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert sorted(told) == [
        "no attribute other in <name>",
        "no element <naem> in <core>; did you mean <name>?",
    ]
    refused(read, "<persist-id-cache>yes</persist-id-cache>", line=3, lenient=True)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<nothing/>", "where <configuration> is expected"),
        ("<configuration/>", "needs one <core>"),
        ("", "no XML"),
        (
            '<!DOCTYPE c [<!ENTITY e SYSTEM "file:///etc/hostname">]><core><name>&e;</name></core>',
            "document type",
        ),
        (
            "<!DOCTYPE c [" + '<!ENTITY a "aaaaaaaaaa">' + "]><core><name>&a;</name></core>",
            "document type",
        ),
    ],
)
def test_what_is_no_configuration(tmp_path, text, what):
    file = tmp_path / "broker.xml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=what):
        load(file)


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.xml: No such file"):
        load(tmp_path / "none.xml")
