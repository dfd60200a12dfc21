"""Fifty histories, right and wrong, and what the checker has to say of each."""

import pytest

from tests.broker.history.record import Wait
from tests.broker.history.telling import ORDERED, Story
from tests.sim.checker import check

# Line by line: `send KEYS [OUTCOME] [to QUEUES] [by PRODUCER] [group NAME] [with id] [on ADDRESS]`;
# `take KEYS [OUTCOME] [from QUEUE] [count N] [copy N] [body TEXT] [ends OUTCOME]`; `answer KEYS` of
# what was taken last, in the same unit; `end OUTCOME` of that; `subscribe QUEUE [OUTCOME]`;
# `drop QUEUE`; `crash`; `wait`; `over`.
HISTORIES = {
    "sent and taken": ("send a; take a", ""),
    "sent in one transaction": ("send a b c; take a b c", ""),
    "unknown and there": ("send a tried; take a", ""),
    "unknown and not there": ("send a tried", ""),
    "refused and not there": ("send a undone", ""),
    "taken, lost with the connection, taken again": ("send a; take a open; take a", ""),
    "taken, rolled back, counted, taken again": (
        "send a; take a rolled-back; take a count 2",
        "",
    ),
    "an unknown acknowledgement, and it comes again": ("send a; take a tried; crash; take a", ""),
    "an unknown acknowledgement, and it does not": ("send a; take a tried", ""),
    "counted from one again after a crash": ("send a; take a rolled-back; crash; take a", ""),
    "one duplicate id, two sends": ("send a tried with id; send a with id; take a", ""),
    "two sends, two copies": ("send a tried; send a; take a copy 1; take a copy 2", ""),
    "to two queues": ("send a to q other; take a; take a from other copy 9", ""),
    "two producers overtake each other": ("send a by p; send b by r; take b; take a", ""),
    "groups overtake each other": (
        "send a group red to z; send b group green to z; take b from z; take a from z",
        "",
    ),
    "a prepared transaction gives back": (
        "send a; take a prepared; freed; crash; take a",
        "",
    ),
    "two that were sent over one connection after the other": (
        "send a late; send b; take b; take a",
        "",
    ),
    "taken and answered in one transaction": (
        "send a; take a open; answer b; end done; take b",
        "",
    ),
    "neither taken nor answered": (
        "send a; take a open; answer b; end tried; crash; take a",
        "",
    ),
    "a subscription has what was sent after it": (
        "subscribe z; send a on topic; take a from z",
        "",
    ),
    "acknowledged before it was delivered, and never seen": ("fleeting; send a", ""),
    "acknowledged before it was delivered, one of a transaction seen": (
        "fleeting; send a b tried; take a",
        "",
    ),
    "acknowledged before it was delivered, seen twice": (
        "fleeting; send a; take a; take a",
        "duplicated",
    ),
    "a subscription has nothing from before it": ("send a on topic; subscribe z", ""),
    "a send while it is created, there": (
        "subscribe z tried; send a on topic; take a from z",
        "",
    ),
    "a send while it is created, not there": ("subscribe z tried; send a on topic", ""),
    "a subscription that was deleted": ("subscribe z; send a on topic; drop z", ""),
    "given back to a subscription that was deleted": (
        "subscribe z; send a on topic; take a undone from z; drop z",
        "",
    ),
    "one id, sent before and after the subscription": (
        "send a on topic with id; subscribe z; send a with id",
        "",
    ),
    "a long wait with nothing there": ("wait; over; send a; take a", ""),
    "confirmed and gone": ("send a", "lost"),
    "one of two queues has not got it": ("send a to q other; take a", "lost"),
    "given back and gone": ("send a; take a rolled-back", "lost"),
    "a confirmed duplicate id without a message": ("send a tried with id; send a with id", "lost"),
    "a subscription has not got it": ("subscribe z; send a on topic", "lost"),
    "rolled back by its client, and gone": (
        "send a; take a open; answer b; end rolled-back",
        "lost",
    ),
    "never sent": ("take x open body x|invented; take x body x|invented", "unexpected"),
    "sent elsewhere": ("send a; take a; take a from other copy 9", "unexpected"),
    "a subscription has what was sent before it": (
        "send a on topic; subscribe z; take a from z",
        "unexpected",
    ),
    "rolled back and there": ("send a rolled-back; take a", "unexpected"),
    "acknowledged, and it comes again": ("send a; take a; take a count 2", "duplicated"),
    "acknowledged, and it comes again after a crash": (
        "send a; take a; crash; take a",
        "duplicated",
    ),
    "one duplicate id, two copies": (
        "send a with id; send a undone with id; take a copy 1; take a copy 2",
        "duplicated",
    ),
    "a subscription has two copies": (
        "subscribe z; send a on topic; take a from z copy 1; take a from z copy 2",
        "duplicated",
    ),
    "while a prepared transaction has it": (
        "send a; take a prepared; crash; take a",
        "duplicated",
    ),
    "three copies of two sends": (
        "send a; send a; take a copy 1; take a copy 2; take a copy 3",
        "duplicated",
    ),
    "another body": ("send a; take a body a|other", "changed"),
    "one number for two messages": (
        "send a b; take a tried copy 1; crash; take b copy 1",
        "changed",
    ),
    "out of order": ("send a; send b; take b; take a", "out of order"),
    "out of order within a group": (
        "send a group red to z; send b group red to z; take b from z; take a from z",
        "out of order",
    ),
    "half of an unknown transaction": ("send a b tried; take a", "torn"),
    "an acknowledgement of both, of which one counts": (
        "send a; send b; take a b tried; crash; take b",
        "torn",
    ),
    "a send to two queues, of which one has it": ("send a tried to q other; take a", "torn"),
    "answered, and not taken": (
        "send a; take a open; answer b; end tried; crash; take a; take b",
        "torn",
    ),
    "taken, and not answered": ("send a; take a open; answer b; end tried", "torn"),
    "lost with the connection, and it looks new": (
        "send a; take a lost; take a count 1",
        "unmarked",
    ),
    "rolled back, and it looks new": ("send a; take a rolled-back; take a", "unmarked"),
    "there, with a consumer that got nothing": ("send a; wait; over; take a", "stranded"),
}


