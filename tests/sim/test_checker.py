"""Thirty histories, right and wrong, and what the checker has to say of each."""

import pytest

from tests.broker.history.record import Wait
from tests.broker.history.telling import ORDERED, Story
from tests.sim.checker import check

# Line by line: `send KEYS [OUTCOME] [to QUEUES] [by PRODUCER] [group NAME] [with id]`,
# `take KEYS [OUTCOME] [from QUEUE] [count N] [copy N] [body TEXT]`, `crash`, `wait`, `over`.
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
    "a long wait with nothing there": ("wait; over; send a; take a", ""),
    "confirmed and gone": ("send a", "lost"),
    "one of two queues has not got it": ("send a to q other; take a", "lost"),
    "given back and gone": ("send a; take a rolled-back", "lost"),
    "a confirmed duplicate id without a message": ("send a tried with id; send a with id", "lost"),
    "never sent": ("take x open body x|invented; take x body x|invented", "unexpected"),
    "sent elsewhere": ("send a; take a; take a from other copy 9", "unexpected"),
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
    "three copies of two sends": (
        "send a; send a; take a copy 1; take a copy 2; take a copy 3",
        "duplicated",
    ),
    "another body": ("send a; take a body a|other", "changed"),
    "out of order": ("send a; send b; take b; take a", "reordered"),
    "out of order within a group": (
        "send a group red to z; send b group red to z; take b from z; take a from z",
        "reordered",
    ),
    "half of an unknown transaction": ("send a b tried; take a", "torn"),
    "rolled back, and it looks new": ("send a; take a rolled-back; take a", "unmarked"),
    "there, with a consumer that got nothing": ("send a; wait; over; take a", "stranded"),
}


def told(text):
    """The history that a text tells."""
    story = Story()
    began = 0
    for line in text.split("; "):
        words = line.split()
        kind = words.pop(0)
        if kind == "crash":
            story.run += 1
        elif kind == "wait":
            began = story.moment()
        elif kind == "over":
            story.waits.append(Wait("q", began, story.moment(), 10.0))
        else:
            keys, how = [], {}
            while words:
                word = words.pop(0)
                if word in ("tried", "open", "undone", "rolled-back"):
                    how["outcome"] = word.replace("-", " ")
                elif word == "to":
                    how["queues"] = tuple(one for one in words if one in ("q", "other", "z"))
                    del words[: len(how["queues"])]
                elif word in ("by", "group", "from", "count", "copy", "body"):
                    name = {"by": "producer", "from": "queue"}.get(word, word)
                    value = words.pop(0)
                    how[name] = int(value) if word in ("count", "copy") else value
                elif word == "with":
                    how["has_duplicate_id"] = words.pop(0) == "id"
                else:
                    keys.append(word)
            if kind == "take" and "body" in how:
                how["body"] = how["body"].encode()
            (story.sent if kind == "send" else story.got)(*keys, **how)
    return story


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
