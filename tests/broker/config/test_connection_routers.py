"""Connection routers of broker.xml: values, defaults, refusals with their lines."""

import pytest

from broker.config.connection_routers import KeyType, PolicyName
from broker.config.errors import ConfigError
from broker.config.unsupported import without_effect
from tests.broker.routers.brokers import xml

STATIC = "<static-connectors><connector-ref>c</connector-ref></static-connectors>"
CONNECTORS = '<connectors><connector name="c">tcp://h:1</connector></connectors>'


def read(folder, content, more=""):
    router = f'<connection-router name="r">{content}</connection-router>'
    return xml(folder, f"{CONNECTORS}<connection-routers>{router}</connection-routers>{more}")


def test_defaults_are_artemis_own(tmp_path):
    config = read(tmp_path, f"<cache/><pool>{STATIC}</pool>")

    (router,) = config.cluster.connection_routers
    pool = router.pool
    assert (router.key_type, router.key_filter, router.policy) == (KeyType.SOURCE_IP, None, None)
    assert router.local_target_filter is None
    assert (router.cache.persisted, router.cache.timeout_ms) == (False, 0)
    assert (pool.check_period_ms, pool.quorum_size, pool.quorum_timeout_ms) == (5000, 1, 3000)
    assert (pool.username, pool.password, pool.local_target_enabled) == (None, None, False)
    assert without_effect(config) == []


def test_all_that_artemis_test_has_is_read(tmp_path):
    content = (
        "<key-type>CLIENT_ID</key-type><key-filter>^.{3}</key-filter>"
        "<local-target-filter>^FOO.*</local-target-filter>"
        '<policy name="CONSISTENT_HASH_MODULO"><property key="MODULO" value="2"/></policy>'
        "<cache><persisted>true</persisted><timeout>1234</timeout></cache>"
        "<pool><username>u</username><password>p</password><check-period>1</check-period>"
        "<quorum-size>3</quorum-size><quorum-timeout>0</quorum-timeout>"
        f"<local-target-enabled>true</local-target-enabled>{STATIC}</pool>"
    )

    (router,) = read(tmp_path, content).cluster.connection_routers

    assert router.key_type is KeyType.CLIENT_ID
    assert router.key_filter.pattern == "^.{3}"
    assert router.policy == (PolicyName.CONSISTENT_HASH_MODULO, 2, 0)
    assert (router.cache.persisted, router.cache.timeout_ms) == (True, 1234)
    assert router.pool.static_connectors.connector_refs == ("c",)
    assert (router.pool.username, router.pool.password) == ("u", "p")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("<pool/>", "<pool>: it takes one of <cluster-connection>, <static-connectors>"),
        (
            f"<pool>{STATIC}<cluster-connection>m</cluster-connection></pool>",
            "it takes one of <cluster-connection>",
        ),
        ("<pool><cluster-connection>m</cluster-connection></pool>", "no cluster connection is"),
        (
            '<pool><discovery-group-ref discovery-group-name="d"/></pool>',
            "no discovery group is called 'd'",
        ),
        (f"<pool>{STATIC.replace('>c<', '>x<')}</pool>", "no connector is called 'x'"),
        (f"<pool><quorum-size>0</quorum-size>{STATIC}</pool>", "<quorum-size>: 0 is out of range"),
        ('<policy name="BEST"/>', "<policy>: 'BEST' is not one of FIRST_ELEMENT"),
        ('<policy name="CONSISTENT_HASH_MODULO"/>', "needs the property MODULO"),
        (
            '<policy name="ROUND_ROBIN"><property key="MODULO" value="2"/></policy>',
            "policy ROUND_ROBIN has no property 'MODULO'",
        ),
        (
            '<policy name="CONSISTENT_HASH_MODULO"><property key="MODULO" value="x"/></policy>',
            "property MODULO: 'x' is not",
        ),
        ("<key-filter>[</key-filter>", r"<key-filter>: '\[' is not a regular expression"),
        ("<key-type>COLOUR</key-type>", "<key-type>: 'COLOUR' is not one of CLIENT_ID"),
        ("<cache><timeout>-1</timeout></cache>", "<timeout>: -1 is out of range"),
        ("<keytype/>", "no element <keytype> in <connection-router>; did you mean <key-type>"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, content, error):
    with pytest.raises(ConfigError, match=rf"broker\.xml:3: .*{error}"):
        read(tmp_path, content)


def test_an_acceptor_names_a_router_that_is_there(tmp_path):
    acceptor = '<acceptors><acceptor name="a">tcp://h:1?router={}</acceptor></acceptors>'
    config = read(tmp_path, "", acceptor.format("r"))

    assert without_effect(config) == []
    with pytest.raises(ConfigError, match="acceptor 'a': no connection router is called 'rr'"):
        read(tmp_path, "", acceptor.format("rr"))


def test_a_name_stands_once(tmp_path):
    one = '<connection-router name="r"/>'

    with pytest.raises(ConfigError, match="connection-router 'r' is there already"):
        xml(tmp_path, f"<connection-routers>{one}{one}</connection-routers>")
