"""Queues and who gets what: order, turns, priorities, selectors, groups, rings, last values."""

import random

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from tests.broker.bench import START_MS, UNLIMITED, Answers, Bench, Sink, done, message


def send(bench, *bodies, **attributes):
    session = bench.session()
    for body in bodies:
        session.send(message(body, **attributes), done)
    bench.loop.run_turns()


@pytest.fixture
def bench():
    made = Bench()
    made.queue()
    return made


def test_messages_come_in_the_order_of_their_sending(bench):
    send(bench, "1", "2", "3")

    sink = bench.consume()

    assert sink.bodies == ["1", "2", "3"]
    assert sink.counts == [1, 1, 1]


def test_a_message_goes_to_a_consumer_that_waits(bench):
    sink = bench.consume()

    send(bench, "1")

    assert sink.bodies == ["1"]


def test_a_message_goes_out_behind_the_answers_of_its_turn(bench):
    sink, session = bench.consume(), bench.session()
    seen = []

    for body in "12":
        session.send(message(body), lambda error: seen.append(list(sink.bodies)))
    bench.loop.run_turns()

    assert (seen, sink.bodies) == ([[], []], ["1", "2"])


@pytest.mark.parametrize("attributes", [{"ring_size": 1}, {"last_value": True}])
def test_what_a_consumer_takes_is_not_pushed_out_by_the_next_of_its_turn(attributes):
    bench = Bench()
    bench.queue(**attributes)
    sink = bench.consume()

    send(bench, "1", "2", _AMQ_LVQ_NAME="same")

    assert sink.bodies == ["1", "2"]


def test_nothing_comes_before_credits(bench):
    send(bench, "1")
    sink = bench.consume(credits=0)
    assert sink.bodies == []

    sink.consumer.receive_credits(1)

    assert sink.bodies == ["1"]


def test_credits_are_bytes_and_may_end_below_zero(bench):
    send(bench, "1", "2", "3")

    sink = bench.consume(credits=150)
    assert sink.bodies == ["1", "2"]
    assert sink.consumer.credits == -50

    sink.consumer.receive_credits(50)
    assert sink.bodies == ["1", "2"]
    sink.consumer.receive_credits(1)
    assert sink.bodies == ["1", "2", "3"]


def test_a_token_of_zero_takes_back_what_is_left(bench):
    sink = bench.consume(credits=1000)
    sink.consumer.receive_credits(0)

    send(bench, "1")

    assert sink.bodies == []


def test_consumers_take_turns(bench):
    sinks = [bench.consume() for _ in range(3)]

    send(bench, *"123456")

    assert [sink.bodies for sink in sinks] == [["1", "4"], ["2", "5"], ["3", "6"]]


def test_a_higher_consumer_priority_comes_first_until_it_is_busy(bench):
    low = bench.consume(priority=1)
    high = bench.consume(priority=5, credits=150)

    send(bench, *"1234")

    assert high.bodies == ["1", "2"]
    assert low.bodies == ["3", "4"]


def test_higher_message_priorities_come_first(bench):
    for priority, body in ((1, "low"), (9, "high"), (4, "a"), (4, "b")):
        send(bench, body, priority=priority)

    assert bench.consume().bodies == ["high", "a", "b", "low"]


def test_selectors_choose(bench):
    red = bench.consume(filter_text="colour = 'red'")
    rest = bench.consume(filter_text="colour <> 'red'")

    for colour in ("red", "blue", "red", "green"):
        send(bench, colour, colour=colour)

    assert red.bodies == ["red", "red"]
    assert rest.bodies == ["blue", "green"]


def test_what_no_selector_wants_stays(bench):
    send(bench, "other", "red", colour="blue")
    picky = bench.consume(filter_text="colour = 'red'")
    assert picky.bodies == []

    assert bench.consume().bodies == ["other", "red"]


def test_an_unreadable_selector_is_refused(bench):
    with pytest.raises(BrokerError) as refused:
        bench.consume(filter_text="colour = 'red")

    assert refused.value.code is ErrorCode.INVALID_FILTER_EXPRESSION


