"""`broker perf`: what is sent and received is counted, and how long it took."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker.cli.exit_status import run
from broker.cli.latencies import Latencies
from broker.cli.load import Measured
from broker.cli.main import broker as commands
from broker.cli.perf import Limits, intervals
from broker.cli.perf_view import PerfView
from broker.client import Client
from tests.broker.serve import BrokerProcess

ROOT = Path(__file__).resolve().parents[3]
END_S = 120


@pytest.fixture(scope="module")
def url():
    running = BrokerProcess("-")
    yield f"tcp://127.0.0.1:{running.port}"
    running.stop()


@pytest.fixture
def perf(url, capsys):
    def call(*words):
        status = run(commands, "broker", ["perf", *map(str, words), "--url", url])
        said = capsys.readouterr()
        return status, said.out, said.err.splitlines()

    return call


def summary_of(out):
    samples = [json.loads(line) for line in out.splitlines()]
    assert [one["sample"] for one in samples] == ["interval"] * (len(samples) - 1) + ["summary"]
    return samples[-1]


@pytest.mark.parametrize(
    "options",
    [
        ("--max-pending", 20),
        ("--commit-interval", 7),
        ("--producers", 3, "--consumers", 2, "--persistent"),
        ("--num-destinations", 2, "--rate", 2000),
    ],
    ids=["pending", "transactions", "many", "destinations"],
)
def test_everything_sent_is_received(perf, options, request):
    name = f"queue://client.{request.node.callspec.id}"

    status, out, said = perf("client", name, "--message-count", 100, "--json", *options)

    assert (status, said) == (0, [])
    found = summary_of(out)
    assert (found["sent"], found["completed"], found["received"]) == (100, 100, 100)
    for name in ("sending_us", "transfer_us"):
        figures = list(found[name].values())[1:]
        assert figures == sorted(figures)
        assert figures[-1] > 0


def test_every_consumer_of_a_topic_gets_everything(perf):
    words = ("client", "topic://news", "--message-count", 50, "--consumers", 3, "--json")

    found = summary_of(perf(*words)[1])

    assert (found["sent"], found["received"]) == (50, 150)


def test_what_a_producer_sends_a_consumer_gets_later(perf, url):
    words = ("queue://later", "--message-count", 30, "--json")
    assert (
        summary_of(perf("producer", *words, "--message-size", 7, "--group", "g")[1])["sent"] == 30
    )
    with Client(url) as client, client.session() as session:
        first = next(session.browse("later"))
        assert (len(first.content), first.get("_AMQ_GROUP_ID")) == (7, "g")
        assert not first.message.durable
    found = summary_of(perf("consumer", *words)[1])
    assert (found["sent"], found["received"]) == (0, 30)


def test_people_get_a_table(perf):
    status, out, _ = perf("client", "--message-count", 10)

    lines = out.splitlines()
    assert (status, lines[0].startswith("all: ")) == (0, True)
    row = next(line for line in lines if "received" in line)
    assert row.split("│")[2].strip() == "10"


def test_a_table_that_is_piped_is_as_wide_as_it_is(capsys):
    measured = Measured(10**15, 10**15, 10**15, elapsed_s=1.0)
    for latencies in (measured.sending, measured.transfer):
        for _ in range(3):
            latencies.add(10**18)

    with PerfView(is_json=False) as view:
        view.summary(measured)

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) > 120
    assert "…" not in "".join(lines)
    assert sum("1,000,000,000,000,000" in line for line in lines) == 3


def test_it_ends_in_time_and_the_warm_up_does_not_count(perf):
    words = ("--warmup", 0.2, "--duration", "300ms", "--rate", 100, "--message-size", "1K")

    status, out, _ = perf("producer", "queue://timed", "--json", *words)

    samples = [json.loads(line) for line in out.splitlines()]
    counted = [one for one in samples[:-1] if not one["warmup"]]
    assert status == 0
    # What came between the last interval and the end counts too.
    assert samples[-1]["sent"] >= sum(one["sent"] for one in counted)


def test_intervals_end_where_the_warm_up_and_the_time_do():
    times = iter([0.0, 1.0, 1.4, 2.4, 3.0])
    limits = Limits(message_count=0, duration_s=1.4, warmup_s=1.4)

    found = [
        (round(length_s, 6), warm) for length_s, warm in intervals(limits, lambda: next(times))
    ]

    assert found == [(1.0, True), (0.4, True), (1.0, False), (0.4, False)]


def test_an_interrupt_ends_it_with_the_summary(url):
    command = ["perf", "client", "queue://endless", "--json", "--url", url, "--rate", "50"]
    running = subprocess.Popen(
        [sys.executable, "-m", "broker.cli.main", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert json.loads(running.stdout.readline())["sample"] == "interval"
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=END_S)
    finally:
        running.kill()

    assert running.returncode == 130
    assert json.loads(out.splitlines()[-1])["sample"] == "summary"


def test_the_disk_of_an_instance_is_measured(tmp_path, capsys):
    made = tmp_path / "instance"
    assert run(commands, "broker", ["create", str(made), "--password", "p", "--no-web"]) == 0
    capsys.readouterr()
    options = ["--count", "50", "--type", "NIO", "--no-suggest", "--json"]

    status = run(commands, "broker", ["perf", "journal", str(made), *options])

    found = json.loads(capsys.readouterr().out)
    assert (status, found["count"], found["type"]) == (0, 50, "NIO")
    assert found["append"]["records_per_s"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("client", "mail://q"), "neither queue://NAME nor topic://NAME"),
        (("producer", "--max-pending", 0), "'--max-pending'"),
        (("consumer", "--duration", "long"), "'--duration'"),
        (("producer", "--message-size", "-1"), "-1 is not a valid size: 0 or more"),
        (("producer", "--consumers", 2), "No such option"),
        (("client", "--message-count", 1, "--consumer-url", "http://x"), "--url: "),
    ],
)
def test_wrong_usage_is_one_line(perf, words, said):
    status, out, lines = perf(*words)

    assert (status, out, len(lines)) == (2, "", 1)
    assert said in lines[0]


def test_wrong_options_of_the_disk_are_one_line(capsys):
    for words in (["nowhere"], ["--count", "none"]):
        assert run(commands, "broker", ["perf", "journal", *words]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_no_broker_there_is_one_line(capsys):
    words = ["perf", "client", "--message-count", "1", "--url", "tcp://127.0.0.1:1"]

    assert run(commands, "broker", words) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_percentiles_are_right_to_a_thousandth():
    some, others = Latencies(), Latencies()
    for number in range(1, 100_001):
        (some if number % 2 else others).add(number * 1_000_003)
    some.merge(others)

    assert len(some) == 100_000
    for share in (0.5, 0.99, 0.999):
        wanted = share * 100_000 * 1_000_003
        assert wanted * 0.998 <= some.percentile_ns(share) <= wanted
    assert some.maximum_ns == 100_000 * 1_000_003
    assert Latencies().as_object()["p99"] == 0
