"""`broker check`: success and failure of each question, against a broker that runs."""

import json
import shutil

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from broker.client import Client
from tests.broker.serve import BrokerProcess


@pytest.fixture(scope="module")
def url():
    running = BrokerProcess("-")
    yield f"tcp://127.0.0.1:{running.port}"
    running.stop()


@pytest.fixture
def session(url):
    with Client(url) as client, client.session() as session:
        yield session


@pytest.fixture
def check(url, capsys):
    def call(*words):
        status = run(commands, "broker", ["check", *map(str, words), "--url", url])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return call


def test_a_node_that_runs(check):
    status, lines, _ = check("node", "--memoryUsage", 99, "--up")

    assert (status, lines[0]) == (0, "Running NodeCheck")
    assert lines[1:3] == [
        "Checking that the node is started ... success",
        "Checking that at most 99 % of the memory is used ... success",
    ]
    assert lines[3].startswith("Checks run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: ")


def test_the_disk_of_a_node(capsys, tmp_path):
    running = BrokerProcess(tmp_path)
    try:
        space = shutil.disk_usage(tmp_path)
        used = int(100 - 100 * space.free / space.total)
        url = f"tcp://127.0.0.1:{running.port}"

        def check(limit):
            words = ["check", "node", "--diskUsage", str(limit), "--url", url]
            return run(commands, "broker", words), capsys.readouterr().out

        # Others write to this disk.
        assert check(min(99, used + 20))[0] == 0
        assert check(-1)[0] == 0
        if used > 21:
            status, out = check(used - 20)
            assert (status, "The DiskStoreUsage" in out) == (1, True)
    finally:
        running.stop()


def test_a_queue_is_asked_in_order_until_something_fails(check, session):
    session.create_queue("orders")

    assert check("queue", "--name", "orders")[0] == 0
    assert check("queue", "--name", "orders", "--browse", -1, "--consume", -1)[0] == 0
    status, lines, _ = check(
        *("queue", "--name", "orders", "--up", "--produce", 3, "--browse", 3, "--consume", 2)
    )
    assert status == 0
    assert [line.split(" ... ") for line in lines[1:5]] == [
        ["Checking that the queue orders exists and is not paused", "success"],
        ["Checking that a producer can send 3 messages to the queue orders", "success"],
        ["Checking that a consumer can browse 3 messages from the queue orders", "success"],
        ["Checking that a consumer can consume 2 messages from the queue orders", "success"],
    ]
    assert session.query_queue("orders").message_count == 1

    words = ("queue", "--name", "orders", "--browse", 2, "--consume", 1)
    status, lines, _ = check(*words)
    assert status == 1
    assert lines[1].endswith("... failure: Insufficient messages to browse: 1")
    assert lines[2].startswith("Checks run: 2, Failures: 1, Errors: 0, Skipped: 1,")
    status, lines, _ = check(*words, "--fail-at-end")
    assert (status, lines[2].endswith("success")) == (1, True)
    assert lines[3].startswith("Checks run: 2, Failures: 1, Errors: 0, Skipped: 0,")


def test_machines_get_an_object(check, session):
    session.create_queue("told")

    status, lines, _ = check("queue", "--name", "told", "--browse", 1, "--consume", 1, "--json")

    (line,) = lines
    found = json.loads(line)
    results = [(one["result"], one["reason"]) for one in found["checks"]]
    assert (status, found["check"]) == (1, "QueueCheck")
    assert results == [("failure", "Insufficient messages to browse: 0"), ("skipped", "")]


def test_too_few_messages_are_waited_for_until_the_timeout(check, session):
    session.create_queue("empty")

    status, lines, errors = check("queue", "--name", "empty", "--consume", 1, "--timeout", 500)

    assert status == 1
    # On a machine that stood still meanwhile the time was up before, here or in the client.
    told = ("Insufficient messages to consume: 0", "failure: timeout", "no answer in 0.5 s")
    assert any(text in line for line in (*lines, *errors) for text in told)


def test_a_paused_queue_is_a_failure_and_a_missing_one_an_error(check, session):
    session.create_queue("paused")
    session.manage("queue.paused", "pause")

    status, lines, _ = check("queue", "--name", "paused")
    assert (status, lines[1].split("... ")[1]) == (1, "failure: The queue is paused.")
    status, lines, _ = check("queue", "--name", "nowhere")
    assert (status, lines[1].split("... ")[1].startswith("error: ")) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("queue",), "Missing option '--name'"),
        (("queue", "--name", "q", "--browse", 0), "--browse 0 is neither -1 nor above 0"),
        (("queue", "--name", "q", "--produce", -1), "'--produce'"),
        (("node", "--diskUsage", 100), "--diskUsage 100 is neither 1 … 99 nor -1"),
        (("node", "--memoryUsage", 0), "'--memoryUsage'"),
        (("node", "--peers", "many"), "'--peers'"),
    ],
)
def test_wrong_usage_is_one_line(check, words, said):
    status, lines, errors = check(*words)

    assert (status, lines, len(errors)) == (2, [], 1)
    assert said in errors[0]


def test_a_broker_that_is_not_there_is_a_failure(capsys):
    status = run(commands, "broker", ["check", "node", "--url", "tcp://127.0.0.1:1"])

    assert (status, len(capsys.readouterr().err.splitlines())) == (1, 1)