def test_given_back_messages_keep_their_order_before_newer_ones(bench):
    send(bench, "1", "2", "3")
    first = bench.consume(credits=200)
    assert first.bodies == ["1", "2"]

    first.session.close(has_failed=False)

    assert bench.consume().bodies == ["1", "2", "3"]


def test_delivery_counts_stay_where_the_client_may_have_seen_the_message(bench):
    send(bench, "1")
    bench.consume().session.close(has_failed=True)
    assert bench.consume().counts == [2]


def test_delivery_counts_go_back_where_the_client_closed(bench):
    send(bench, "1")
    bench.consume().session.close(has_failed=False)
    assert bench.consume().counts == [1]


def test_acknowledging_takes_all_before_it(bench):
    send(bench, "1", "2", "3")
    sink = bench.consume()

    sink.session.acknowledge(0, sink.ids[1], done)

    assert len(sink.consumer.delivering) == 1
    assert bench.addresses.queues["q"].message_count == 1


def test_acknowledging_one_leaves_the_others(bench):
    send(bench, "1", "2", "3")
    sink = bench.consume()

    sink.session.acknowledge(0, sink.ids[1], done, is_individual=True)
    sink.session.close(has_failed=False)

    assert bench.consume().bodies == ["1", "3"]


@pytest.mark.parametrize("seed", range(5))
def test_acknowledging_one_by_one_in_any_order_leaves_the_others(bench, seed):
    bodies = [str(number) for number in range(40)]
    send(bench, *bodies)
    sink = bench.consume()
    ids = list(sink.ids)
    chance = random.Random(seed)
    # Some in a row, behind others that stay: where the next one stands is looked at first.
    first = chance.randrange(10)
    gone = ids[first : first + 10]
    gone += chance.sample([one for one in ids if one not in gone], 15)

    for one in gone:
        sink.session.acknowledge(0, one, done, is_individual=True)
        with pytest.raises(BrokerError, match="AMQ229027"):
            sink.session.acknowledge(0, one, done, is_individual=True)
    sink.session.close(has_failed=False)

    left = [body for body, one in zip(bodies, ids, strict=True) if one not in gone]
    assert bench.consume().bodies == left


def test_acknowledging_what_was_not_delivered_is_refused_and_changes_nothing(bench):
    send(bench, "1", "2")
    sink = bench.consume()

    with pytest.raises(BrokerError, match="AMQ229027"):
        sink.session.acknowledge(0, 999, done)

    assert len(sink.consumer.delivering) == 2


def test_browsers_see_without_taking(bench):
    send(bench, "1", "2")
    browser = bench.consume(is_browser=True)
    assert browser.bodies == ["1", "2"]

    assert bench.consume().bodies == ["1", "2"]
    assert browser.counts == [0, 0]


def test_a_browser_goes_on_when_it_has_credits_again(bench):
    send(bench, "1", "2", "3")
    browser = bench.consume(is_browser=True, credits=150)
    assert browser.bodies == ["1", "2"]

    browser.consumer.receive_credits(500)

    assert browser.bodies == ["1", "2", "3"]


def test_pause_and_resume(bench):
    sink = bench.consume()
    queue = bench.addresses.queues["q"]
    bench.addresses.pause_queue(queue, is_paused=True)
    send(bench, "1")
    assert sink.bodies == []

    bench.addresses.pause_queue(queue, is_paused=False)

    assert sink.bodies == ["1"]


def test_many_messages_are_delivered_over_several_turns(bench):
    sink = bench.consume(credits=0)
    send(bench, *(str(number) for number in range(2500)))

    sink.consumer.receive_credits(-1)
    assert 0 < len(sink.got) < 2500
    bench.loop.run_turns()

    assert sink.bodies == [str(number) for number in range(2500)]


# --- kinds of queues ----------------------------------------------------------------------------


