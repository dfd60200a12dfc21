"""What comes back stands where it stood, whoever had it and whoever gives it back first."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.queues import reference_lists
from broker.queues.reference_lists import PriorityList, StoredRun
from tests.broker.bench import Bench, done, message

SELECTORS = (None, "color = 'red'", "color = 'blue'", "size > 1")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("consume"), st.sampled_from(SELECTORS), st.integers(0, 9)),
        st.tuples(st.just("take"), st.integers(0, 9), st.integers(1, 9)),
        st.tuples(st.just("rollback"), st.integers(0, 9)),
        st.tuples(st.just("close"), st.integers(0, 9), st.booleans()),
    ),
    max_size=30,
)


def taken_and_given_back(bench, steps):
    sinks = []
    for name, *arguments in steps:
        if name == "consume":
            selector, many = arguments
            session = bench.transacted()
            sinks.append(bench.consume(credits=100 * many, filter_text=selector, session=session))
        elif sinks:
            sink = sinks[arguments[0] % len(sinks)]
            if sink.session.is_closed:
                continue
            if name == "take":
                sink.consumer.receive_credits(100 * arguments[1])
            elif name == "rollback":
                # Those given back would come to it again.
                sink.consumer.receive_credits(0)
                sink.session.rollback(done)
            else:
                sink.session.close(has_failed=arguments[1])
        bench.loop.run_turns()
    for sink in sinks:
        if not sink.session.is_closed:
            sink.session.close(has_failed=False)
    bench.loop.run_turns()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["red", "blue"]), st.integers(1, 2)), max_size=30),
    STEPS,
)
def test_it_stands_where_it_stood(sent, steps):
    bench = Bench()
    bench.set(max_delivery_attempts=-1)
    bench.queue()
    session = bench.session()
    for number, (color, size) in enumerate(sent):
        priority = 4 if number % 5 else 9
        session.send(message(str(number), color=color, size=size, priority=priority), done)
    bench.loop.run_turns()
    expected = [bytes(one.message.body) for one in bench.addresses.queues["q"].waiting]

    taken_and_given_back(bench, steps)

    assert [bytes(one.message.body) for one in bench.addresses.queues["q"].waiting] == expected


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_transactions_may_end_in_any_order(order):
    bench = Bench()
    bench.queue()
    session = bench.session()
    for number in range(9):
        session.send(message(str(number)), done)
    bench.loop.run_turns()
    sinks = [bench.consume(credits=300, session=bench.transacted()) for _ in range(3)]

    for number in order:
        # No other takes what comes back.
        sinks[number].consumer.receive_credits(0)
        sinks[number].session.rollback(done)
        bench.loop.run_turns()
    for sink in sinks:
        sink.session.close(has_failed=False)

    assert bench.consume().bodies == list("012345678")


class Part:
    """References of a start that are not made yet."""

    def __init__(self, references):
        self.references = references
        self.is_made = False

    def __len__(self):
        return len(self.references)

    def make(self):
        self.is_made = True
        return self.references


def references(count, first=0):
    """References that are in no list."""
    bench = Bench()
    queue = bench.queue()
    session = bench.session()
    for number in range(first + count):
        session.send(message(str(number)), done)
    bench.loop.run_turns()
    found = list(queue.waiting)[first:]
    for one in found:
        queue.waiting.remove(one)
    return found


def test_what_is_not_made_yet_stays_so():
    found = references(6)
    waiting = PriorityList()
    part = Part(found[3:])
    waiting.add_stored(4, part)

    waiting.add_back(found[1:3])
    waiting.add_back(found[:1])

    assert not part.is_made
    level = waiting.levels[4]
    assert level.head is found[0]
    assert isinstance(level.tail, StoredRun)
    assert list(waiting) == found


def test_what_stood_deep_in_a_queue_is_not_looked_for_for_long(monkeypatch):
    """The limit is the module's own: a list longer than that."""
    limit = reference_lists._PASSED_MAX
    found = references(limit + 10)
    waiting = PriorityList()
    for one in found[:-2]:
        waiting.add_tail(one)

    waiting.add_back(found[-2:])

    assert list(waiting) == found[:limit] + found[-2:] + found[limit:-2]
