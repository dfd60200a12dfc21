import pytest

from broker.client.options import ClientOptions
from broker.client.uri import parse_uri


def where(uri):
    return [(item.host, item.port) for item in parse_uri(uri).connectors]


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("tcp://localhost:61616", [("localhost", 61616)]),
        ("tcp://broker", [("broker", 61616)]),
        ("tcp://", [("localhost", 61616)]),
        ("broker:5445", [("broker", 5445)]),
        ("tcp://[::1]:7", [("::1", 7)]),
        ("(tcp://a:1,tcp://b:2?useEpoll=1)?ha=true", [("a", 1), ("b", 2)]),
        ("(a:1, b:2)", [("a", 1), ("b", 2)]),
        ("tcp://a:1,tcp://b:2", [("a", 1), ("b", 2)]),
        ("tcp://a:1?ha=true#tcp://b:2,tcp://c:3", [("a", 1), ("b", 2), ("c", 3)]),
    ],
)
def test_a_uri_names_brokers(uri, expected):
    assert where(uri) == expected


def test_parameters_are_options_or_belong_to_the_transport():
    given = parse_uri(
        "(tcp://a:1?sslEnabled=true;consumerWindowSize=0,tcp://b:2)"
        "?reconnectAttempts=5&retryIntervalMultiplier=1.5&compressLargeMessage=TRUE&verifyHost=false"
    )

    assert given.options.reconnect_attempts == 5
    assert given.options.retry_interval_multiplier == 1.5
    assert given.options.compress_large_message is True
    assert given.options.consumer_window_size == 0
    first, second = given.connectors
    assert first.parameters == {
        "host": "a", "port": "1", "sslEnabled": "true", "verifyHost": "false",
    }  # fmt: skip
    assert second.parameters == {"host": "b", "port": "2", "verifyHost": "false"}


def test_a_uri_counts_more_than_what_is_given_beside_it():
    options = ClientOptions(user="me", call_timeout=5)

    given = parse_uri("tcp://a?callTimeout=7", options)

    assert (given.options.user, given.options.call_timeout) == ("me", 7)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("", "names no broker"),
        ("()", "names no broker"),
        ("(tcp://a", "a list is written"),
        ("(tcp://a)x", "a list is written"),
        ("vm://0", "scheme 'vm'"),
        ("tcp://a:b", "tcp://a:b"),
        ("tcp://a:99999", "tcp://a:99999"),
        ("tcp://a?reconnectAttempts=many", "reconnectAttempts=many"),
        ("tcp://a?reconnectAttempts=-2", "at least -1"),
        ("tcp://a?ha=maybe", "true or false"),
        ("tcp://a?sslEnabld=true", "no parameter sslEnabld; did you mean sslEnabled"),
        ("(tcp://a,tcp://b)?trustStorPath=x", "trustStorPath; did you mean trustStorePath"),
        ("tcp://a#tcp://b?reconnectAttemps=3", "reconnectAttemps; did you mean reconnectAttempts"),
        ("tcp://a?connectionTtl=5", "connectionTtl; did you mean connectionTTL"),
        ("tcp://a?fly=1", "no parameter fly$"),
    ],
)
def test_what_is_wrong_is_said(uri, reason):
    with pytest.raises(ValueError, match=reason):
        parse_uri(uri)


def test_brokers_are_discovered():
    given = parse_uri(
        "udp://231.7.7.7:9876?localBindAddress=127.0.0.1;localBindPort=5432"
        "&refreshTimeout=500&discoveryInitialWaitTimeout=70&ha=true"
    )

    assert given.connectors == ()
    assert given.discovery.values == {
        "group_address": "231.7.7.7",
        "group_port": 9876,
        "local_bind_address": "127.0.0.1",
        "local_bind_port": 5432,
    }
    assert (given.options.refresh_timeout, given.options.initial_wait_timeout) == (500, 70)
    given = parse_uri("discovery://dns?host=brokers&port=5")
    assert (given.discovery.endpoint, given.discovery.values["port"]) == ("dns", 5)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("udp://231.7.7.7", "udp://GROUP:PORT"),
        ("udp://10.0.0.1:1", "is not a class D address"),
        ("udp://224.0.0.0:1", "is reserved"),
        ("udp://231.7.7.7:1?localBindPort=5", "goes with localBindAddress"),
        ("udp://231.7.7.7:1?refreshTime=5", "refreshTime; did you mean refreshTimeout"),
        ("udp://231.7.7.7:1?localBindAdress=a", "did you mean localBindAddress"),
        ("udp://231.7.7.7:1?initialWaitTimeout=0", "at least 1"),
        ("discovery://x", "installed are dns, shared-folder"),
        ("discovery://dns", "endpoint dns needs host"),
        ("jgroups://channel?file=f.xml", "discovery://dns, discovery://shared-folder"),
        ("(udp://231.7.7.7:1,tcp://a:1)", "udp and discovery alone"),
    ],
)
def test_what_cannot_be_discovered_is_said(uri, reason):
    with pytest.raises(ValueError, match=reason):
        parse_uri(uri)


def test_what_only_artemis_clients_use_is_taken():
    given = parse_uri(
        "tcp://a?type=XA_CF&useEpoll=true&consumerMaxRate=5&cacheDestinations=true"
        "&deserializationAllowList=*&failoverOnInitialConnection=true&connect-timeout-millis=5"
    )
    assert given.connectors[0].parameters["useEpoll"] == "true"
    assert parse_uri("udp://231.7.7.7:9876?ha=true&type=CF&tcpNoDelay=true").options.ha


def test_a_password_is_not_shown():
    assert "secret" not in repr(parse_uri("tcp://a?password=secret"))


def test_waits_between_attempts_grow_up_to_their_limit():
    options = ClientOptions(
        retry_interval=100, retry_interval_multiplier=2.0, max_retry_interval=500
    )

    assert [options.retry_delay_s(n) for n in (0, 1, 2, 3, 10**6)] == [0.1, 0.2, 0.4, 0.5, 0.5]
