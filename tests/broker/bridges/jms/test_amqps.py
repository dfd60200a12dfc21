"""Bridges by AMQP over TLS, at brokers of ours; and what they say of certificates."""

import shutil
import socket
import threading

import pytest

pytest.importorskip("proton")

from broker.bridges.jms import BridgeConfigError, BridgeState
from broker.bridges.jms.amqp.factory import AmqpConnectionFactory
from broker.config.tls import server_context
from broker.config.transport import parse_transport
from broker.options import BrokerOptions
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bridges.jms.ends import WAIT_S, an_end, bridge, wait_for
from tests.broker.certificates import Authority

COUNT = 40


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("foreign"), "foreign")


@pytest.fixture
def secured(ours):
    """Two brokers with a plain acceptor, for the test's own client, and one with TLS."""
    key = ours.issue("server", host="localhost")
    with an_end(options=with_tls(key)) as source, an_end(options=with_tls(key)) as target:
        for end in (source, target):
            end.create("q")
        yield source, target


def with_tls(key, more=""):
    transport = parse_transport(
        "tls", f"tcp://localhost:0?sslEnabled=true;keyStorePath={key}{more}"
    )
    return BrokerOptions(
        acceptors=(
            AcceptorOptions(host="127.0.0.1", port=0),
            AcceptorOptions(name="tls", host="127.0.0.1", port=0, ssl=server_context(transport)),
        )
    )


def amqps(end, host="localhost", **parameters):
    port = end.embedded.broker.acceptors[1].port
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    made = AmqpConnectionFactory(f"amqps://{host}:{port}?{query}")
    return lambda: made


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_messages_go_over_tls_at_both_sides(secured, ours, host):
    source, target = secured
    sent = [f"m{number} {'x' * 1000 * number}" for number in range(COUNT)]
    source.send("q", *sent)
    trusting = {"trustStorePath": ours.certificate, "host": host}

    with bridge(
        amqps(source, **trusting), amqps(target, **trusting), max_batch_size=7, max_batch_time=20
    ) as moving:
        assert target.contents("q", COUNT) == sent
        assert moving.snapshot()["failures"] == 0
    wait_for(lambda: source.count("q") == 0)


def test_a_wrong_authority_is_one_clear_error_until_it_is_the_right_one(
    secured, ours, foreign, tmp_path, caplog
):
    source, target = secured
    source.send("q", "one")
    trusted = tmp_path / "trusted.pem"
    shutil.copy(foreign.certificate, trusted)

    with bridge(source, amqps(target, trustStorePath=trusted), failure_retry_interval=50) as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        port = target.embedded.broker.acceptors[1].port
        said = moving.why
        assert f"amqps://localhost:{port}: " in said
        assert "certificate verify failed: unable to get local issuer certificate" in said
        assert source.count("q") == 1
        # Files are read at each attempt.
        shutil.copy(ours.certificate, trusted)
        assert target.contents("q", 1) == ["one"]
    lines = [one for one in caplog.records if one.name == "broker.bridges"]
    assert {one.levelname for one in lines} <= {"WARNING", "INFO"}
    assert all(one.exc_info is None for one in lines)


def refused(secured, **parameters):
    """What a bridge says that does not get in."""
    source, target = secured
    with bridge(source, amqps(target, **parameters), failure_retry_interval=60_000) as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        return moving.why


def test_without_parameters_the_system_s_authorities_count(secured):
    assert "certificate verify failed" in refused(secured)


def test_a_file_that_is_not_there_is_named(secured, tmp_path):
    said = refused(secured, trustStorePath=tmp_path / "no.pem", trustStorePassword="hidden")

    assert str(tmp_path / "no.pem") in said
    assert "hidden" not in said


def test_a_server_of_another_name_is_refused(ours):
    key = ours.issue("elsewhere", host="elsewhere.example")
    with an_end() as source, an_end(options=with_tls(key)) as target:
        source.create("q")
        target.create("q")
        both = (source, target)
        assert "Hostname mismatch" in refused(both, trustStorePath=ours.certificate)
        source.send("q", "one")
        anyone = amqps(target, trustStorePath=ours.certificate, verifyHost="false")
        with bridge(source, anyone):
            assert target.contents("q", 1) == ["one"]


def test_a_server_that_wants_a_certificate_gets_it_or_refuses(ours):
    key = ours.issue("server", host="localhost")
    options = with_tls(key, f";trustStorePath={ours.certificate};needClientAuth=true")
    with an_end() as source, an_end(options=options) as target:
        source.create("q")
        target.create("q")
        source.send("q", "one")
        trusting = {"trustStorePath": ours.certificate}
        said = refused((source, target), **trusting)
        assert "amqps://localhost:" in said
        assert "a certificate of the client (keyStorePath)?" in said
        own = amqps(target, **trusting, keyStorePath=ours.issue("client"))
        with bridge(source, own):
            assert target.contents("q", 1) == ["one"]


def test_a_port_with_tls_is_named(secured):
    source, target = secured
    url = f"amqp://localhost:{target.embedded.broker.acceptors[1].port}"
    with bridge(
        source, lambda: AmqpConnectionFactory(url), failure_retry_interval=60_000
    ) as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        assert moving.why.endswith(
            f"{url}: the broker closed the connection; does the port expect TLS (amqps://)?"
        )


def test_a_port_without_tls_is_named(ours):
    with an_end() as source, socket.create_server(("127.0.0.1", 0)) as listening:
        source.create("q")

        def answer():
            with listening.accept()[0] as one:
                one.recv(100)
                one.sendall(b"AMQP\x03\x01\x00\x00")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"amqps://localhost:{listening.getsockname()[1]}"
        made = AmqpConnectionFactory(f"{url}?trustStorePath={ours.certificate}")
        with bridge(source, lambda: made, failure_retry_interval=60_000) as moving:
            assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
            assert f"{url}: " in moving.why
        thread.join(WAIT_S)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("amqps://h?trustStore=x", "no parameter 'trustStore'; amqps:// has trustStorePath, "),
        ("amqp://h?trustStorePath=x", "no parameter 'trustStorePath'; amqps:// has"),
        ("amqps://h:x?keyStorePassword=hidden", "url 'amqps://h:x': "),
    ],
)
def test_wrong_parameters_are_named(url, error):
    with pytest.raises(BridgeConfigError, match=error) as raised:
        AmqpConnectionFactory(url)
    assert "hidden" not in str(raised.value)
