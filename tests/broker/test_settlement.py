"""Single messages accepted, released, modified, rejected; credit by messages; settle modes."""

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from broker.queues import refusals
from broker.sessions.prefixes import Prefixes
from broker.settings.queue_defaults import QueueRequest
from tests.broker.bench import Answers, Bench, done, message


@pytest.fixture
def bench():
    return Bench()


def filled(bench, *bodies, **options):
    """A queue with these messages, all given to a consumer; its sink."""
    bench.queue("q")
    session = bench.session()
    for body in bodies:
        session.send(message(body), done)
    sink = bench.consume("q", **options)
    bench.loop.run_turns()
    return sink


def settled(bench, sink, outcome, *indexes, **how):
    """Settle what a consumer was given; the answers."""
    answers = Answers()
    getattr(sink.session.settlement, outcome)(
        0, [sink.ids[index] for index in indexes], answers, **how
    )
    bench.loop.run_turns()
    return answers.errors


def waiting(bench, name="q"):
    return [bytes(one.message.body).decode() for one in bench.addresses.queue(name).waiting]


# --- accept -----------------------------------------------------------------------------------


def test_accepted_are_gone_and_others_are_not(bench):
    sink = filled(bench, "a", "b", "c")

    assert settled(bench, sink, "accept", 2, 0) == [None]

    sink.session.close(has_failed=False)
    assert waiting(bench) == ["b"]


def test_accepted_in_a_transaction_that_is_rolled_back_they_come_back(bench):
    sink = filled(bench, "a", "b", session=bench.transacted())
    settled(bench, sink, "accept", 0)
    assert waiting(bench) == []

    sink.session.rollback(done)
    bench.loop.run_turns()

    assert sink.bodies == ["a", "b", "a", "b"]


@pytest.mark.parametrize("outcome", ["accept", "release", "modify", "reject"])
def test_one_that_was_not_delivered_is_refused_and_none_is_settled(bench, outcome):
    sink = filled(bench, "a", "b")

    with pytest.raises(BrokerError, match="AMQ229027") as refused:
        getattr(sink.session.settlement, outcome)(0, [sink.ids[0], 77], done)
    with pytest.raises(BrokerError, match="AMQ229027"):
        getattr(sink.session.settlement, outcome)(0, [sink.ids[0], sink.ids[0]], done)

    assert refused.value.code is ErrorCode.ILLEGAL_STATE
    assert [one.message.message_id for one in sink.consumer.delivering] == sink.ids
    assert [one.delivery_count for one in sink.consumer.delivering] == [1, 1]


def test_a_browser_settles_nothing(bench):
    sink = filled(bench, "a", is_browser=True)

    for outcome in ("accept", "release", "modify", "reject"):
        assert settled(bench, sink, outcome, 0) == [None]
    assert waiting(bench) == ["a"]


# --- release, modify --------------------------------------------------------------------------


def test_released_were_not_delivered(bench):
    sink = filled(bench, "a", "b", credits=0)
    sink.consumer.receive_credits(200)

    assert settled(bench, sink, "release", 0) == [None]
    sink.consumer.receive_credits(100)

    assert (sink.bodies, sink.counts) == (["a", "b", "a"], [1, 1, 1])


def test_modified_were_delivered_if_the_delivery_failed(bench):
    sink = filled(bench, "a", credits=100)

    settled(bench, sink, "modify", 0, delivery_failed=True)
    sink.consumer.receive_credits(100)
    settled(bench, sink, "modify", 0)
    sink.consumer.receive_credits(100)

    assert sink.counts == [1, 2, 2]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]])
@pytest.mark.parametrize("at_once", [True, False])
def test_they_come_back_in_the_order_of_the_queue(bench, order, at_once):
    sink = filled(bench, "a", "b", "c", "d", "e", credits=400)
    bench.addresses.queue("q").pause()

    if at_once:
        settled(bench, sink, "release", *order)
    else:
        for index in order:
            settled(bench, sink, "release", index)

    assert waiting(bench) == ["a", "b", "c", "e"]


def test_priorities_stay_apart(bench):
    bench.queue("q")
    session = bench.session()
    for body, priority in (("low", 1), ("high", 9), ("low2", 1)):
        session.send(message(body, priority=priority), done)
    sink = bench.consume("q")
    bench.loop.run_turns()
    bench.addresses.queue("q").pause()

    settled(bench, sink, "release", *range(3))

    assert waiting(bench) == ["high", "low", "low2"]


