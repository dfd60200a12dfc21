"""`broker producer`, `consumer`, `browser`, `queue`, `address`: against a broker that runs."""

import json

import pytest

from broker.cli.guard import run
from broker.cli.main import broker as commands
from tests.broker.serve import BrokerProcess


@pytest.fixture(scope="module")
def url():
    running = BrokerProcess("-")
    yield f"tcp://127.0.0.1:{running.port}"
    running.stop()


@pytest.fixture
def broker(url, capsys):
    """Run a command line: status, lines on standard output, and on standard error."""

    def call(*words):
        status = run(commands, "broker", [*map(str, words), "--url", url])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return call


@pytest.mark.parametrize("tx", [0, 4])
def test_messages_go_to_a_queue_and_come_back(broker, tx):
    to = ("--destination", f"queue://orders{tx}", "--tx", tx)
    sent = broker("producer", *to, "--message-count", 10, "--text", "ten crates")
    assert sent[0] == 0
    assert sent[2][-1].startswith("sent: 10 messages in ")

    seen = broker("browser", *to[:2])
    assert (seen[0], seen[1], seen[2]) == (0, ["ten crates"] * 10, ["seen: 10 messages"])
    taken = broker("consumer", *to, "--message-count", 7)
    assert (taken[0], taken[1], taken[2]) == (0, ["ten crates"] * 7, ["taken: 7 messages"])
    rest = broker("consumer", *to, "--timeout", 0.1)
    assert rest[2] == ["taken: 3 messages"]


def test_messages_are_shown_as_json_with_all_that_is_known(broker):
    to = ("--destination", "things")
    broker("producer", *to, "--message-count", 1, "--message-size", 3, "--property", "colour=red")
    broker("producer", *to, "--message-count", 1, "--text", "é", "--non-durable", "--priority", 9)

    _, lines, _ = broker("browser", *to, "--json")
    first, second = map(json.loads, lines)

    assert (first["body"], first["durable"], first["priority"]) == ("é", False, 9)
    assert second["body"] == {"base64": "AAAA"}
    assert second["properties"]["colour"] == "red"
    assert broker("browser", *to, "--selector", "colour = 'red'")[2] == ["seen: 1 messages"]


def test_queues_and_addresses_are_made_shown_emptied_and_deleted(broker):
    assert broker("queue", "create", "bills", "--address", "shop", "--multicast")[0] == 0
    broker("producer", "--destination", "topic://shop", "--message-count", 5)

    _, lines, _ = broker("queue", "stat", "--queue", "bill", "--json")
    (row,) = map(json.loads, lines)
    assert (row["queue"], row["address"], str(row["messages"])) == ("bills", "shop", "5")
    _, table, _ = broker("queue", "stat", "--queue", "bill")
    assert table[0].split()[:4] == ["queue", "address", "type", "messages"]
    assert table[1].split()[:4] == ["bills", "shop", "MULTICAST", "5"]
    assert broker("queue", "purge", "bills")[2] == ["purged: 5 messages"]
    assert broker("queue", "delete", "bills")[2] == ["deleted: bills"]

    assert broker("address", "create", "news", "--multicast")[2] == ["created: news"]
    assert "news" in broker("address", "show")[1]
    assert "news" in broker("address", "show", "news")[1][0]
    assert broker("address", "delete", "news")[2] == ["deleted: news"]
    assert "news" not in broker("address", "show")[1]


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("queue", "delete", "nobody-s"), 1, "nobody-s"),
        (("browser", "--destination", "queue://nobody-s"), 1, "nobody-s"),
        (("consumer", "--destination", "file://x"), 2, "neither queue://NAME nor topic://NAME"),
        (("producer", "--destination", "q", "--property", "red"), 2, "is not NAME=VALUE"),
        (("producer", "--destination", "q", "--message-count", "0"), 2, "--message-count"),
    ],
)
def test_what_cannot_be_is_one_line(broker, words, status, text):
    found = broker(*words)

    assert found[0] == status
    assert text in found[2][-1]
    assert found[1] == []


def test_nobody_there_and_a_wrong_url_are_one_line(capsys):
    words = ["browser", "--destination", "q", "--url"]
    assert run(commands, "broker", [*words, "tcp://127.0.0.1:1"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1

    assert run(commands, "broker", [*words, "carrier-pigeon://roof"]) == 2
    assert "--url: " in capsys.readouterr().err