def test_a_group_stays_with_its_consumer():
    bench = Bench()
    bench.queue()
    sinks = [bench.consume() for _ in range(2)]

    for group in "aabbab":
        send(bench, group, _AMQ_GROUP_ID=group)

    assert sorted(sink.bodies for sink in sinks) == [["a"] * 3, ["b"] * 3]


def test_a_group_moves_on_when_its_consumer_leaves(bench):
    first = bench.consume()
    second = bench.consume()
    send(bench, "1", _AMQ_GROUP_ID="g")
    owner, other = (first, second) if first.bodies else (second, first)

    owner.session.close(has_failed=False)
    send(bench, "2", _AMQ_GROUP_ID="g")

    assert other.bodies == ["1", "2"]


def test_a_group_moves_on_with_what_its_consumer_gave_back_first(bench):
    owner = bench.consume(credits=200)
    other = bench.consume(credits=0)
    for body in "1234":
        send(bench, body, _AMQ_GROUP_ID="g")
    assert owner.bodies == ["1", "2"]
    other.consumer.receive_credits(UNLIMITED)

    owner.session.close(has_failed=False)

    assert other.bodies == ["1", "2", "3", "4"]


def test_a_negative_sequence_ends_a_group(bench):
    owner, other = bench.consume(credits=200), bench.consume()
    session = bench.session()

    for sequence in (1, -1, 1):
        session.send(message(str(sequence), _AMQ_GROUP_ID="g", _AMQ_GROUP_SEQUENCE=sequence), done)
    bench.loop.run_turns()

    # The other one had passed over the third while the group was the owner's.
    assert (owner.bodies, other.bodies) == (["1", "-1"], ["1"])


@pytest.mark.parametrize("group", ["g", None])
def test_a_group_that_is_reset_goes_to_a_consumer_that_can_take(bench, group):
    owner, other = bench.consume(credits=100), bench.consume()
    send(bench, "1", "2", _AMQ_GROUP_ID="g")
    assert (owner.bodies, other.bodies) == (["1"], [])

    bench.addresses.queues["q"].reset_groups(group)
    bench.loop.run_turns()

    assert (owner.bodies, other.bodies) == (["1"], ["2"])


def test_the_first_of_a_group_is_marked():
    bench = Bench()
    bench.queue(group_first_key="first")
    sink = bench.consume()

    send(bench, "1", "2", _AMQ_GROUP_ID="g")

    assert [one.get("first") for one in sink.got] == [True, None]


def test_an_exclusive_queue_serves_one_consumer():
    bench = Bench()
    bench.queue(exclusive=True)
    first, second = bench.consume(), bench.consume()
    send(bench, "1", "2")
    assert (first.bodies, second.bodies) == (["1", "2"], [])

    first.session.close(has_failed=False)

    assert second.bodies == ["1", "2"]


def test_a_last_value_queue_keeps_the_newest_of_each_key():
    bench = Bench()
    bench.queue(last_value=True)

    for key, body in (("a", "1"), ("b", "2"), ("a", "3")):
        send(bench, body, _AMQ_LVQ_NAME=key)
    send(bench, "none")

    assert bench.consume().bodies == ["3", "2", "none"]


def test_a_replaced_last_value_does_not_come_back():
    bench = Bench()
    bench.queue(last_value=True)
    send(bench, "1", _AMQ_LVQ_NAME="a")
    sink = bench.consume(credits=100)
    send(bench, "2", _AMQ_LVQ_NAME="a")

    sink.session.close(has_failed=False)

    assert bench.consume().bodies == ["2"]


def test_a_ring_queue_drops_the_oldest():
    bench = Bench()
    bench.queue(ring_size=2)
    send(bench, "1", "2", "3")

    assert bench.consume().bodies == ["2", "3"]


def test_what_returns_to_a_full_ring_is_dropped():
    bench = Bench()
    bench.queue(ring_size=2)
    send(bench, "1")
    sink = bench.consume(credits=100)
    send(bench, "2", "3")

    sink.session.close(has_failed=False)

    assert bench.consume().bodies == ["2", "3"]


