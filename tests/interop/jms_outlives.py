"""What a JMS client finds again of a killed broker of ours; any client with the same scenarios."""

import contextlib
import re

import pytest

from tests.broker.serve import BrokerProcess
from tests.interop.fetched import PeerUnavailableError


@contextlib.contextmanager
def made_by(make):
    """Clients of `make(broker)`, which are closed at the end; the test is skipped without Java."""
    with contextlib.ExitStack() as stack:

        def new(broker):
            try:
                client = make(broker)
            except PeerUnavailableError as missing:
                pytest.skip(str(missing))
            stack.callback(client.close)
            return client

        yield new


def texts(answer):
    """Of a scenario's messages, without what stands between them and behind them."""
    return re.findall(r"\w+", answer)


def messages_outlive_kill_9(folder, new_client):
    """They come once, and what was acknowledged stays so."""
    broker = BrokerProcess(folder)
    assert new_client(broker).run("send", "q", 20, "m") == "20"
    broker.kill()

    broker = BrokerProcess(folder)
    found = texts(new_client(broker).run("receive", "q"))

    assert found == [f"m{number}" for number in range(20)]
    broker.kill()
    broker = BrokerProcess(folder)
    assert texts(new_client(broker).run("receive", "q")) == []
    assert broker.stop() == 0


def prepared_transactions_outlive_kill_9(folder, new_client, decision):
    """What is in the queue once a branch was decided behind the crash."""
    broker = BrokerProcess(folder)
    client = new_client(broker)
    client.run("send", "q", 2, "m")
    assert client.run("xaPrepare", "q") == "m0"
    broker.kill()

    broker = BrokerProcess(folder)
    client = new_client(broker)
    assert client.run("xaRecover", decision) == "1"
    assert client.run("xaRecover", decision) == "0"

    found = texts(client.run("receive", "q"))
    assert broker.stop() == 0
    return found
