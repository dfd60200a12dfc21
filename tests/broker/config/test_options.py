"""From a configuration to a broker that runs on it."""

import asyncio

import pytest

from broker.config import ConfigError, load
from broker.config.unsupported import without_effect
from broker.model.routing_type import RoutingType
from broker.options.from_config import (
    broker_options,
    memory_limit_bytes,
    network_check_of,
    security_of,
)
from broker.security.login_config import read_login
from broker.server.server import Broker
from tests.broker.certificates import openssl


@pytest.fixture
def read(tmp_path):
    def load_core(core):
        (tmp_path / "etc").mkdir(exist_ok=True)
        path = tmp_path / "etc/broker.xml"
        path.write_text(f"<core>\n{core}\n</core>")
        return load(path)

    return load_core


def test_a_broker_starts_on_what_was_read(read, tmp_path):
    config = read(
        "<journal-type>NIO</journal-type><journal-file-size>100K</journal-file-size>"
        '<acceptors><acceptor name="a">tcp://127.0.0.1:0</acceptor></acceptors>'
        '<diverts><divert name="d"><address>a</address><forwarding-address>b</forwarding-address>'
        "</divert></diverts>"
    )

    async def serve():
        broker = Broker(broker_options(config))
        await broker.start()
        assert broker.acceptors[0].port
        await broker.stop()

    asyncio.run(serve())
    assert (tmp_path / "data/journal/activemq-data-1.amq").exists()


def test_defaults_that_depend_on_the_machine(read):
    options = broker_options(read(""))

    assert options.global_max_size == memory_limit_bytes() // 2
    assert options.store.lock_timeout_ms == 0
    assert options.acceptors == ()


@pytest.mark.parametrize(
    ("core", "said"),
    [
        (
            "<bindings-directory>data/journal</bindings-directory>",
            "bindings-directory is .*, the folder of journal-directory",
        ),
        ("<paging-directory>data/x/../journal</paging-directory>", "paging-directory is"),
        ("<large-messages-directory>data/link</large-messages-directory>", "the folder of paging"),
        (
            '<journal-retention-directory period="1">data/paging</journal-retention-directory>',
            "journal-retention-directory is",
        ),
        (
            (
                "<store><database-store><jdbc-connection-url>sqlite:///a</jdbc-connection-url>"
                "<message-table-name>T</message-table-name><bindings-table-name>t</bindings-table-name>"
                "</database-store></store>"
            ),
            "message-table-name is 'T', as bindings-table-name is",
        ),
    ],
)
def test_two_kinds_of_data_in_one_place_are_refused(read, tmp_path, core, said):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link").symlink_to(tmp_path / "data/paging")

    with pytest.raises(ConfigError, match=rf"broker\.xml:\d+: .*{said}"):
        broker_options(read(core))


def test_a_divert_as_it_is_stored(read):
    config = read(
        '<diverts><divert name="d"><address>a</address><forwarding-address>b</forwarding-address>'
        "<transformer-class-name>T</transformer-class-name></divert></diverts>"
    )

    (divert,) = broker_options(config).diverts

    assert divert.routing_type is RoutingType.STRIP
    assert divert.routing_name
    assert divert.transformer.class_name == "T"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
        *("-keyout", path, "-out", path.with_suffix(".crt"), "-days", "2"),
    )
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


def acceptor(parameters):
    return f'<acceptors><acceptor name="a">tcp://h:1?{parameters}</acceptor></acceptors>'


def test_a_tls_acceptor(read, certificate):
    parameters = f"sslEnabled=true;keyStorePath={certificate};trustStorePath={certificate}"

    (plain,) = broker_options(read(acceptor("connectionsAllowed=5"))).acceptors
    (one_way,) = broker_options(read(acceptor(parameters))).acceptors
    (mutual,) = broker_options(read(acceptor(f"{parameters};needClientAuth=true"))).acceptors

    assert (plain.ssl, plain.connections_allowed) == (None, 5)
    assert one_way.ssl.verify_mode.name == "CERT_NONE"
    assert mutual.ssl.verify_mode.name == "CERT_REQUIRED"
    assert mutual.ssl.minimum_version.name == "TLSv1_2"


def test_a_store_in_the_folder_of_the_file(read, certificate, tmp_path):
    config = read(acceptor("sslEnabled=true;keyStorePath=own.pem;enabledProtocols=TLSv1.3"))
    (tmp_path / "etc/own.pem").write_bytes(certificate.read_bytes())

    (found,) = broker_options(config).acceptors

    assert found.ssl.minimum_version.name == "TLSv1_3"


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ("sslEnabled=true;keyStorePath=a;enabledProtocols=SSLv3", "none of TLSv1.2, TLSv1.3"),
        ("sslEnabled=true", "needs keyStorePath"),
        ("sslEnabled=true;keyStorePath=a;keyStoreType=BKS", "keyStoreType .BKS.; one of"),
        ("sslEnabled=true;keyStorePath=a.p12", "No such file"),
        ("sslEnabled=true;keyStorePath=none.pem", "No such file"),
        ("sslEnabled=maybe", "sslEnabled: 'maybe' is not true or false"),
        ("connectionsAllowed=x", "connectionsAllowed: 'x' is not a whole number"),
    ],
)
def test_a_wrong_acceptor_is_told_with_its_line(read, parameters, what):
    with pytest.raises(ConfigError, match=rf"broker\.xml:2: .*{what}"):
        broker_options(read(acceptor(parameters)))


