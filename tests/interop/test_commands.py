"""`broker queue`, `address`, `consumer`: on a broker of Artemis as on ours, in Artemis's words."""

import itertools
import json

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker as commands

pytestmark = pytest.mark.slow

_numbers = itertools.count()


@pytest.fixture
def name():
    """One that no test has used."""
    return f"commands.{next(_numbers)}"


@pytest.fixture
def broker(either_broker, capsys):
    """Run a command line: status, lines on standard output, and on standard error."""
    login = ("--user", either_broker.USER, "--password", either_broker.PASSWORD)

    def call(*words):
        status = run(commands, "broker", [*map(str, words), "--url", either_broker.uri, *login])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return call


def row(broker, queue):
    status, lines, _ = broker("queue", "stat", "--queueName", queue, "--json")
    assert status == 0
    return json.loads(*lines)


def test_messages_in_the_words_of_artemis(broker, name):
    to = ("--destination", f"queue://{name}")
    sent = broker("producer", *to, "--message-count", 5, "--message", "hi", "--non-persistent")
    assert sent[0] == 0
    assert row(broker, name)["messages"] == 5
    seen = broker("browser", *to, "--filter", "AMQPriority = 4")
    assert (seen[0], seen[1]) == (0, ["hi"] * 5)

    taken = broker("consumer", *to, "--message-count", 3, "--commit-interval", 2)
    rest = broker("consumer", *to, "--receive-timeout", 300, "--break-on-null")

    assert (taken[1], rest[1], rest[2]) == (
        ["hi"] * 3,
        ["hi"] * 2,
        ["taken: 2 of 1000 messages; none came for 0.3 s"],
    )


def test_queues_in_the_words_of_artemis(broker, name):
    made = ("--anycast", "--no-durable", "--max-consumers", 4, "--auto-create-address")
    assert broker("queue", "create", "--name", name, "--address", name, *made)[0] == 0
    assert broker("queue", "update", "--name", name, "--max-consumers", 7)[0] == 0
    broker("producer", "--destination", name, "--message-count", 3)
    assert row(broker, name)["messages"] == 3

    assert broker("queue", "purge", "--name", name)[2] == ["purged: 3 messages"]
    assert broker("queue", "delete", "--name", name, "--autoDeleteAddress")[0] == 0

    assert name not in broker("address", "show")[1]


def test_addresses_in_the_words_of_artemis(broker, name):
    assert broker("address", "create", "--name", name, "--anycast", "--no-multicast")[0] == 0
    assert broker("address", "update", "--name", name, "--anycast", "--multicast")[0] == 0
    assert broker("queue", "create", f"{name}.q", "--address", name)[0] == 0

    status, lines, _ = broker("address", "show", "--bindings", "--json")

    assert status == 0
    found = next(one for one in map(json.loads, lines) if one["address"] == name)
    assert sorted(found["routing_types"]) == ["ANYCAST", "MULTICAST"]
    assert found["bindings"] == [f"{name}.q"]
    assert name in broker("address", "show", "--name", name)[1][0]
    assert broker("address", "delete", "--name", name, "--force")[0] == 0
    assert name not in broker("address", "show")[1]


def test_every_queue_is_shown(broker, name):
    assert broker("queue", "create", name)[0] == 0

    status, lines, _ = broker("queue", "stat")

    assert status == 0
    assert any(line.split()[0] == name for line in lines)


def test_operations_and_attributes_of_management(broker, name):
    assert broker("queue", "create", name)[0] == 0
    broker("producer", "--destination", name, "--message-count", 3)

    assert broker("manage", f"queue.{name}", "messageCount")[:2] == (0, ["3"])
    assert broker("manage", f"queue.{name}", "pause") == (0, [], ["done"])
    assert broker("manage", f"queue.{name}", "paused")[:2] == (0, ["true"])
    assert broker("manage", f"queue.{name}", "removeMessages", "")[:2] == (0, ["3"])
    assert broker("manage", f"queue.{name}", "dance")[0] == 1
