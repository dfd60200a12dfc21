import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.credits import AddressCredits, ConsumerWindow
from broker.client.errors import AddressFull, ClosedError


@pytest.fixture
def asked():
    return []


def credits_of(asked, window=100):
    return AddressCredits("a", window, lambda amount, address: asked.append((amount, address)))


def test_half_a_window_is_asked_for_and_used_up(asked):
    credits = credits_of(asked)

    first = credits.acquire(20)
    assert (first.is_done, asked) == (False, [(50, "a")])
    credits.granted(50)
    second = credits.acquire(30)

    assert (first.is_done, second.is_done) == (True, True)
    assert asked == [(50, "a"), (50, "a")]


def test_credits_that_are_there_are_taken_and_others_asked_for(asked):
    credits = credits_of(asked)

    assert not credits.take(20)
    assert asked == []
    waiting = credits.acquire(20)
    # Who waits comes first.
    assert not credits.take(1)
    credits.granted(50)
    assert waiting.is_done

    assert credits.take(30)
    assert not credits.take(1)
    assert asked == [(50, "a"), (50, "a")]
    assert credits_of(asked, window=-1).take(1000)


def test_a_full_address_is_told_of_by_acquire(asked):
    credits = credits_of(asked)
    credits.acquire(20)
    credits.granted(50)
    credits.refused(0)

    assert not credits.take(10)
    assert isinstance(credits.acquire(10).error, AddressFull)
    assert credits.take(10)


def test_one_request_serves_the_messages_of_half_a_window(asked):
    credits = credits_of(asked, window=1000)
    granted = 0

    for _ in range(100):
        credits.acquire(10)
        while granted < len(asked):
            credits.granted(asked[granted][0])
            granted += 1

    assert asked == [(500, "a")] * 3


def test_a_message_larger_than_the_window_gets_what_it_needs(asked):
    credits = credits_of(asked)

    reply = credits.acquire(250)
    credits.granted(250)

    assert (reply.is_done, asked) == (True, [(250, "a")])


def test_senders_are_served_in_order(asked):
    credits = credits_of(asked)
    large, small = credits.acquire(90), credits.acquire(20)

    credits.granted(100)
    assert (large.is_done, small.is_done) == (True, False)
    credits.granted(asked[1][0])

    assert small.is_done


def test_without_a_window_no_sender_waits(asked):
    assert credits_of(asked, window=-1).acquire(10**9).is_done
    assert asked == []


def test_a_full_address_fails_the_sender_that_waits_or_comes_next(asked):
    credits = credits_of(asked)
    waiting = credits.acquire(10)

    credits.refused(100)
    assert isinstance(waiting.error, AddressFull)
    assert credits.acquire(10).is_done
    credits.refused(0)

    assert isinstance(credits.acquire(10).error, AddressFull)
    assert credits.acquire(10).error is None


def test_a_new_session_asks_again(asked):
    credits = credits_of(asked)
    waiting = credits.acquire(70)

    credits.reset()
    assert asked[-1] == (200, "a")
    credits.granted(200)

    assert waiting.is_done


def test_who_waits_is_told_of_the_end(asked):
    waiting = credits_of(asked)
    reply = waiting.acquire(10)

    waiting.interrupt(ClosedError("over"))

    assert isinstance(reply.error, ClosedError)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=30), st.integers(1, 200))
def test_no_sender_waits_for_ever_and_nothing_is_spent_twice(sizes, window):
    asked, granted = [], 0
    credits = credits_of(asked, window)

    replies = [credits.acquire(size) for size in sizes]
    while granted < len(asked):
        credits.granted(asked[granted][0])
        granted += 1

    assert all(reply.is_done for reply in replies)
    assert sum(amount for amount, _ in asked) >= sum(sizes)


@given(st.lists(st.integers(1, 500), max_size=40), st.integers(2, 1000))
def test_a_consumer_gives_back_what_it_took(sizes, window):
    tokens = []
    consumer = ConsumerWindow(window, tokens.append)

    consumer.open()
    for size in sizes:
        consumer.taken(size)

    assert tokens[0] == window
    assert 0 <= sum(sizes) - sum(tokens[1:]) < max(1, window >> 1)


def test_a_window_of_0_lets_one_message_come_at_a_time():
    tokens = []
    consumer = ConsumerWindow(0, tokens.append)

    consumer.open()
    consumer.ask()
    consumer.ask()
    consumer.arrived()
    consumer.taken(50)

    # One was lent, 49 more make up for a message of 50: the broker has 0 left.
    assert (tokens, sum(tokens)) == ([1, 49], 50)
    consumer.ask()
    consumer.stop_asking()
    consumer.stop_asking()
    assert tokens[2:] == [1, 0]


def test_without_a_limit_one_token_is_enough():
    tokens = []
    consumer = ConsumerWindow(-1, tokens.append)

    consumer.open()
    consumer.taken(10**6)

    assert tokens == [-1]
