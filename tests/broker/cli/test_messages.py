"""`broker producer`, `consumer`, `browser`, `queue`, `address`: against a broker that runs."""

import base64
import json
import math
import sys
from unittest.mock import ANY

import pytest
from rich.cells import cell_len

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from broker.client import Client, make_message
from broker.client.errors import AnswerTimeout
from broker.model.bodies import encode_text
from broker.model.message_types import MessageType
from tests.broker.serve import BrokerProcess


@pytest.fixture(scope="module")
def url():
    running = BrokerProcess("-")
    yield f"tcp://127.0.0.1:{running.port}"
    running.stop()


@pytest.fixture(scope="module")
def storing_url(tmp_path_factory):
    """A broker that has a place for large messages."""
    running = BrokerProcess(tmp_path_factory.mktemp("data"))
    yield f"tcp://127.0.0.1:{running.port}"
    running.stop()


@pytest.fixture
def broker(url, capsys):
    """Run a command line: status, lines on standard output, and on standard error."""
    return commands_to(url, capsys)


@pytest.fixture
def storing(storing_url, capsys):
    """The same, with a broker that has a place for large messages."""
    return commands_to(storing_url, capsys)


def commands_to(url, capsys):

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
    assert rest[2] == ["taken: 3 of 1000 messages; none came for 0.1 s"]


def test_messages_are_shown_as_json_with_all_that_is_known(broker):
    to = ("--destination", "things")
    broker("producer", *to, "--message-count", 1, "--message-size", 3, "--property", "colour=red")
    broker("producer", *to, "--message-count", 1, "--text", "é", "--non-durable", "--priority", 9)

    _, lines, _ = broker("browser", *to, "--json")
    first, second = map(json.loads, lines)

    assert (first["body"], first["durable"], first["priority"]) == ("é", False, 9)
    assert second["body"] == {"base64": "AAAA"}
    assert second["properties"]["colour"] == "red"
    assert broker("browser", *to, "--selector", "colour = 'red'")[2] == ["seen: 1 message"]


def test_each_message_is_one_line_and_what_is_no_number_is_told(broker, url):
    assert broker("queue", "create", "odd")[0] == 0
    with Client(url) as client, client.session() as session:
        sender = session.producer("odd")
        sender.send("one line")
        sender.send("two\nlines\n", properties={"x": math.nan, "y": -math.inf})

    _, lines, _ = broker("browser", "--destination", "odd")
    assert lines == ["one line", '"two\\nlines\\n"']
    _, lines, _ = broker("consumer", "--destination", "odd", "--timeout", "100ms", "--json")

    def refused(constant):
        raise AssertionError(f"{constant} is not JSON")

    _, second = (json.loads(line, parse_constant=refused) for line in lines)
    assert second["body"] == "two\nlines\n"
    assert (second["properties"]["x"], second["properties"]["y"]) == ("NaN", "-Infinity")


def test_a_large_body_is_shown_as_what_it_is(storing, storing_url):
    text = "large, with é and 😀; " * 15_000
    assert storing("queue", "create", "large")[0] == 0
    with Client(storing_url) as client, client.session() as session:
        session.producer("large").send(text)
        session.producer("large").send({"text": text, "n": 7})
        session.producer("large").send(b"\1" * 300_000)
    with Client(storing_url, compress_large_message=True) as client, client.session() as session:
        session.producer("large").send(text)

    _, lines, _ = storing("browser", "--destination", "large")
    assert lines[0] == lines[3] == text
    assert json.loads(lines[1]) == {"text": text, "n": 7}
    _, lines, _ = storing("consumer", "--destination", "large", "--timeout", "100ms", "--json")
    bodies = [json.loads(line)["body"] for line in lines]
    assert bodies[0] == bodies[3] == text
    assert bodies[1] == {"text": text, "n": 7}
    assert base64.b64decode(bodies[2]["base64"]) == b"\1" * 300_000


