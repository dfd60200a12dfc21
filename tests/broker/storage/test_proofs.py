"""A success is told only if the stores are still this broker's, also where nothing was written."""

import pytest

from broker.storage.context import PROOF_S, Completions, OperationContext
from journal.errors import JournalClosed
from tests.broker.bench import one_becomes_durable


class Owner:
    """What may be asked whether it owns, with a clock that stands.

    Attributes:
        asked: how often it was.
    """

    def __init__(self):
        self.asked = 0
        self.now_s = 0.0
        self.lost = None
        self.is_in_doubt = False
        self.failures = []
        self.later = []
        self.completions = Completions(
            self.failures.append, check=self.check, clock=lambda: self.now_s
        )
        self.completions.call_later = lambda seconds, call: self.later.append(call)

    def check(self):
        self.asked += 1
        if self.lost is not None:
            raise self.lost
        return self.is_in_doubt

    def passes(self, seconds):
        self.now_s += seconds


@pytest.fixture
def owner():
    return Owner()


@pytest.fixture(params=["a session", "the broker"])
def after(request, owner):
    """Who asks to be called: a session, or the broker itself."""
    if request.param == "the broker":
        return owner.completions.after
    return OperationContext(owner.completions).after


def test_who_waits_for_no_disk_gets_no_success_once_the_stores_are_lost(owner, after):
    told = []
    after(told.append)
    owner.lost = JournalClosed("lost")

    owner.passes(PROOF_S)
    after(told.append)
    after(told.append)

    assert told == [None, owner.lost, owner.lost]
    assert owner.failures == [owner.lost]


def test_a_proof_is_good_for_a_millisecond(owner, after):
    for _ in range(10):
        after(lambda error: None)
    assert owner.asked == 1

    owner.passes(PROOF_S)
    after(lambda error: None)

    assert owner.asked == 2


def test_answers_wait_while_the_lease_is_in_doubt_and_come_in_their_order(owner, after):
    told = []
    owner.is_in_doubt = True
    after(lambda error: told.append((1, error)))
    after(lambda error: told.append((2, error)))
    (again,) = owner.later
    owner.later.clear()
    again()
    assert told == []

    owner.is_in_doubt = False
    owner.later.pop()()
    after(lambda error: told.append((3, error)))

    assert told == [(1, None), (2, None), (3, None)]


def test_who_waits_in_doubt_is_told_of_the_loss(owner, after):
    told = []
    owner.is_in_doubt = True
    after(told.append)
    owner.lost = JournalClosed("lost")

    owner.later.pop()()

    assert told == [owner.lost]


def test_what_is_durable_waits_too_while_the_lease_is_in_doubt(owner, after):
    told = []
    owner.completions.messages.appended = 1
    owner.completions.after(told.append)
    owner.is_in_doubt = True

    one_becomes_durable(owner.completions)
    assert told == []
    owner.is_in_doubt = False
    owner.later.pop()()

    assert told == [None]
