"""Artemis's JMS client comes in by TLS, with certificates on both sides; or does not."""

import pytest

from tests.broker.certificates import Authority
from tests.interop.artemis import PeerUnavailableError
from tests.interop.jms.client import JmsClient, JmsError
from tests.interop.our_broker import OurBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def broker(authority, tmp_path_factory):
    server = authority.issue("server", host="localhost")
    parameters = (
        f"sslEnabled=true;keyStorePath={server};trustStorePath={authority.certificate}"
        ";needClientAuth=true"
    )
    change = ("tcp://127.0.0.1:0<", f"tcp://127.0.0.1:0?{parameters}<")
    running = OurBroker(tmp_path_factory.mktemp("broker"), change)
    yield running
    assert running.end() == 0, running.log()[-2000:]


@pytest.fixture
def run(broker, authority):
    """`run(scenario, name, **parameters)`: by a client with TLS and more in its URL."""
    made = []

    def run(*words, host="localhost", **parameters):
        parameters = {
            "sslEnabled": "true",
            "trustStorePath": authority.certificate,
            "trustStoreType": "PEMCA",
            **parameters,
        }
        try:
            client = JmsClient(broker.port, broker.USER, broker.PASSWORD, host=host, **parameters)
        except PeerUnavailableError as missing:
            pytest.skip(str(missing))
        made.append(client)
        return client.run(*words)

    yield run
    for client in made:
        client.close()


def test_a_client_with_a_certificate_gets_in(run, authority):
    own = {"keyStorePath": authority.issue("client"), "keyStoreType": "PEM"}

    assert run("text", "tls", **own) == "grüße €"


def test_a_client_without_one_does_not(run):
    with pytest.raises(JmsError):
        run("text", "tls")


def test_a_client_with_one_of_somebody_else_does_not(run, tmp_path):
    own = {"keyStorePath": Authority(tmp_path, "foreign").issue("client"), "keyStoreType": "PEM"}

    with pytest.raises(JmsError):
        run("text", "tls", **own)
