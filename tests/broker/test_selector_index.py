"""Consumers found by an index get what they would get by looking for themselves."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker.model.properties import PropertyType
from broker.selector.filters import parse_filter
from tests.broker.bench import UNLIMITED, Bench, done, message

SELECTORS = (
    *(None, "color = 'red'", "color = 'blue'", "size = 2", "size > 1"),
    *("color = 'red' AND size > 1", "size > 1 AND color = 'blue'", "color IN ('red', 'blue')"),
    *("color IS NULL", "AMQPriority = 4", "NOT (color = 'red')", "color = 'red' OR size = 3"),
)


class World:
    """A queue with consumers; `is_plain`: each of them looks for itself."""

    def __init__(self, is_plain):
        self.bench = Bench()
        self.bench.set(max_delivery_attempts=-1)
        self.queue = self.bench.queue()
        self.sinks = []
        self.numbers = itertools.count()
        if is_plain:
            # A queue that has seen a group has cursors from then on.
            sink = self.bench.consume()
            self.send({"_AMQ_GROUP_ID": "g"})
            self.bench.loop.run_turns()
            sink.session.acknowledge(0, sink.ids[0], done)
            sink.session.close(has_failed=False)
        self.numbers = itertools.count()

    def send(self, properties, priority=4, expires_s=None):
        expiration = 0
        if expires_s is not None:
            expiration = self.bench.now_ms + expires_s * 1000
        sent = message(
            str(next(self.numbers)), priority=priority, expiration=expiration, **properties
        )
        self.bench.session().send(sent, done)

    def consume(self, selector, credits, priority):
        self.sinks.append(
            self.bench.consume(
                credits=credits, filter_text=selector, priority=priority, session=self.session()
            )
        )

    def session(self):
        return self.bench.transacted()

    def of(self, number):
        return self.sinks[number % len(self.sinks)] if self.sinks else None

    def do(self, name, *arguments):
        getattr(self, name)(*arguments)
        self.bench.loop.run_turns()

    def credit(self, number, credits):
        sink = self.of(number)
        if sink is not None and not sink.consumer.is_closed:
            sink.consumer.receive_credits(credits)

    def acknowledge(self, number):
        sink = self.of(number)
        if sink is not None and not sink.consumer.is_closed and sink.consumer.delivering:
            found = sink.consumer.delivering[0].message.message_id
            sink.session.acknowledge(0, found, done)
            sink.session.commit(done)

    def rollback(self, number):
        sink = self.of(number)
        if sink is not None and not sink.consumer.is_closed:
            # Credits are of those delivered: the same ones would come for ever.
            sink.consumer.receive_credits(0)
            sink.session.rollback(done)

    def close(self, number, has_failed):
        sink = self.of(number)
        if sink is not None:
            sink.session.close(has_failed=has_failed)

    def stop(self, number):
        sink = self.of(number)
        if sink is not None and not sink.session.is_closed:
            sink.session.stop()

    def start(self, number):
        sink = self.of(number)
        if sink is not None and not sink.session.is_closed:
            sink.session.start()

    def pause(self):
        self.queue.pause()

    def resume(self):
        self.queue.resume()

    def wait(self, seconds):
        self.bench.loop.pass_time(seconds)

    def purge_first(self):
        for reference in self.waiting()[:1]:
            self.queue.remove(reference)

    def waiting(self):
        # What is due is found by the first that comes across it, at different moments.
        now_ms = self.bench.now_ms
        return [one for one in self.queue.waiting if not 0 < one.message.expiration <= now_ms]

    def seen(self):
        waiting = [bytes(one.message.body) for one in self.waiting()]
        return [(sink.bodies, sink.counts) for sink in self.sinks], waiting


PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "color": st.sampled_from(["red", "blue", "green"]),
        "size": st.sampled_from([1, 2, 3, "2"]),
    },
)
PRIORITIES = st.sampled_from([4, 4, 4, 9, 1])
CREDITS = st.sampled_from([0, 100, 250, UNLIMITED])
NUMBERS = st.integers(0, 9)
STEPS = st.one_of(
    st.tuples(st.just("send"), PROPERTIES, PRIORITIES, st.none() | st.integers(1, 3)),
    st.tuples(st.just("send"), PROPERTIES),
    st.tuples(st.just("consume"), st.sampled_from(SELECTORS), CREDITS, st.sampled_from([0, 0, 5])),
    st.tuples(st.just("credit"), NUMBERS, CREDITS),
    st.tuples(st.just("acknowledge"), NUMBERS),
    st.tuples(st.just("rollback"), NUMBERS),
    st.tuples(st.just("close"), NUMBERS, st.booleans()),
    st.tuples(st.just("stop"), NUMBERS),
    st.tuples(st.just("start"), NUMBERS),
    st.tuples(st.just("pause")),
    st.tuples(st.just("resume")),
    st.tuples(st.just("wait"), st.integers(1, 2)),
    st.tuples(st.just("purge_first")),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=60))
@example(
    [
        ("send", {}, 4, 1),
        ("consume", None, 0, 0),
        ("wait", 1),
        ("send", {}),
        ("purge_first",),
    ]
)
def test_the_index_delivers_as_consumers_that_look_for_themselves(steps):
    indexed, plain = World(is_plain=False), World(is_plain=True)

    for step in steps:
        indexed.do(*step)
        plain.do(*step)

        assert indexed.seen() == plain.seen(), step
    assert plain.queue.index is None


def test_a_queue_with_selectors_has_an_index_and_one_without_has_none():
    world = World(is_plain=False)
    world.consume(None, 0, 0)
    assert world.queue.index is None

    world.consume("color = 'red'", 0, 0)
    assert world.queue.index is not None
    world.close(1, False)

    assert world.queue.index is None


def test_what_no_consumer_takes_from_a_lane_does_not_stay_in_memory():
    world = World(is_plain=False)
    world.consume("color = 'red'", 0, 0)
    world.consume(None, UNLIMITED, 0)
    lane = world.queue.index.lane_of(world.sinks[0].consumer)

    for _ in range(5000):
        world.send({"color": "red"})
        world.bench.loop.run_turns()

    assert len(world.sinks[1].got) == 5000
    assert lane.count_max(world.queue) <= 1000


def test_a_consumer_costs_the_same_whatever_others_want():
    world = World(is_plain=False)
    asked = []
    for number in range(200):
        world.consume(f"color = 'c{number}'", UNLIMITED, 0)

    class Asked(dict):
        """Values of a property, each one that is looked up noted."""

        def get(self, key, default=None):
            asked.append(key)
            return super().get(key, default)

    values = world.queue.index.values_of("color")
    values.lanes = Asked(values.lanes)
    for number in range(200):
        world.send({"color": f"c{number}"})
    world.bench.loop.run_turns()

    assert [len(sink.got) for sink in world.sinks] == [1] * 200
    assert len(asked) == 200


def test_equal_selectors_are_compiled_once():
    assert parse_filter("color = 'red'") is parse_filter("color = 'red'")


@pytest.mark.parametrize(
    ("text", "name", "key", "is_equality"),
    [
        ("color = 'red'", "color", "red", True),
        ("size = 2", "size", 2, False),
        ("size > 1 AND color = 'red'", "color", "red", False),
        ("(size = 1 AND size < 9) AND color = 'red'", "size", 1, False),
    ],
)
def test_a_selector_with_an_equality_is_looked_up(text, name, key, is_equality):
    found = parse_filter(text)

    assert (found.equality.name, found.equality.key) == (name, key)
    assert found.is_equality is is_equality


@pytest.mark.parametrize(
    "text",
    [
        *("color <> 'red'", "color = 'red' OR size = 1", "NOT color = 'red'", "'red' = color"),
        *("size = 1.5", "size = 16777217", "convert_string_expressions:size = 2"),
    ],
)
def test_a_selector_without_one_is_evaluated(text):
    assert parse_filter(text).equality is None


NUMBER_TYPES = (
    *((PropertyType.BYTE, 2), (PropertyType.SHORT, 2), (PropertyType.INT, 2)),
    *((PropertyType.LONG, 2), (PropertyType.FLOAT, 2.0), (PropertyType.DOUBLE, 2.0)),
    *((PropertyType.FLOAT, 2.5), (PropertyType.DOUBLE, float("nan")), (PropertyType.STRING, "2")),
    *((PropertyType.BOOLEAN, True), (PropertyType.BYTES, b"2"), (PropertyType.CHAR, "2")),
    *((PropertyType.FLOAT, -0.0), (PropertyType.DOUBLE, float("inf"))),
)


@pytest.mark.parametrize(("kind", "value"), NUMBER_TYPES)
@pytest.mark.parametrize("text", ["p = 2", "p = '2'", "p = 0", "p = 1"])
def test_what_matches_has_the_key_of_the_selector(kind, value, text):
    found = parse_filter(text)
    made = message()
    made.set("p", kind, value)

    has_key = found.equality.fetch_key(made) == found.equality.key

    assert has_key or not found.matches(made)
    if found.is_equality:
        assert has_key == found.matches(made)
