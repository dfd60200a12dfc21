"""`broker check` asks Artemis's broker in its own terms."""

import uuid

from broker.cli.exit_status import run
from broker.cli.main import broker as commands


def check(broker, *words):
    login = ("--url", broker.uri, "--user", broker.USER, "--password", broker.PASSWORD)
    return run(commands, "broker", ["check", *map(str, (*words, *login))])


def test_a_node_of_artemis(artemis_broker, capsys):
    words = ("node", "--up", "--diskUsage", -1, "--memoryUsage", 99)
    assert check(artemis_broker, *words) == 0, capsys.readouterr().out
    # It stands alone: it is in no cluster, and knows of no primary.
    assert check(artemis_broker, "node", "--primary") == 1
    assert check(artemis_broker, "node", "--peers", 2) == 1


def test_a_queue_of_either(either_broker, capsys):
    name = f"check.{uuid.uuid4()}"
    login = ("--user", either_broker.USER, "--password", either_broker.PASSWORD)
    created = ["queue", "create", name, "--url", either_broker.uri, *login]
    assert run(commands, "broker", created) == 0

    words = ("queue", "--name", name, "--up", "--produce", 2, "--browse", 2, "--consume", 2)
    assert check(either_broker, *words) == 0, capsys.readouterr().out
    assert check(either_broker, "queue", "--name", name, "--browse", 1) == 1