def test_a_non_destructive_queue_shows_all_to_everybody():
    bench = Bench()
    bench.queue(non_destructive=True)
    send(bench, "1", "2")
    first = bench.consume()
    first.session.acknowledge(0, first.ids[1], done)

    second = bench.consume()

    assert first.bodies == second.bodies == ["1", "2"]
    assert bench.addresses.queues["q"].message_count == 2


@pytest.mark.parametrize("how", ["left", "reset"])
def test_a_group_without_an_owner_shows_no_consumer_again_what_stays(how):
    bench = Bench()
    bench.queue(non_destructive=True)
    leaving, staying = bench.consume(), bench.consume()
    for key in "ab":
        send(bench, f"{key}1", f"{key}2", _AMQ_GROUP_ID=key)
    assert leaving.bodies
    assert staying.bodies

    if how == "left":
        leaving.session.close(has_failed=False)
    else:
        bench.addresses.queues["q"].reset_groups()
    send(bench, "of none")

    for sink in (leaving, staying):
        assert len(set(sink.bodies)) == len(sink.bodies)


def test_dispatch_waits_for_enough_consumers():
    bench = Bench()
    bench.queue(consumers_before_dispatch=2)
    send(bench, "1")
    first = bench.consume()
    assert first.bodies == []

    second = bench.consume()

    assert first.bodies + second.bodies == ["1"]


def test_dispatch_waits_no_longer_than_its_delay():
    bench = Bench()
    bench.queue(consumers_before_dispatch=2, delay_before_dispatch=500)
    send(bench, "1")
    sink = bench.consume()

    bench.loop.pass_time(0.4)
    assert sink.bodies == []
    bench.loop.pass_time(0.2)
    assert sink.bodies == ["1"]


def test_no_more_consumers_than_allowed():
    bench = Bench()
    bench.queue(max_consumers=1)
    bench.consume()

    with pytest.raises(BrokerError) as refused:
        bench.consume()

    assert refused.value.code is ErrorCode.MAX_CONSUMER_LIMIT_EXCEEDED


def test_a_queue_is_purged_without_consumers():
    bench = Bench()
    queue = bench.queue(purge_on_no_consumers=True)
    sink = bench.consume(credits=100)
    send(bench, "1", "2")

    sink.session.close(has_failed=False)
    bench.loop.run_turns()
    send(bench, "3")

    assert queue.message_count == 0


def test_what_is_rolled_back_without_consumers_is_purged_too():
    bench = Bench()
    queue = bench.queue(purge_on_no_consumers=True)
    sink = bench.consume(session=bench.transacted())
    send(bench, "1", "2")
    sink.session.acknowledge(0, sink.ids[0], done)
    sink.session.close_consumer(0)
    bench.loop.run_turns()
    assert queue.message_count == 1

    sink.session.rollback(done)
    bench.loop.run_turns()

    assert queue.message_count == 0


def test_a_deleted_queue_tells_its_consumers(bench):
    send(bench, "1", "2")
    sink = bench.consume(credits=100)

    bench.addresses.delete_queue("q")

    assert sink.closed == [0]
    with pytest.raises(BrokerError, match="AMQ229017"):
        bench.consume()


# --- time ---------------------------------------------------------------------------------------


def test_scheduled_messages_wait_for_their_time(bench):
    sink = bench.consume()
    send(bench, "later", _AMQ_SCHED_DELIVERY=START_MS + 2000)
    send(bench, "sooner", _AMQ_SCHED_DELIVERY=START_MS + 1000)
    send(bench, "now")
    assert sink.bodies == ["now"]
    assert bench.addresses.queues["q"].scheduled_count == 2

    bench.loop.pass_time(1.5)
    assert sink.bodies == ["now", "sooner"]
    bench.loop.pass_time(1)
    assert sink.bodies == ["now", "sooner", "later"]