def test_a_large_text_is_text_once_it_is_read(storing_url):
    text = "é" * 300_000
    with Client(storing_url) as client, client.session() as session:
        session.create_queue("read")
        session.producer("read").send(text)
        with session.consumer("read") as source:
            received = source.receive(5)
            with pytest.raises(ValueError, match=r"in parts: read\(\) it first"):
                _ = received.text
            received.read()
            assert received.text == text


def test_a_text_that_compression_made_small_is_the_same_once_it_is_read(url):
    text = "é" * 300_000
    with Client(url, compress_large_message=True) as client, client.session() as session:
        session.create_queue("packed")
        session.producer("packed").send(text)
        with session.consumer("packed") as source:
            received = source.receive(5)
            assert received.text == text
            assert received.read() == b"".join(received.chunks()) == encode_text(text)
            assert received.text == text


def test_a_body_that_is_not_what_its_type_says_is_shown_as_bytes(broker, url):
    assert broker("queue", "create", "wrong")[0] == 0
    wrong = make_message(b"\1\0\0\xff\xff")
    wrong.type = MessageType.TEXT
    with Client(url) as client, client.session() as session:
        session.producer("wrong").send(wrong)

    status, (line,), _ = broker("browser", "--destination", "wrong")
    assert (status, json.loads(line)) == (0, {"base64": "AQAA//8="})


@pytest.mark.parametrize("tx", [0, 2])
def test_what_was_sent_before_an_error_is_told(broker, url, tx):
    name = f"full{tx}"
    settings = {"maxSizeMessages": 5, "addressFullMessagePolicy": "FAIL"}
    assert broker("manage", "broker", "addAddressSettings", name, json.dumps(settings))[0] == 0
    assert broker("queue", "create", name)[0] == 0

    to = ("--destination", name, "--message-count", 600, "--text", "x", "--tx", tx)
    status, out, said = broker("producer", *to)

    held = int(broker("manage", f"queue.{name}", "messageCount")[1][0])
    assert (status, out) == (1, [])
    assert said[-3:-1] == [
        f"sent: {held} of 600 messages",
        f"address {name}: address-full-policy FAIL, max-size-bytes -1, max-size-messages 5",
    ]
    assert 0 < held < 600


def test_what_cannot_be_retried_is_status_1(broker):
    assert broker("queue", "create", "dead")[0] == 0
    assert broker("manage", "queue.dead", "retryMessage", "99999") == (1, ["false"], [])
    assert broker("manage", "queue.dead", "isPaused") == (0, ["false"], [])
    assert broker("manage", "queue.dead", "paused") == (0, ["false"], [])


def test_a_misspelt_queue_is_asked_for_by_the_nearest_name(broker):
    assert broker("queue", "create", "invoices")[0] == 0
    status, _, (line,) = broker("queue", "why", "invocies")
    assert status == 1
    assert line.endswith("did you mean invoices?")
    assert broker("queue", "why", "why-not-this-one")[2][0].endswith("queue.why-not-this-one")


def test_the_list_of_queues_has_none_of_its_own(broker, url):
    assert broker("queue", "create", "listed")[0] == 0
    with Client(url) as client, client.session() as session:
        session.create_queue("answers.of-others", durable=False, temporary=True)
        rows = [json.loads(one) for one in broker("queue", "stat", "--json")[1]]
        assert [one["queue"] for one in rows if "answers" in one["queue"]] == ["answers.of-others"]
    (row,) = [one for one in rows if one["queue"] == "listed"]
    assert (row["paused"], row["temporary"], row["paging"]) == (False, False, False)


def test_limits_of_an_address_are_shown(broker):
    settings = {"maxSizeBytes": 100_000, "addressFullMessagePolicy": "BLOCK"}
    broker("manage", "broker", "addAddressSettings", "limited", json.dumps(settings))
    assert broker("queue", "create", "limited")[0] == 0
    broker("producer", "--destination", "limited", "--message-count", 1)

    (line,) = broker("address", "show", "limited", "--json")[1]
    found = json.loads(line)
    assert 1000 < found["size"] < 100_000
    assert (found["paging"], found["pages"]) == (False, 0)
    assert (found["max_size_bytes"], found["address_full_policy"]) == (100_000, "BLOCK")