OUTCOMES = ("tried", "open", "undone", "rolled-back", "lost", "prepared", "late")
NAMED = {"by": "producer", "from": "queue", "on": "address"}


def told(text):
    """The history that a text tells."""
    story = Story()
    began, last = 0, None
    for line in text.split("; "):
        kind, *words = line.split()
        if kind == "crash":
            story.run += 1
        elif kind == "wait":
            began = story.moment()
        elif kind == "over":
            story.waits.append(Wait("q", began, story.moment(), 10.0))
        elif kind == "subscribe":
            story.subscribe(*words[:1], outcome=words[-1] if words[1:] else "done")
        elif kind == "fleeting":
            story.lossy = frozenset("q")
        elif kind == "drop":
            story.unsubscribing(story.subscriptions[words[0]])
        elif kind == "end":
            story.ends(last, words[0].replace("-", " "))
        elif kind == "freed":
            story.freed(last)
            story.undone(last)
        elif kind == "answer":
            for number, key in enumerate(words):
                story.send(last, story.message(key, 10, ("q",)), "answers", number)
        else:
            keys, how, is_late = read(words)
            last = (story.sent if kind == "send" else story.got)(*keys, **how)
            last.is_late = is_late
    return story


def read(words):
    """Keys, arguments, and what else is said of their unit."""
    keys, how, is_late = [], {}, False
    while words:
        word = words.pop(0)
        if word == "late":
            is_late = True
        elif word in OUTCOMES:
            how["outcome"] = word.replace("-", " ")
        elif word == "to":
            how["queues"] = tuple(one for one in words if one in ("q", "other", "z"))
            del words[: len(how["queues"])]
        elif word in ("by", "group", "from", "count", "copy", "body", "on"):
            value = words.pop(0)
            value = int(value) if word in ("count", "copy") else value
            how[NAMED.get(word, word)] = value.encode() if word == "body" else value
            if word == "on":
                how["queues"] = ()
        elif word == "with":
            how["has_duplicate_id"] = words.pop(0) == "id"
        else:
            keys.append(word)
    return keys, how, is_late


@pytest.mark.parametrize(("text", "word"), HISTORIES.values(), ids=HISTORIES)
def test_a_history_has_the_expected_verdict(text, word):
    verdict = check(told(text), ORDERED)

    assert {one.word for one in verdict.violations} == ({word} if word else set())


def test_a_violation_tells_the_whole_way_of_its_message():
    verdict = check(told("send a; take a rolled-back copy 1; take a copy 1"), ORDERED)

    assert str(verdict.violations[0]).splitlines()[1:] == [
        "    sent by p, number 0: done, tried at 1, done at 2",
        "    taken from q: run 1, at 3, copy 1, count 1, undone, rolled back",
        "    taken from q: run 1, at 4, copy 1, count 1, done, tried at 5, done at 6",
    ]


def test_unknown_outcomes_are_counted_apart():
    verdict = check(told("send a tried; send b tried; send c; take a; take c"), ORDERED)

    assert (verdict.violations, verdict.unknown, verdict.recovered) == ((), 2, 1)