def test_due_messages_come_before_those_that_wait(bench):
    for body, delay in (("b", 20), ("a", 10)):
        send(bench, body, _AMQ_SCHED_DELIVERY=START_MS + delay)
    send(bench, "waiting")
    bench.loop.jump(1)
    bench.loop.pass_time(0)

    assert bench.consume().bodies == ["a", "b", "waiting"]


def test_expired_messages_go_to_the_expiry_address():
    bench = Bench()
    bench.set(expiry_address="expired")
    bench.queue()
    bench.queue("expired")
    send(bench, "late", expiration=START_MS + 1000)
    send(bench, "fine")
    bench.loop.pass_time(2)

    assert bench.consume().bodies == ["fine"]
    found = bench.consume("expired").got[0]
    assert bytes(found.body) == b"late"
    assert found.expiration == 0
    assert found.get("_AMQ_ORIG_ADDRESS") == "q"
    assert found.get("_AMQ_ORIG_QUEUE") == "q"
    assert found.get("_AMQ_ACTUAL_EXPIRY") == bench.now_ms


def test_expired_messages_without_an_expiry_address_are_dropped(bench):
    queue = bench.addresses.queues["q"]
    send(bench, "late", expiration=START_MS + 1000)
    bench.loop.pass_time(2)

    assert bench.consume().bodies == []
    assert queue.message_count == 0
    assert queue.expired_count == 1


@pytest.mark.parametrize(
    ("settings", "sent", "expected"),
    [
        ({"no_expiry": True}, 5, 0),
        ({"expiry_delay_ms": 7}, 0, 7),
        ({"expiry_delay_ms": 7}, 5, 5),
        ({"max_expiry_delay_ms": 9}, 0, 9),
        ({"min_expiry_delay_ms": 8}, 0, 8),
        ({"max_expiry_delay_ms": 9}, 20, 9),
        ({"min_expiry_delay_ms": 8}, 5, 8),
        ({"min_expiry_delay_ms": 3, "max_expiry_delay_ms": 9}, 5, 5),
    ],
)
def test_addresses_limit_the_lifetime_of_messages(settings, sent, expected):
    bench = Bench()
    bench.set(**settings)
    bench.queue()

    send(bench, "m", expiration=START_MS + sent if sent else 0)

    found = bench.consume().got[0].expiration
    assert found == (START_MS + expected if expected else 0)


def test_a_message_delivered_too_often_goes_to_the_dead_letter_address():
    bench = Bench()
    bench.set(max_delivery_attempts=2, dead_letter_address="dead")
    bench.queue()
    bench.queue("dead", routing_type=RoutingType.MULTICAST)
    send(bench, "bad", user="data", _AMQ_ROUTING_TYPE="anything")
    for _ in range(2):
        bench.consume().session.close(has_failed=True)

    assert bench.consume().bodies == []
    found = bench.consume("dead").got[0]
    assert found.get("user") == "data"
    assert found.get("_AMQ_ORIG_MESSAGE_ID") != found.message_id


def test_without_a_dead_letter_address_it_is_dropped(bench):
    bench.set(max_delivery_attempts=1)
    send(bench, "bad")
    bench.consume().session.close(has_failed=True)

    assert bench.addresses.queues["q"].message_count == 0
    assert bench.addresses.queues["q"].killed_count == 1


def test_dead_letter_queues_are_made_when_asked_for():
    bench = Bench()
    bench.set(
        max_delivery_attempts=1, dead_letter_address="dead", auto_create_dead_letter_resources=True
    )
    bench.queue()
    send(bench, "bad")
    bench.consume().session.close(has_failed=True)

    assert bench.consume("DLQ.q").bodies == ["bad"]
    assert bench.addresses.queues["DLQ.q"].binding.filter == "_AMQ_ORIG_ADDRESS = 'q'"


