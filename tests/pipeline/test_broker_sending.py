"""Rows are sent into a broker once, however often; without Spark."""

import dataclasses

import pytest

from broker.client import ClientError
from journal.errors import OptionError, WrongUse
from pipeline.broker_options import BrokerOptions
from pipeline.broker_sending import Sender, overloaded_id_caches
from tests.broker.serve import BrokerProcess


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.stop()


@pytest.fixture
def options(served, request):
    """Of a write to an address of the test's own."""
    given = {
        "url": f"tcp://127.0.0.1:{served.port}",
        "address": request.node.name,
        "routingType": "ANYCAST",
    }
    return BrokerOptions.of_write(given)


def send(options, rows, prefix="job:0"):
    with Sender(options, prefix) as sender:
        for row in rows:
            sender.send(row)
        sender.finish()


def texts(options):
    with options.client() as client, client.session() as session:
        return [message.text for message in session.browse(options.address)]


def test_a_task_that_is_done_again_sends_what_is_missing(options):
    rows = [{"text": text, "properties": [("n", "1"), ("m", "2")]} for text in "abcabd"]
    send(options, rows[:3])

    send(options, [{**row, "properties": row["properties"][::-1]} for row in reversed(rows)])

    assert sorted(texts(options)) == sorted("abcabd")


def test_other_tasks_are_other_rows(options):
    send(options, [{"text": "a"}])
    send(options, [{"text": "a"}], "job:1")

    assert texts(options) == ["a", "a"]


def test_an_id_of_the_row_alone_counts(options):
    for prefix in ("job:0", "job:1"):
        send(options, [{"text": prefix, "duplicate_id": "mine"}], prefix)

    assert texts(options) == ["job:0"]


def test_what_the_address_could_not_remember_is_not_sent(options):
    few = dataclasses.replace(options, id_cache_size=2)

    with pytest.raises(WrongUse, match=r"more than 2 rows .* \(id-cache-size\)"):
        send(few, [{"text": text} for text in "abc"])


def test_rows_for_an_address_that_nobody_makes_are_refused(options):
    with options.client() as client, client.session() as session:
        none = '{"autoCreateAddresses": false, "autoCreateQueues": false}'
        session.manage("broker", "addAddressSettings", options.address, none)

        with pytest.raises(
            WrongUse, match=r"address .* does not exist, .* \(auto-create-addresses\)"
        ):
            send(dataclasses.replace(options, routing_type=None), [{"text": "a"}])

        session.manage("broker", "createAddress", options.address, "ANYCAST")
        session.create_queue(options.address)
        send(options, [{"text": "a"}])
    assert texts(options) == ["a"]


def test_a_batch_that_could_not_be_repeated_is_told():
    (told,) = overloaded_id_caches({"a": 3, "b": 2}, {"a": 2, "b": 2})

    assert told.startswith("3 rows were sent to address a, which keeps 2 duplicate ids")


def test_the_size_of_the_cache_is_that_of_the_broker(options):
    with Sender(options, "job:0") as sender:
        sender.send({"text": "a"})

        assert sender.sizes == {options.address: 20_000}


def test_a_broker_that_is_not_there_is_one_error():
    with pytest.raises(OptionError, match="url: "):
        BrokerOptions.of_write({"url": "http://nowhere"})
    nowhere = BrokerOptions.of_write(
        {"url": "tcp://127.0.0.1:1", "address": "a", "reconnectTimeoutMs": "0"}
    )
    with pytest.raises(ClientError):
        send(nowhere, [{"text": "a"}])