@pytest.mark.parametrize(("size", "length"), [("1K", 1024), ("2KiB", 2048), ("3", 3), ("0", 0)])
def test_sizes_and_times_have_units(broker, size, length):
    to = ("--destination", "queue://sized")
    assert broker("producer", *to, "--message-count", 1, "--message-size", size)[0] == 0

    status, (line,), _ = broker("consumer", *to, "--timeout", "0.2s", "--json")

    assert status == 0
    assert len(base64.b64decode(json.loads(line)["body"]["base64"])) == length


def test_a_table_is_readable_whatever_a_queue_is_called(broker):
    names = ["orders", "注文キュー", "a" * 100 + "z" * 100]
    for name in names:
        assert broker("queue", "create", name, "--address", "wide")[0] == 0

    _, table, _ = broker("queue", "stat")

    rows = [line for line in table if " wide " in line or line.startswith("queue ")]
    # What stands left of the addresses takes as many columns in each line.
    places = {cell_len(line.partition("  ANYCAST")[0]) for line in rows[1:]}
    assert len(rows) == 4
    assert len(places) == 1
    assert any(line.startswith("aaa") and "…" in line and "zzz  " in line for line in rows)
    for name in names:
        broker("queue", "delete", name)


def test_queues_and_addresses_are_made_shown_emptied_and_deleted(broker):
    assert broker("queue", "create", "bills", "--address", "shop", "--multicast")[0] == 0
    broker("producer", "--destination", "topic://shop", "--message-count", 5)

    _, lines, _ = broker("queue", "stat", "--queue", "bill", "--json")
    (row,) = map(json.loads, lines)
    assert (row["queue"], row["address"], row["messages"]) == ("bills", "shop", 5)
    _, table, _ = broker("queue", "stat", "--queue", "bill")
    assert table[0].split()[:4] == ["queue", "address", "type", "messages"]
    assert table[1].split()[:4] == ["bills", "shop", "MULTICAST", "5"]
    _, shown, _ = broker("address", "show", "shop")
    assert shown[0].startswith("Address [name=shop, ")
    assert shown[1:] == ["Queue [name=bills, address=shop]"]
    _, lines, _ = broker("address", "show", "shop", "--json")
    assert list(map(json.loads, lines)) == [
        {
            "address": "shop",
            "routing_types": ["MULTICAST"],
            "auto_created": True,
            "paused": False,
            "queues": 1,
            "messages": 5,
            "size": ANY,
            "paging": False,
            "pages": 0,
            "max_size_bytes": -1,
            "max_size_messages": -1,
            "address_full_policy": "PAGE",
            "bindings": ["bills"],
        }
    ]
    _, lines, _ = broker("address", "show", "--json")
    assert "shop" in [json.loads(line)["address"] for line in lines]
    assert broker("queue", "purge", "bills")[2] == ["purged: 5 messages"]
    assert broker("queue", "delete", "bills")[2] == ["deleted: bills"]

    assert broker("address", "create", "news", "--multicast")[2] == ["created: news"]
    names = broker("address", "show")[1]
    assert "news" in names
    # Not the one that the command itself had its answers by.
    assert not any(one.startswith("answers.") for one in names)
    assert "news" in broker("address", "show", "news")[1][0]
    assert broker("address", "delete", "news")[2] == ["deleted: news"]
    assert "news" not in broker("address", "show")[1]


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("queue", "delete", "not-there"), 1, "not-there"),
        (("browser", "--destination", "queue://not-there"), 1, "not-there"),
        (("consumer", "--destination", "file://x"), 2, "neither queue://NAME nor topic://NAME"),
        (("producer", "--destination", "q", "--property", "red"), 2, "is not NAME=VALUE"),
        (("producer", "--destination", "q", "--message-count", "0"), 2, "--message-count"),
        (("producer", "--destination", "q", "--message-size", "-1"), 2, "--message-size"),
        (("producer", "--destination", "q", "--message-size", "big"), 2, "--message-size"),
        (("consumer", "--destination", "q", "--timeout", "soon"), 2, "--timeout"),
        (("consumer", "--destination", "q", "--timeout", "-1s"), 2, "--timeout"),
        (("consumer", "--destination", "q", "--timeout", ""), 2, "--timeout"),
    ],
)
def test_what_cannot_be_is_one_line(broker, words, status, text):
    found = broker(*words)

    assert found[0] == status
    assert text in found[2][-1]
    assert found[1] == []