def test_redelivery_waits_longer_each_time():
    bench = Bench()
    bench.set(redelivery_delay_ms=1000, redelivery_delay_multiplier=2.0, max_delivery_attempts=-1)
    bench.queue()
    send(bench, "m")
    waits = []
    for _ in range(6):
        session = bench.transacted()
        session.acknowledge(0, bench.consume(session=session).ids[0], done)
        session.close(has_failed=False)
        began_s = bench.loop.now_s
        while not bench.addresses.queues["q"].waiting.count:
            bench.loop.pass_time(0.5)
        waits.append(bench.loop.now_s - began_s)

    assert waits == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("has_failed", [False, True])
def test_what_lay_in_the_buffer_of_a_closed_consumer_is_not_delayed(has_failed):
    bench = Bench()
    bench.set(redelivery_delay_ms=20_000)
    bench.queue()
    send(bench, "1", "2", "3")
    sink = bench.consume()
    sink.session.acknowledge(0, sink.ids[0], done)

    sink.session.close_consumer(0, has_failed=has_failed)

    again = bench.consume()
    assert again.bodies == ["2", "3"]
    # Behind a lost connection the application may have had them.
    assert again.counts == ([2, 2] if has_failed else [1, 1])


def test_a_rollback_delays_what_the_application_had_and_nothing_else():
    bench = Bench()
    bench.set(redelivery_delay_ms=20_000)
    bench.queue()
    send(bench, "1", "2", "3")
    session = bench.transacted()
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[0], done)

    session.rollback(done)
    at_once = sink.bodies[3:]
    bench.loop.pass_time(20)

    assert (at_once, sink.bodies[5:]) == (["2", "3"], ["1"])
    assert sink.counts[3:] == [1, 1, 2]


def test_a_recovery_delays_the_message_that_was_seen_and_nothing_else():
    bench = Bench()
    bench.set(redelivery_delay_ms=20_000)
    bench.queue()
    send(bench, "1", "2", "3")
    session = bench.transacted()
    sink = bench.consume(session=session)

    session.rollback(done, considers_last_delivered=True)
    at_once = sink.bodies[3:]
    bench.loop.pass_time(20)

    assert (at_once, sink.bodies[5:]) == (["2", "3"], ["1"])
    assert sink.counts[3:] == [1, 1, 2]


def test_answers_come_in_the_order_of_the_requests(bench):
    answers = Answers()
    session = bench.session()

    for body in "12":
        session.send(message(body), answers)

    assert answers.errors == [None, None]


class Narrow(Sink):
    """Cannot tell some messages in its protocol."""

    def deliver(self, consumer, message, delivery_count):
        if bytes(message.body) == b"odd":
            raise UnicodeDecodeError("utf-8", b"odd", 0, 1, "not of this protocol")
        return super().deliver(consumer, message, delivery_count)


def narrow(bench, **options):
    session = bench.session()
    sink = Narrow()
    sink.consumer = session.create_consumer(0, "q", sink, **options)
    session.start()
    sink.consumer.receive_credits(UNLIMITED)
    bench.loop.run_turns()
    return sink


def test_a_message_that_cannot_be_told_ends_its_consumer_and_stays(bench):
    send(bench, "1", "odd", "2")

    sink = narrow(bench)

    assert sink.bodies == ["1"]
    assert sink.closed == [0]
    assert bench.consume().bodies == ["1", "odd", "2"]


def test_a_message_that_no_attempt_could_tell_goes_to_the_dead_letter_address(bench):
    bench.set(dead_letter_address="DLQ", max_delivery_attempts=3)
    bench.queue("DLQ")
    send(bench, "odd", "1")

    ends = [narrow(bench).closed for _ in range(4)]

    assert ends == [[0], [0], [0], []]
    assert bench.consume("DLQ").bodies == ["odd"]


def test_a_browser_ends_at_a_message_that_cannot_be_told(bench):
    send(bench, "1", "odd")

    sink = narrow(bench, is_browser=True)

    assert (sink.bodies, sink.closed) == (["1"], [0])
    assert bench.consume().bodies == ["1", "odd"]