def test_delivered_too_often_it_goes_to_the_dead_letter_address(bench, caplog):
    bench.set(dead_letter_address="DLQ", max_delivery_attempts=2)
    bench.queue("DLQ")
    sink = filled(bench, "a")

    settled(bench, sink, "modify", 0, delivery_failed=True)
    assert sink.counts == [1, 2]
    settled(bench, sink, "modify", 0)
    assert sink.counts == [1, 2, 2]
    settled(bench, sink, "modify", 0, delivery_failed=True)

    assert (waiting(bench), waiting(bench, "DLQ")) == ([], ["a"])
    (line,) = caplog.messages
    assert line.startswith("AMQ222149: message ")
    assert line.endswith(" of q, delivered 2 times, goes to dead letter address DLQ")


def test_the_redelivery_delay_applies(bench):
    bench.set(redelivery_delay_ms=5000)
    sink = filled(bench, "a")

    settled(bench, sink, "modify", 0, delivery_failed=True)
    assert bench.addresses.queue("q").scheduled_count == 1
    bench.loop.pass_time(5)

    assert sink.counts == [1, 2]


def test_a_last_value_that_was_replaced_meanwhile_does_not_come_back(bench):
    bench.queue("q", last_value=True)
    session = bench.session()
    session.send(message("old", _AMQ_LVQ_NAME="k"), done)
    sink = bench.consume("q", credits=100)
    bench.loop.run_turns()
    session.send(message("new", _AMQ_LVQ_NAME="k"), done)
    bench.loop.run_turns()

    settled(bench, sink, "release", 0)

    assert waiting(bench) == ["new"]


def test_in_a_queue_that_keeps_its_messages_nothing_comes_twice(bench):
    bench.queue("q", non_destructive=True)
    bench.session().send(message("a"), done)
    sink = bench.consume("q")
    bench.loop.run_turns()

    settled(bench, sink, "release", 0)

    assert (sink.bodies, waiting(bench)) == (["a"], ["a"])


# --- undeliverable here -----------------------------------------------------------------------


@pytest.mark.parametrize("filter_text", [None, "k = 1", "k > 0"])
@pytest.mark.parametrize("queue", [{}, {"last_value": True}])
def test_undeliverable_here_it_waits_for_another_consumer(bench, filter_text, queue):
    bench.queue("q", **queue)
    session = bench.session()
    for body in ("a", "b"):
        session.send(message(body, k=1), done)
    one = bench.consume("q", filter_text=filter_text)
    bench.loop.run_turns()

    settled(bench, one, "modify", 0, undeliverable_here=True)
    settled(bench, one, "modify", 1)
    assert (one.bodies, waiting(bench)) == (["a", "b", "b"], ["a"])
    session.send(message("c", k=1), done)
    bench.loop.run_turns()
    assert one.bodies == ["a", "b", "b", "c"]

    other = bench.consume("q", filter_text=filter_text)
    bench.loop.run_turns()
    assert (other.bodies, waiting(bench)) == (["a"], [])


def test_the_consumer_keeps_its_selector_and_its_priority(bench):
    sink = filled(bench, "a", filter_text="k IS NULL", priority=3)

    settled(bench, sink, "modify", 0, undeliverable_here=True)
    bench.session().send(message("other", k=1), done)
    bench.loop.run_turns()

    assert sink.bodies == ["a"]
    assert sink.consumer.filter.text == "k IS NULL"
    assert [level.priority for level in bench.addresses.queue("q").consumers.levels] == [3]
    sink.session.close(has_failed=False)
    assert bench.addresses.queue("q").consumers.is_plain


def test_of_very_many_the_oldest_is_forgotten(bench, monkeypatch):
    monkeypatch.setattr(refusals, "REFUSED_MAX", 2)
    sink = filled(bench, "a", "b", "c")

    for index in range(3):
        settled(bench, sink, "modify", index, undeliverable_here=True)
    bench.addresses.queue("q").look_again()
    bench.addresses.queue("q").renew_index()
    bench.addresses.queue("q").deliver()

    assert sink.bodies == ["a", "b", "c", "a"]


# --- reject -----------------------------------------------------------------------------------


def test_rejected_they_go_to_the_dead_letter_address_at_once(bench):
    bench.set(dead_letter_address="DLQ", max_delivery_attempts=-1)
    bench.queue("DLQ")
    sink = filled(bench, "a", "b")

    assert settled(bench, sink, "reject", 0) == [None]

    assert waiting(bench, "DLQ") == ["a"]
    assert bench.addresses.queue("q").killed_count == 1
    sink.session.close(has_failed=False)
    assert waiting(bench) == ["b"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "is dropped, for dead-letter-address is not set"),
        ({"dead_letter_address": "D"}, "is dropped, for dead letter address D has no queue"),
    ],
)
def test_rejected_without_a_dead_letter_queue_they_are_dropped(bench, caplog, settings, said):
    bench.set(**settings)
    sink = filled(bench, "a")

    settled(bench, sink, "reject", 0)

    sink.session.close(has_failed=False)
    assert bench.addresses.queue("q").message_count == 0
    (line,) = caplog.messages
    assert line.endswith(said)


