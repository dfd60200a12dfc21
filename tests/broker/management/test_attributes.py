"""Attributes: of the type that Artemis's interface says, and what was configured."""

import asyncio
import json
import ssl
import stat
from dataclasses import replace

import pytest

from broker.config import load
from broker.config.properties import configuration_properties
from broker.management.errors import ManagementError
from broker.management.registry import Resources
from broker.options import BrokerOptions, WebOptions
from broker.options.from_config import broker_options
from broker.server.server import Broker
from tests.broker.certificates import Authority
from tests.broker.management.managed import Failed, ManagedBench
from tests.broker.management.test_complete import CLUSTERS, ROWS
from tests.broker.test_recovery import BrokerRun, durable

RESOURCES = {
    "ActiveMQServerControl": "broker",
    "QueueControl": "queue.q",
    "AddressControl": "address.q",
    "DivertControl": "divert.d",
}
TYPES = {
    "String": (str, type(None)),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "Long": (int, type(None)),
    "double": (float, int),
    "String[]": (list,),
    "Object[]": (list,),
    "Map": (dict,),
}
OF_A_JVM = {
    *("getThreadPoolMaxSize", "getScheduledThreadPoolMaxSize", "getMessageExpiryThreadPriority"),
    "isAsyncConnectionExecutionEnabled",
}
ATTRIBUTES = [
    row
    for row in ROWS
    if row.control in RESOURCES
    and row.kind == "attribute"
    and not row.types
    and row.name not in CLUSTERS
]


@pytest.fixture(scope="module")
def bench():
    made = ManagedBench()
    made.queue("q")
    made.queue("x")
    made.call("broker", "createDivert", "d", None, "q", "x", False, None, None)
    return made


@pytest.mark.parametrize("row", ATTRIBUTES, ids=lambda row: f"{row.control}-{row.name}")
def test_an_attribute_has_the_type_of_artemis(bench, row):
    if row.name in OF_A_JVM:
        with pytest.raises(Failed, match="is an attribute of a JVM"):
            bench.call(RESOURCES[row.control], row.name)
        return

    found = bench.call(RESOURCES[row.control], row.name)

    assert type(found) in TYPES[row.returned]
    if row.returned == "String[]":
        assert {type(one) for one in found} <= {str}


XML = """<configuration><core>
<name>configured</name>
<journal-directory>some/journal</journal-directory>
<bindings-directory>some/bindings</bindings-directory>
<journal-type>NIO</journal-type>
<journal-min-files>4</journal-min-files>
<journal-pool-files>7</journal-pool-files>
<journal-file-size>1M</journal-file-size>
<journal-buffer-timeout>1000</journal-buffer-timeout>
<journal-compact-percentage>40</journal-compact-percentage>
<journal-sync-transactional>false</journal-sync-transactional>
<create-journal-dir>false</create-journal-dir>
<disk-scan-period>1234</disk-scan-period>
<security-invalidation-interval>77</security-invalidation-interval>
<transaction-timeout>4321</transaction-timeout>
<connectors><connector name="other">tcp://h:1?trustStorePassword=hidden</connector></connectors>
<acceptors><acceptor name="a">tcp://localhost:0?protocols=CORE;tcpNoDelay=true</acceptor></acceptors>
<broker-plugins><broker-plugin class-name=
"org.apache.activemq.artemis.core.server.plugin.impl.NotificationActiveMQServerPlugin"/></broker-plugins>
</core></configuration>"""


@pytest.fixture
def options(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "broker.xml").write_text(XML)
    return broker_options(load(tmp_path / "etc" / "broker.xml"))


def test_what_is_configured_is_told(options):
    bench = ManagedBench(options=options)

    expected = {
        "getName": "configured",
        "getJournalDirectory": "some/journal",
        "getBindingsDirectory": "some/bindings",
        "getPagingDirectory": "data/paging",
        "getJournalType": "NIO",
        "getJournalMinFiles": 4,
        "getJournalPoolFiles": 7,
        "getJournalFileSize": 1024 * 1024,
        "getJournalMaxIO": 1,
        "getJournalBufferTimeout": 1000,
        "getJournalCompactPercentage": 40,
        "isJournalSyncTransactional": False,
        "isJournalSyncNonTransactional": True,
        "isCreateJournalDir": False,
        "getDiskScanPeriod": 1234,
        "getSecurityInvalidationInterval": 77,
        "getTransactionTimeout": 4321,
        "getHAPolicy": None,
        "isSharedStore": False,
        "getActivationSequence": -1,
        "getBrokerPluginClassNames": [
            "org.apache.activemq.artemis.core.server.plugin.impl.NotificationActiveMQServerPlugin"
        ],
    }
    assert {name: bench.call("broker", name) for name in expected} == expected


