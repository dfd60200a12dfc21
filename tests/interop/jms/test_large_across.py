"""A large message of each type of JMS, from the clients of one protocol to those of another."""

from pathlib import Path

import pytest

from tests.interop.artemis import PeerUnavailableError
from tests.interop.fetched import cache_folder, compiled, jars_of
from tests.interop.jms.client import ScenarioClient
from tests.interop.joram.suite import JAVA, PROVIDERS
from tests.interop.our_broker import OurBroker

SOURCE = Path(__file__).parent / "java" / "LargeAcross.java"
NAMES = [provider.name for provider in PROVIDERS]


class LargeClient(ScenarioClient):
    """A JMS client of one protocol."""

    def __init__(self, provider, port):
        pom = JAVA / provider.name / "pom.xml"
        folder = cache_folder(f"large-{provider.name}", [pom, SOURCE])
        jars = f"{jars_of(pom, folder / 'jars')}/*"
        classes = compiled([SOURCE], jars, folder / "classes")
        url = provider.url.format(port=port, user=OurBroker.USER, password=OurBroker.PASSWORD)
        # What a client of Core or OpenWire makes of an object, it has to trust.
        super().__init__(
            f"{classes}:{jars}", "LargeAcross", url, options=(f"-Dfactory={provider.factory}",)
        )


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    broker = OurBroker(tmp_path_factory.mktemp("large"))
    made = {}
    try:
        for provider in PROVIDERS:
            made[provider.name] = LargeClient(provider, broker.port)
        yield made
    except PeerUnavailableError as error:
        pytest.skip(f"no JMS clients here: {error}")
    finally:
        for client in made.values():
            client.close()
        assert broker.end() == 0
        assert "Traceback" not in broker.log()


@pytest.mark.parametrize("sender", NAMES)
@pytest.mark.parametrize("receiver", NAMES)
def test_a_large_message_of_each_type_comes_over(clients, sender, receiver):
    queue = f"{sender}-{receiver}"
    clients[sender].run("send", f"{sender}-{sender}-{receiver}")
    own = clients[sender].run("receive", f"{sender}-{sender}-{receiver}")

    clients[sender].run("send", queue)

    assert clients[receiver].run("receive", queue) == own
    assert [one.split(":")[0] for one in own.split()] == [
        *("text", "bytes", "map", "stream", "object")
    ]