def test_no_broker_and_a_wrong_url_are_one_line(capsys):
    words = ["browser", "--destination", "q", "--url"]
    assert run(commands, "broker", [*words, "tcp://127.0.0.1:1"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1

    assert run(commands, "broker", [*words, "carrier-pigeon://roof"]) == 2
    assert "--url: " in capsys.readouterr().err


def test_progress_is_told_on_a_terminal(broker, monkeypatch):
    monkeypatch.setattr("journal.commands.progress.TELL_EVERY_S", 0)
    monkeypatch.setattr("broker.cli.queues.TELL_EVERY_S", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    to = ("--destination", "queue://long")

    sent = broker("producer", *to, "--message-count", 600)
    taken = broker("consumer", *to, "--message-count", 2)
    purged = broker("queue", "purge", "long")

    assert (sent[0], taken[0], purged[0]) == (0, 0, 0)
    assert any("100%" in line for line in sent[2])
    assert any("take  2" in line for line in taken[2])
    assert purged[2][-1] == "purged: 598 messages"


def test_a_question_without_an_answer_is_refused_by_name(broker, url):
    assert broker("queue", "create", "silent")[0] == 0

    with (
        Client(url) as client,
        client.session() as session,
        pytest.raises(AnswerTimeout, match="no answer from 'silent'"),
    ):
        session.request("silent", "anybody?", timeout_s=0.05)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("queue", "purge"), "Missing argument 'NAME'."),
        (("queue", "delete", "a", "--name", "a"), "give the name once"),
        (("queue", "create", "a", "--purge-on-no-consumers", "--preserve-on-no-consumers"), "exc"),
        (("address", "update", "--name", "a", "--no-anycast"), "an address has a routing type"),
    ],
)
def test_names_and_settings_that_do_not_fit_are_refused(broker, words, said):
    status, _, wrong = broker(*words)

    assert status == 2
    assert said in wrong[-1]


def test_any_operation_and_attribute_is_called(broker):
    for name in ("managed", "aside"):
        assert broker("queue", "create", name)[0] == 0
    broker("producer", "--destination", "managed", "--message-count", 3)

    assert broker("manage", "queue.managed", "messageCount") == (0, ["3"], [])
    assert broker("manage", "queue.managed", "pause") == (0, [], ["done"])
    assert broker("manage", "queue.managed", "paused", "--json") == (0, ["true"], [])
    # A text, where the operation takes one, though it is JSON as well.
    wanted = json.dumps({"name": "managed", "max-consumers": 2})
    status, (said,), _ = broker("manage", "broker", "updateQueue", wanted)
    assert (status, json.loads(said)["max-consumers"]) == (0, 2)
    moved = broker("manage", "queue.managed", "moveMessages", "", "aside")
    assert moved == (0, ["3"], [])
    _, lines, _ = broker("manage", "queue.aside", "listMessages", "")
    assert [one["durable"] for one in json.loads("\n".join(lines))] == [True] * 3
    _, (line,), _ = broker("manage", "queue.aside", "listMessagesAsJSON", "null")
    assert len(json.loads(line)) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("queue.nowhere", "pause"), "AMQ229067: Cannot find resource with name queue.nowhere"),
        (("broker", "dance"), "AMQ229069: no operation dance/0"),
        (("broker", "createAddress", "a"), "(string) fits none of createAddress(String, String)"),
        (("broker", "getName", "5"), "(string) fits none of getName()"),
    ],
)
def test_what_cannot_be_managed_is_one_line(broker, words, said):
    status, out, err = broker("manage", *words)

    assert (status, out, len(err)) == (1, [], 1)
    assert said in err[0]