def test_directories_of_a_broker_without_a_file_are_those_in_use(tmp_path):
    async def run():
        async with BrokerRun(tmp_path) as run:
            control = Resources(run.broker).find("broker")
            return [
                control.invoke(f"get{name}Directory", ())
                for name in ("Journal", "Bindings", "Paging", "LargeMessages")
            ]

    journal, bindings, paging, large = asyncio.run(run())
    assert journal.startswith(str(tmp_path))
    assert len({journal, bindings, paging, large}) == 4


def test_the_configuration_is_written_as_properties(options):
    bench = ManagedBench(options=options)
    bench.call("broker", "exportConfigAsProperties")

    path = options.configuration.instance / "tmp" / "broker_config_as_properties.txt"
    found = dict(line.split("=", 1) for line in path.read_text().splitlines())
    expected = {
        "name": "configured",
        "journalDirectory": "some/journal",
        "journalType": "NIO",
        "journalBufferTimeout_NIO": "1000",
        "journalSyncTransactional": "false",
        "connectorConfigurations.other.params.trustStorePassword": "**redacted**",
        "clusterPassword": "**redacted**",
        "acceptorConfigurations.a.params.tcpNoDelay": "true",
        "IDCacheSize": "20000",
    }
    assert found.items() >= expected.items()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(Failed, match="no configuration file"):
        ManagedBench().call("broker", "exportConfigAsProperties")


def test_addresses_settings_roles_and_diverts_are_written_as_properties(tmp_path):
    (tmp_path / "broker.xml").write_text(
        """<core>
        <ha-policy><shared-store><primary/></shared-store></ha-policy>
        <addresses><address name="a.b"><anycast><queue name="q" max-consumers="3">
        <filter string="x = 1"/></queue></anycast></address></addresses>
        <address-settings><address-setting match="#">
        <max-delivery-attempts>3</max-delivery-attempts><address-full-policy>BLOCK</address-full-policy></address-setting></address-settings>
        <security-settings><security-setting match="a"><permission type="send" roles="r"/>
        </security-setting></security-settings>
        <diverts><divert name="d"><address>a.b</address>
        <forwarding-address>c</forwarding-address></divert></diverts>
        </core>"""
    )

    found = configuration_properties(load(tmp_path / "broker.xml"))

    assert set(found) >= {
        'addressConfigurations."a.b".routingTypes=ANYCAST',
        'addressConfigurations."a.b".queueConfigurations.q.maxConsumers=3',
        'addressConfigurations."a.b".queueConfigurations.q.filterString=x = 1',
        "addressSettings.#.maxDeliveryAttempts=3",
        "addressSettings.#.addressFullMessagePolicy=BLOCK",
        "securityRoles.a.r.send=true",
        "securityRoles.a.r.consume=false",
        "divertConfigurations.d.forwardingAddress=c",
        "divertConfigurations.d.routingType=STRIP",
        "HAPolicyConfiguration=SHARED_STORE_PRIMARY",
    }
    assert found == sorted(found, key=lambda line: line.partition("=")[0].lower())


def test_connectors_are_listed_added_and_removed(options):
    bench = ManagedBench(options=options)

    bench.call("broker", "addConnector", "mine", "tcp://somewhere:1234?useNio=true")
    found = bench.call("broker", "getConnectors")
    factory = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"
    assert found == [
        ["other", factory, {"trustStorePassword": "****", "host": "h", "port": "1"}],
        ["mine", factory, {"useNio": "true", "host": "somewhere", "port": "1234"}],
    ]
    (_, mine) = json.loads(bench.call("broker", "getConnectorsAsJSON"))
    assert mine == {
        "name": "mine",
        "factoryClassName": factory,
        "params": {"useNio": "true", "host": "somewhere", "port": "1234"},
        "extraProps": {},
    }
    with pytest.raises(Failed, match="'nonsense' is no"):
        bench.call("broker", "addConnector", "wrong", "nonsense")
    bench.call("broker", "removeConnector", "other")
    bench.call("broker", "removeConnector", "none")
    assert [one[0] for one in bench.call("broker", "getConnectors")] == ["mine"]


def test_connectors_last_over_a_restart(tmp_path):
    def call(run, *arguments):
        return Resources(run.broker).find("broker").invoke(arguments[0], arguments[1:])

    async def runs():
        async with BrokerRun(tmp_path) as run:
            call(run, "addConnector", "a", "tcp://one:1")
            call(run, "addConnector", "a", "tcp://two:2")
            call(run, "addConnector", "b", "tcp://three:3")
            call(run, "removeConnector", "b")
            await durable(run.broker.parts.storage.after)
        async with BrokerRun(tmp_path) as run:
            ((name, _, parameters),) = call(run, "getConnectors")
            assert (name, parameters) == ("a", {"host": "two", "port": "2"})

    asyncio.run(runs())


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("createConnectorService", "s", "a.Factory", {}), "a class of a JVM"),
        (("destroyConnectorService", "s"), "Connector service s does not exist"),
        (("startBrokerConnection", "c"), "broker connection c not found"),
        (("stopBrokerConnection", "c"), "broker connection c not found"),
        (("stopEmbeddedWebServer",), "AMQ229241: Embedded web server not found"),
    ],
)
def test_what_a_broker_does_not_have_is_told(bench, call, expected):
    with pytest.raises(Failed, match=expected):
        bench.call("broker", *call)
    assert bench.call("broker", "listBrokerConnections") == "[]"


