"""What comes back stands where it stood, in whatever order consumers give it back."""

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


def test_whoever_committed_first_stays_first():
    """Not the ids of messages, which those of a transaction have earlier."""
    bench = Bench()
    bench.queue()
    late, session = bench.transacted(), bench.session()
    late.send(message("late"), done)
    session.send(message("early"), done)
    late.commit(done)
    bench.loop.run_turns()
    sinks = [bench.consume(credits=100, session=bench.transacted()) for _ in range(2)]

    for sink in sinks:
        sink.consumer.receive_credits(0)
        sink.session.close(has_failed=False)
        bench.loop.run_turns()

    assert bench.consume().bodies == ["early", "late"]


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


def filled(count):
    """What waits in a queue of so many messages."""
    bench = Bench()
    queue = bench.queue()
    session = bench.session()
    for number in range(count):
        session.send(message(str(number)), done)
    bench.loop.run_turns()
    return queue.waiting


def test_what_is_not_made_yet_stays_so():
    found = list(filled(6))
    for one in found:
        one.level, one.previous, one.following = -1, None, None
    waiting = PriorityList()
    parts = [Part(found[:3]), Part(found[3:])]
    for part in parts:
        waiting.add_stored(4, part)
    taken = []
    while len(taken) < 3:
        taken.append(waiting.head())
        waiting.remove(taken[-1])
    assert taken == found[:3]

    waiting.add_back(taken[1:])
    waiting.add_back(taken[:1])

    assert [part.is_made for part in parts] == [True, False]
    assert isinstance(waiting.levels[4].tail, StoredRun)
    assert list(waiting) == found


def test_what_stood_deep_in_a_queue_is_not_looked_for_for_long():
    """The limit is the module's own: a list longer than that."""
    limit = reference_lists._PASSED_MAX
    waiting = filled(limit + 10)
    found = list(waiting)
    for one in found[-2:]:
        waiting.remove(one)

    waiting.add_back(found[-2:])

    assert list(waiting) == found[:limit] + found[-2:] + found[limit:-2]