# --- credits and settle modes -----------------------------------------------------------------


def test_a_credit_is_a_message_whatever_its_size(bench):
    sink = filled(bench, "a", "b" * 5000, "c", credits=2, counts_messages=True)

    assert [len(body) for body in sink.bodies] == [1, 5000]
    sink.consumer.receive_credits(1)
    assert (len(sink.bodies), sink.consumer.credits) == (3, 0)


def test_a_body_that_follows_costs_no_credit(bench):
    consumer = filled(bench, credits=0, counts_messages=True).consumer

    assert consumer.can_stream
    assert not consumer.can_take


def test_pre_settled_they_are_acknowledged_when_they_are_given(bench):
    sink = filled(bench, "a", is_pre_settled=True)

    assert not sink.consumer.delivering
    assert bench.addresses.queue("q").acknowledged_count == 1
    with pytest.raises(BrokerError, match="AMQ229027"):
        settled(bench, sink, "release", 0)


# --- senders ----------------------------------------------------------------------------------


def test_a_sender_gives_its_address(bench):
    bench.queue("q")
    sender = bench.session().create_sender("q")

    sender.send(message("a", address=None), done)
    sender.send(message("b", address="elsewhere"), done)
    bench.loop.run_turns()

    assert waiting(bench) == ["a", "b"]


def test_an_anonymous_sender_sends_where_each_message_says(bench):
    bench.queue("q")
    bench.queue("r")
    sender = bench.session().create_sender(None)

    sender.send(message("a", address="q"), done)
    sender.send(message("b", address="r"), done)
    bench.loop.run_turns()

    assert (waiting(bench), waiting(bench, "r")) == (["a"], ["b"])
    with pytest.raises(BrokerError) as refused:
        sender.send(message("c", address=None), done)
    assert refused.value.code is ErrorCode.ADDRESS_DOES_NOT_EXIST


def test_a_senders_address_is_made_or_refused(bench):
    session = bench.session()
    session.create_sender("made", RoutingType.MULTICAST)
    assert bench.addresses.by_name["made"].routing_types == {RoutingType.MULTICAST}
    bench.set(auto_create_addresses=False, auto_create_queues=False)

    with pytest.raises(BrokerError, match="AMQ229203"):
        session.create_sender("missing", RoutingType.ANYCAST)


# --- prefixes ---------------------------------------------------------------------------------

PREFIXES = Prefixes(["queue://", "jms.queue."], ["topic://"])


def test_a_prefix_chooses_the_routing_type_and_is_taken_off(bench):
    session = bench.session(prefixes=PREFIXES)
    for address in ("queue://orders", "topic://news", "jms.queue.orders", "orders"):
        session.send(message(address, address=address), done)
    bench.loop.run_turns()

    types = {name: one.routing_types for name, one in bench.addresses.by_name.items()}
    assert types == {"orders": {RoutingType.ANYCAST}, "news": {RoutingType.MULTICAST}}
    assert waiting(bench, "orders") == ["queue://orders", "jms.queue.orders", "orders"]
    sink = bench.consume("queue://orders", session)
    assert [one.address for one in sink.got] == ["orders"] * 3
    assert [one.routing_type for one in sink.got][:2] == [RoutingType.ANYCAST] * 2
    assert session.create_sender("topic://news").address == "news"


def test_names_of_addresses_and_queues_have_none(bench):
    session = bench.session(prefixes=PREFIXES)
    session.administration.create_address(
        "topic://news", [RoutingType.ANYCAST], is_auto_created=False
    )
    queue = session.administration.create_queue(QueueRequest(name="n", address="topic://news"))
    granted = []
    session.request_credits("topic://news", granted.append)

    assert bench.addresses.by_name["news"].routing_types == {RoutingType.MULTICAST}
    assert queue.binding.routing_type is RoutingType.MULTICAST
    assert session.administration.query_address("topic://news").queues == ("n",)
    assert session.administration.query_queue("queue://n").queue is queue
    assert granted == [False]
    session.administration.delete_queue("queue://n")
    assert "n" not in bench.addresses.queues


def test_without_prefixes_names_are_as_they_are(bench):
    session = bench.session()
    session.administration.create_queue(QueueRequest(name="queue://n", address="topic://a"))
    session.send(message("m", address="topic://a"), done)
    bench.loop.run_turns()

    assert waiting(bench, "queue://n") == ["m"]
