"""Artemis's JMS client works with our broker, unchanged."""

import pytest

from tests.broker.serve import BrokerProcess
from tests.interop.jms.client import JmsClient
from tests.interop.jms_outlives import (
    made_by,
    messages_outlive_kill_9,
    prepared_transactions_outlive_kill_9,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    running = BrokerProcess(tmp_path_factory.mktemp("jms"))
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module", params=[False, True], ids=["javax", "newest"])
def newest(request):
    return request.param


@pytest.fixture
def new_client(newest):
    with made_by(lambda broker: JmsClient(broker.port, newest=newest)) as new:
        yield new


@pytest.fixture(scope="module")
def client(broker, newest):
    with made_by(lambda broker: JmsClient(broker.port, newest=newest)) as new:
        yield new(broker)


@pytest.mark.parametrize(
    ("scenario", "found"),
    [
        ("text", "grüße €"),
        ("types", "5"),
        ("headers", "headers"),
        ("transactions", "true"),
        ("selectors", "[3, 5] [0, 1, 2, 4]"),
        ("topic", "[t] [t] []"),
        ("durable", "kept"),
        ("shared", "[0, 1, 2, 3]"),
        ("temporary", "pong"),
        ("browse", "[0, 1, 2] [0, 1, 2]"),
        ("priorities", "[9, 4, 1]"),
        ("recover", "true"),
        ("scheduled", "later"),
        ("expiry", "[here]"),
        ("groups", "6"),
        ("duplicates", "duplicate [once]"),
        ("xa", "-4"),  # XAER_NOTA: committed already
        ("noQueue", "InvalidSelectorException"),
        ("manage", "[null, 3, true, 1, 2, 1, failed, null, failed]"),
        (
            "notifications",
            "[BINDING_ADDED, CONSUMER_CREATED, CONSUMER_CLOSED, BINDING_REMOVED]",
        ),
    ],
)
def test_scenario(client, newest, scenario, found):
    # A broker for both clients, and an address of its own for each.
    assert client.run(scenario, f"place.{scenario}.{newest}") == found


def test_large_messages(client):
    assert client.run("large", "place.large", 5_000_000) == "5000000"


def test_large_messages_outlive_kill_9_and_leave_no_file(tmp_path, new_client):
    broker = BrokerProcess(tmp_path)
    client = new_client(broker)
    client.run("sendLarge", "q", 3_000_000)
    broker.kill()
    (tmp_path / "largemessages" / "999.msg").write_bytes(b"of a message that was never recorded")

    broker = BrokerProcess(tmp_path)
    assert len(list((tmp_path / "largemessages").iterdir())) == 1
    assert new_client(broker).run("receiveLarge", "q") == "3000000"

    assert broker.stop() == 0
    assert list((tmp_path / "largemessages").iterdir()) == []


def test_messages_outlive_kill_9(tmp_path, new_client):
    messages_outlive_kill_9(tmp_path, new_client)


@pytest.mark.parametrize(
    ("decision", "rest"), [("commit", ["m1", "new"]), ("rollback", ["m0", "m1"])]
)
def test_prepared_transactions_outlive_kill_9(tmp_path, new_client, decision, rest):
    assert prepared_transactions_outlive_kill_9(tmp_path, new_client, decision) == rest


def test_a_second_broker_on_the_same_folder_says_who_has_it(tmp_path):
    first = BrokerProcess(tmp_path)

    with pytest.raises(
        AssertionError, match=rf"in use by another broker .process {first.process.pid}"
    ):
        BrokerProcess(tmp_path)

    assert first.stop() == 0
