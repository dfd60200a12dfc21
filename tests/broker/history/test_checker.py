"""The checker can fail: a history without fault, and each fault that it is there to find."""

import pytest

from tests.broker.history.checker import problems
from tests.broker.history.telling import ORDERED, QUEUE, Story


@pytest.fixture
def story():
    return Story()


def test_a_history_without_fault(story):
    story.sent("a", "b")
    story.sent("unknown, there", outcome="tried")
    story.sent("unknown, not there", outcome="tried")
    story.sent("refused", outcome="undone")
    story.sent("twice", outcome="tried")
    story.sent("twice")
    story.sent("once", outcome="tried", has_duplicate_id=True)
    story.sent("once", has_duplicate_id=True)
    story.sent("everywhere", queues=(QUEUE, "other"))
    story.got("a", outcome="rolled back")
    story.got("a", count=2, outcome="tried")
    story.run = 2
    story.got("a")
    story.got("b", "unknown, there", "once", "everywhere")
    story.got("everywhere", queue="other", copy=77)
    story.got("twice", copy=1)
    story.got("twice", copy=2)

    assert problems(story, ORDERED) == []


def test_a_confirmed_message_that_never_came_is_lost(story):
    story.sent("a")

    assert story.words() == ["lost"]


def test_one_of_two_queues_without_it_has_lost_it(story):
    story.sent("a", queues=(QUEUE, "other"))
    story.got("a")

    assert story.words() == ["lost"]


@pytest.mark.parametrize("outcome", ["open", "undone", "rolled back"])
def test_a_message_that_went_back_and_never_came_again_is_lost(story, outcome):
    story.sent("a", outcome="tried")
    story.got("a", outcome=outcome)

    assert story.words() == ["lost"]


def test_a_confirmed_duplicate_id_with_no_copy_is_lost(story):
    story.sent("a", outcome="tried", has_duplicate_id=True)
    story.sent("a")

    assert story.words() == ["lost"]


def test_what_was_never_sent_is_unexpected(story):
    story.got(outcome="open")
    story.take(story.unit(), QUEUE, 1, 1, 1, b"invented|")

    assert "unexpected" in story.words()


def test_what_came_to_a_queue_it_was_not_sent_to_is_unexpected(story):
    story.sent("a")
    story.got("a")
    story.got("a", queue="other", copy=5)

    assert story.words() == ["unexpected"]


def test_what_was_rolled_back_is_unexpected(story):
    story.sent("a", outcome="rolled back")
    story.got("a")

    assert story.words() == ["unexpected"]


def test_what_comes_before_its_commit_is_unexpected(story):
    unit = story.sent("a", outcome="open")
    story.got("a")
    story.ends(unit, "done")

    assert story.words() == ["unexpected"]


def test_another_body_is_a_change(story):
    story.sent("a")
    story.got("a", body=b"a|something else")

    assert story.words() == ["changed"]


def test_one_number_for_two_messages_is_a_change(story):
    story.sent("a", "b")
    story.got("a", copy=1, outcome="tried")
    story.run = 2
    story.got("b", copy=1)

    assert story.words() == ["changed"]


def test_what_was_acknowledged_and_came_again_is_a_duplicate(story):
    story.sent("a")
    story.got("a")
    story.got("a", count=2)

    assert story.words() == ["duplicated"]


def test_one_send_with_two_copies_is_a_duplicate(story):
    story.sent("a")
    story.got("a", copy=1)
    story.got("a", copy=2)

    assert story.words() == ["duplicated"]


def test_two_sends_with_one_duplicate_id_have_one_copy(story):
    story.sent("a", has_duplicate_id=True)
    story.sent("a")
    story.got("a", copy=1)
    story.got("a", copy=2)

    assert story.words() == ["duplicated"]


def test_what_a_prepared_transaction_has_goes_to_no_other_consumer(story):
    story.sent("a")
    story.got("a", outcome="prepared")
    story.run = 2
    story.got("a")

    assert story.words() == ["duplicated"]


def test_what_a_prepared_transaction_gave_back_comes_again(story):
    story.sent("a")
    unit = story.got("a", outcome="prepared")
    story.freed(unit)
    story.undone(unit)
    story.run = 2
    story.got("a")

    assert story.words() == []


@pytest.mark.parametrize("there", ["a", "b"])
def test_half_of_what_a_transaction_sent_is_torn(story, there):
    story.sent("a", "b", outcome="tried")
    story.got(there)

    assert story.words() == ["torn"]


def test_a_transaction_that_sent_and_did_not_take_is_torn(story):
    story.sent("a")
    unit = story.got("a", outcome="open")
    story.send(unit, story.message("answer", 10, (QUEUE,)), "q", 1)
    story.ends(unit, "tried")
    story.run = 2
    story.got("a", "answer")

    assert story.words() == ["torn"]


def test_a_transaction_that_took_and_did_not_send_is_torn(story):
    story.sent("a")
    unit = story.got("a", outcome="open")
    story.send(unit, story.message("answer", 10, (QUEUE,)), "q", 1)
    story.ends(unit, "tried")

    assert story.words() == ["torn"]


def test_another_order_than_that_of_the_producer_is_told(story):
    story.sent("a")
    story.sent("b")
    story.got("b", "a")

    assert story.words() == ["out of order"]


def test_the_order_of_a_group_counts_in_every_queue(story):
    story.sent("a", queues=("many",), group="g")
    story.sent("b", queues=("many",), group="g")
    story.got("b", "a", queue="many")

    assert story.words() == ["out of order"]


def test_order_means_nothing_between_producers_or_consumers(story):
    story.sent("a", producer="p")
    story.sent("b", producer="q")
    story.sent("c", queues=("many",))
    story.sent("d", queues=("many",))
    story.got("b", "a")
    story.got("d", "c", queue="many")

    assert story.words() == []


def test_a_second_delivery_says_that_it_is_one(story):
    story.sent("a")
    story.got("a", outcome="rolled back")
    story.got("a", count=1)

    assert story.words() == ["unmarked"]


def test_a_history_that_was_cut_off_says_nothing_of_losses(story):
    story.sent("a")

    assert problems(story, ORDERED, is_complete=False) == []