async def managed(broker, resource, name, *arguments):
    """Do an operation of a broker that runs."""
    result = Resources(broker).find(resource).invoke(name, arguments)
    if not hasattr(result, "send"):
        return result
    while True:
        try:
            delay_s = next(result)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(delay_s or 0)


async def is_open(port):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def test_an_acceptor_stops_and_starts_at_its_port(options):
    async def run():
        broker = Broker(replace(options, store=None, web=()))
        await broker.start()
        try:
            port = broker.acceptors[0].port
            ((name, factory, parameters),) = await managed(broker, "broker", "getAcceptors")
            assert (name, parameters["port"], parameters["protocols"]) == ("a", str(port), "CORE")
            assert await managed(broker, "acceptor.a", "getFactoryClassName") == factory
            assert await managed(broker, "acceptor.a", "getParameters") == parameters
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await managed(broker, "acceptor.a", "stop")
            # What was connected is disconnected.
            assert await asyncio.wait_for(reader.read(), 60) == b""
            writer.close()
            assert not await is_open(port)
            assert await managed(broker, "acceptor.a", "isStarted") is False
            await managed(broker, "acceptor.a", "stop")
            await managed(broker, "acceptor.a", "start")
            await managed(broker, "acceptor.a", "start")
            assert await managed(broker, "acceptor.a", "isStarted") is True
            assert await is_open(broker.acceptors[0].port)
            # Without TLS there is nothing to read again.
            await managed(broker, "acceptor.a", "reload")
        finally:
            await broker.stop()

    asyncio.run(run())


def test_an_acceptor_takes_another_certificate(tmp_path):
    authority = Authority(tmp_path, "ours")
    first, second = (authority.issue(name, host="localhost") for name in ("first", "second"))
    store = tmp_path / "store.pem"
    store.write_bytes(first.read_bytes())
    (tmp_path / "broker.xml").write_text(
        '<core><acceptors><acceptor name="a">tcp://localhost:0?sslEnabled=true;'
        # Beside broker.xml, which is not where the tests run.
        f"keyStorePath={store.name}</acceptor></acceptors></core>"
    )

    async def shown(port):
        context = ssl.create_default_context(cafile=authority.certificate)
        _, writer = await asyncio.open_connection("localhost", port, ssl=context)
        (((_, name),),) = writer.get_extra_info("peercert")["subject"]
        writer.close()
        return name

    async def run():
        broker = Broker(replace(broker_options(load(tmp_path / "broker.xml")), store=None, web=()))
        await broker.start()
        try:
            port = broker.acceptors[0].port
            assert await shown(port) == "first"
            store.write_text("nothing")
            with pytest.raises(ManagementError, match=r"the old certificate stays: .*TLS"):
                await managed(broker, "acceptor.a", "reload")
            assert await shown(port) == "first"
            store.write_bytes(second.read_bytes())
            await managed(broker, "acceptor.a", "reload")
            assert broker.acceptors[0].port == port
            assert await shown(port) == "second"
        finally:
            await broker.stop()

    asyncio.run(run())


def test_the_web_server_stops_and_starts(options):
    async def run():
        broker = Broker(BrokerOptions(acceptors=(), web=(WebOptions(host="127.0.0.1", port=0),)))
        await broker.start()
        try:
            port = broker.web[0].port
            assert await managed(broker, "broker", "isEmbeddedWebServerStarted") is True
            await managed(broker, "broker", "stopEmbeddedWebServer")
            assert await managed(broker, "broker", "isEmbeddedWebServerStarted") is False
            assert not await is_open(port)
            await managed(broker, "broker", "startEmbeddedWebServer")
            assert await is_open(broker.web[0].port)
            await managed(broker, "broker", "restartEmbeddedWebServer")
            await managed(broker, "broker", "restartEmbeddedWebServer", 60_000)
            assert await is_open(broker.web[0].port)
            with pytest.raises(ManagementError, match=r"AMQ229242: .* not restarted in 0 milli"):
                await managed(broker, "broker", "restartEmbeddedWebServer", 0)
        finally:
            await broker.stop()

    asyncio.run(run())