def test_an_acceptor_of_another_scheme(read):
    config = read('<acceptors><acceptor name="a">vm://0</acceptor></acceptors>')

    with pytest.raises(ConfigError, match="scheme 'vm'"):
        broker_options(config)


def test_security_may_be_off(read):
    assert security_of(read("<security-enabled>false</security-enabled>")) is None


def test_the_login_configuration_of_artemis(tmp_path):
    (tmp_path / "login.config").write_text(
        """/* comment */ activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule sufficient
       debug=false reload=true  // both
       org.apache.activemq.jaas.properties.user="u.properties"
       org.apache.activemq.jaas.properties.role="r.properties";
   org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule sufficient
       debug=false
       org.apache.activemq.jaas.guest.user="anna"
       org.apache.activemq.jaas.guest.role="amq";
};"""
    )

    login = read_login(tmp_path)

    assert login.users.users_file == tmp_path / "u.properties"
    assert login.users.roles_file == tmp_path / "r.properties"
    assert (login.guest.name, login.guest.roles) == ("anna", {"amq"})


def test_certificates_of_a_login_configuration(tmp_path):
    (tmp_path / "login.config").write_text(
        """cert {
   org.apache.activemq.artemis.spi.core.security.jaas.TextFileCertificateLoginModule required
       org.apache.activemq.jaas.textfiledn.user="cert-users.properties"
       org.apache.activemq.jaas.textfiledn.role="r.properties";
};"""
    )

    login = read_login(tmp_path)

    assert login.guest is None
    assert login.certificates.users_file == tmp_path / "cert-users.properties"
    assert login.certificates.roles_file == tmp_path / "r.properties"


def test_a_login_configuration_of_others_is_refused(read, tmp_path):
    config = read("")
    (tmp_path / "etc/login.config").write_text("activemq { com.example.Ldap required; };")

    with pytest.raises(ConfigError, match="none of PropertiesLoginModule, "):
        security_of(config)


def test_elements_that_go_to_the_broker_as_they_are(read):
    config = read(
        "<populate-validated-user>true</populate-validated-user>"
        "<reject-empty-validated-user>true</reject-empty-validated-user>"
        "<persist-delivery-count-before-delivery>true</persist-delivery-count-before-delivery>"
        "<internal-naming-prefix>own.</internal-naming-prefix>"
        "<server-dump-interval>7</server-dump-interval>"
        "<configuration-file-refresh-period>9</configuration-file-refresh-period>"
        "<graceful-shutdown-enabled>true</graceful-shutdown-enabled>"
        '<resource-limit-settings><resource-limit-setting match="u"><max-sessions>1</max-sessions>'
        "<max-queues>2</max-queues></resource-limit-setting></resource-limit-settings>"
        "<network-check-list>10.0.0.1, host</network-check-list>"
        "<network-check-URL-list>http://a/</network-check-URL-list>"
        "<network-check-period>11</network-check-period><network-check-NIC>eth0</network-check-NIC>"
    )

    options = broker_options(config)

    assert options.populate_validated_user
    assert options.reject_empty_validated_user
    assert options.persist_deliveries
    assert options.internal_naming_prefix == "own."
    assert (options.server_dump_interval, options.refresh_period) == (7, 9)
    assert options.graceful_shutdown_timeout == -1
    assert options.resource_limits == {"u": (1, 2)}
    network = network_check_of(config)
    assert (network.hosts, network.urls) == (("10.0.0.1", "host"), ("http://a/",))
    assert (network.period_ms, network.interface, network.is_needed) == (11, "eth0", True)
    assert not network_check_of(read("")).is_needed


@pytest.mark.parametrize("element", ["uuid-namespace", "temporary-queue-namespace"])
def test_the_namespace_of_uuids_by_either_name(read, element):
    name = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    options = broker_options(
        read(
            f"<{element}>temp</{element}><address-settings><address-setting match='temp.#'>"
            "<max-delivery-attempts>2</max-delivery-attempts></address-setting></address-settings>"
        )
    )

    assert options.settings.match(name).max_delivery_attempts == 2


UNSYNCED = (
    "<journal-sync-transactional>false</journal-sync-transactional>"
    "<journal-sync-non-transactional>false</journal-sync-non-transactional>"
)


def test_answers_wait_for_a_database_whatever_journal_sync_says(read):
    url = "<jdbc-connection-url>sqlite:///a</jdbc-connection-url>"
    on_tables = read(f"{UNSYNCED}<store><database-store>{url}</database-store></store>")

    assert without_effect(on_tables) == [
        "<journal-sync-transactional> of a database",
        "<journal-sync-non-transactional> of a database",
    ]
    assert without_effect(read(UNSYNCED)) == []
