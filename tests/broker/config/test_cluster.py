"""Groups and cluster connections of broker.xml: refusals with their lines, and warnings."""

import pytest

from broker.config.errors import ConfigError
from broker.config.load import load


@pytest.fixture
def read(tmp_path):
    """Reads what is in <core>; it begins in line 3."""

    def read_core(core):
        path = tmp_path / "broker.xml"
        path.write_text(
            '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n'
            f"{core}\n</core></configuration>"
        )
        return load(path)

    return read_core


def group(content, kind="broadcast"):
    return f"<{kind}-groups><{kind}-group name='g'>{content}</{kind}-group></{kind}-groups>"


def connections(content):
    return f"<cluster-connections>{content}</cluster-connections>"


def connection_uri(uri):
    return connections(f"<cluster-connection-uri name='u' address='{uri}'/>")


def connection(content):
    return connections(
        "<cluster-connection name='u'><connector-ref>c</connector-ref>"
        f"{content}</cluster-connection>"
    )


def udp(address="231.7.7.7", more=""):
    return f"{more}<group-address>{address}</group-address><group-port>9876</group-port>"


def port(number):
    return f"<local-bind-port>{number}</local-bind-port>"


def folder(key):
    return f"<endpoint name='shared-folder'><property key='{key}' value='x'/></endpoint>"


JGROUPS = "<jgroups-file>f.xml</jgroups-file><jgroups-channel>c</jgroups-channel>"
DNS = "<endpoint name='dns'><property key='host' value='x'/></endpoint>"
TWO = f"<broadcast-group name='g'>{udp()}</broadcast-group>" * 2
WRONG = (
    (group(udp("224.0.0.0")), "224.0.0.0 is reserved"),
    (group(udp("10.0.0.1")), "'10.0.0.1' is not a class D address"),
    (group(udp("a.name"), "discovery"), "'a.name' is not a class D address"),
    (group(udp(more=port(5432))), "local-bind-port goes with local-bind-address"),
    (group(udp(more=port(0))), "0 is out of range"),
    (group(udp() + JGROUPS), "not both"),
    (group(JGROUPS), "<jgroups-file>: JGroups is a library of Java and not part of this broker"),
    (
        group(JGROUPS, "discovery"),
        'for UDP, or one of <endpoint name="dns">, <endpoint name="shared-folder">',
    ),
    (group("<endpoint name='x'/>"), "no endpoint 'x'; installed are dns, shared-folder"),
    (group("<endpoint name='shared-folder'/>"), "endpoint shared-folder needs path"),
    (group(folder("pth")), "endpoint shared-folder has no parameter pth; it has path, period"),
    (group(folder("path") + udp()), "not both"),
    (group(DNS), "endpoint dns has no broadcasts"),
    (group(udp() + "<connector-ref>x</connector-ref>"), "no connector is called 'x'"),
    (f"<broadcast-groups>{TWO}</broadcast-groups>", "broadcast-group 'g' is there already"),
    (
        connection("<discovery-group-ref discovery-group-name='x'/>"),
        "no discovery group is called 'x'",
    ),
    (
        connection("<static-connectors><connector-ref>x</connector-ref></static-connectors>"),
        "no connector is called 'x'",
    ),
    (connection_uri("multicast://x?connectorName=c"), "no discovery group is called 'x'"),
    (connection_uri("multicast://x?connectorName=y"), "no connector is called 'y'"),
    (
        connection_uri("static:(tcp://h:1)?connectorName=c;maxHop=1"),
        "cluster-connection-uri 'u': no parameter maxHop; did you mean maxHops?",
    ),
    (connection_uri("static:(tcp://h:1)?connectorName=c;maxHops=-1"), "maxHops: -1 is out of"),
    (connection_uri("static:(tcp://h:1)"), "it needs connectorName"),
    (connection_uri("static:(nowhere)?connectorName=c"), "is not a URI"),
    (connection_uri("static:?connectorName=c"), "names no other broker"),
    (connection_uri("tcp://h:1"), "is neither static:"),
)


@pytest.mark.parametrize(("core", "what"), WRONG)
def test_what_is_wrong_is_refused_with_its_line(read, core, what):
    with pytest.raises(ConfigError) as refused:
        read("<connectors><connector name='c'>tcp://h:1</connector></connectors>\n" + core)

    assert what in str(refused.value)
    assert "broker.xml:4: " in str(refused.value)


def test_windows_of_cluster_connections_may_be_none(read):
    config = read(
        "<connectors><connector name='c'>tcp://h:1</connector></connectors>"
        + connection(
            "<confirmation-window-size>-1</confirmation-window-size>"
            "<producer-window-size>-1</producer-window-size>"
        )
    )

    (found,) = config.cluster.cluster_connections
    assert (found.confirmation_window_size_bytes, found.producer_window_size_bytes) == (-1, -1)


@pytest.mark.parametrize(
    ("first", "second", "is_doubtful"),
    [("", "", True), ("orders", "ord", True), ("eu,us", "asia", False), ("!eu", "eu", False)],
)
def test_cluster_connections_whose_addresses_overlap_are_warned_of(
    read, caplog, first, second, is_doubtful
):
    read(
        "<connectors><connector name='c'>tcp://h:1</connector></connectors>"
        + connections(
            "".join(
                f"<cluster-connection name='{name}'><address>{address}</address>"
                "<connector-ref>c</connector-ref></cluster-connection>"
                for name, address in (("one", first), ("two", second))
            )
        )
    )

    assert ("one and two have overlapping addresses" in caplog.text) == is_doubtful


@pytest.mark.parametrize("other", ["c", "alias"])
def test_a_broker_that_lists_itself_is_warned_of(read, caplog, other):
    read(
        "<connectors><connector name='c'>tcp://localhost:1</connector>"
        "<connector name='alias'>tcp://127.0.0.1:1</connector>"
        "<connector name='far'>tcp://far:1</connector></connectors>"
        + connection(
            "<static-connectors><connector-ref>far</connector-ref>"
            f"<connector-ref>{other}</connector-ref></static-connectors>"
        )
    )

    assert [line for line in caplog.messages if "lists this broker itself" in line] != []
    assert "far:1" not in caplog.text
