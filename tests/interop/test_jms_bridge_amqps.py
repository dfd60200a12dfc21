"""JMS bridges by AMQP over TLS: to and from Artemis, with its certificate or another one."""

import pytest

pytest.importorskip("proton")

from broker.bridges.jms import BridgeState, Destination
from broker.bridges.jms.amqp.factory import AmqpConnectionFactory
from tests.broker.certificates import Authority
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.bridged_peer import from_peer, to_peer
from tests.interop.fetched import PeerUnavailableError
from tests.interop.test_jms_bridge import make_queue, session_of, take
from tests.servers import free_port

COUNT = 20
WAIT_S = 30


class Amqps:
    """Artemis's acceptor for AMQP with TLS, which wants a certificate of its clients."""

    def __init__(self, broker, port, authority, trusted):
        self.user, self.password = broker.USER, broker.PASSWORD
        self.made = AmqpConnectionFactory(
            f"amqps://localhost:{port}?trustStorePath={trusted}"
            f"&keyStorePath={authority.issue('bridge')}",
            keeps_duplicate_ids=True,
        )

    def destination(self, name):
        return lambda: Destination.queue(name)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def artemis(authority, tmp_path_factory):
    """The broker, and the port of its acceptor with TLS."""
    folder = tmp_path_factory.mktemp("artemis_tls")
    port = free_port()
    key = authority.issue("server", host="localhost")
    parameters = (
        f"sslEnabled=true;protocols=AMQP;needClientAuth=true;keyStorePath={key};keyStoreType=PEM"
        f";trustStorePath={authority.certificate};trustStoreType=PEMCA"
    )
    acceptor = f'<acceptor name="tls">tcp://127.0.0.1:{port}?{parameters}</acceptor>'
    try:
        broker = ArtemisBroker(folder)
        broker.change_configuration(("<acceptors>", f"<acceptors>{acceptor}"))
        broker.start()
    except PeerUnavailableError as error:
        pytest.skip(str(error))
    yield broker, port
    broker.kill()


def test_there_and_back(our_broker, artemis, authority):
    broker, port = artemis
    peer = Amqps(broker, port, authority, authority.certificate)
    first, last, name = make_queue(our_broker), make_queue(our_broker), make_queue(broker)
    sent = [f"m{number} {'ü' * 1000 * number}" for number in range(COUNT)]
    with session_of(our_broker) as session, session.producer(first) as producer:
        for text in sent:
            producer.send(text)

    parameters = {"max_batch_size": 6, "max_batch_time": 50}
    with (
        to_peer(our_broker, first, peer, name, **parameters) as there,
        from_peer(our_broker, last, peer, name, **parameters) as back,
    ):
        found = take(our_broker, last, COUNT)
        assert there.snapshot()["failures"] == back.snapshot()["failures"] == 0

    assert [one.content for one in found] == sent


def test_a_wrong_authority_is_one_clear_error(our_broker, artemis, authority, tmp_path):
    broker, port = artemis
    foreign = Authority(tmp_path, "foreign")
    peer = Amqps(broker, port, authority, foreign.certificate)

    with to_peer(our_broker, make_queue(our_broker), peer, "x") as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        said = moving.why

    assert f"amqps://localhost:{port}: [SSL: CERTIFICATE_VERIFY_FAILED]" in said


def test_a_certificate_that_artemis_does_not_trust_is_refused(
    our_broker, artemis, authority, tmp_path
):
    broker, port = artemis
    peer = Amqps(broker, port, Authority(tmp_path, "foreign"), authority.certificate)

    with to_peer(our_broker, make_queue(our_broker), peer, "x") as moving:
        assert moving.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
        said = moving.why

    assert f"amqps://localhost:{port}: " in said
    assert said.count("certificate") == 1
