"""An audit and the checker of histories say the same of one broker, in the same words."""

import json
import random
import re

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from pipeline.audit import FINDINGS
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from pipeline.finding_rules import DUPLICATED, LOST, OUT_OF_ORDER
from tests.broker.history.checker import problems
from tests.pipeline.planted import NOW_MS
from tests.pipeline.told_twice import ORDERED, TwiceTold

SHARED = (LOST, DUPLICATED, OUT_OF_ORDER)
BROKERS = 8
KEY = re.compile(r"'(\w+)' (?:in|came behind '\w+' in) (\w+)")


@pytest.fixture(autouse=True)
def _keep_spark(spark, monkeypatch):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


def brokers_of(root, *, has_faults):
    """Brokers by the names of their folders, each with what happened to it."""
    made = {}
    for number in range(BROKERS):
        name = f"b{number:02}"
        made[name] = TwiceTold(root / name, random.Random(number), has_faults=has_faults)
        made[name].live()
    return made


def audited(root, brokers, capsys):
    """(broker, word, message, queue) of each finding; a duplicate is one of no queue."""
    words = ["audit", str(root / "*"), "--retention", str(root / "*" / "retention")]
    capsys.readouterr()
    status = run(commands, "pipeline", [*words, "--as-of", str(NOW_MS), "--json"])
    said = capsys.readouterr()
    assert status in (0, 1), said.err
    rows = map(json.loads, said.out.splitlines())
    return {
        (one["node"], one["finding"], brokers[one["node"]].keys[one["message_id"]], one["queue"])
        for one in rows
        if one["finding"] in SHARED
    }


def checked(brokers):
    """The same of the checker."""
    found = set()
    for name, broker in brokers.items():
        for line in problems(broker.history, ORDERED):
            word, _, text = line.partition(": ")
            key, queue = KEY.match(text).groups()
            found.add((name, word, key, None if word == DUPLICATED else queue))
    return found


@pytest.mark.slow
def test_both_find_the_same_faults_in_the_same_messages(tmp_path, capsys):
    brokers = brokers_of(tmp_path, has_faults=True)

    found = checked(brokers)

    assert audited(tmp_path, brokers, capsys) == found
    assert {word for _, word, _, _ in found} == set(SHARED)


@pytest.mark.slow
def test_both_find_nothing_wrong_with_brokers_without_faults(tmp_path, capsys):
    brokers = brokers_of(tmp_path, has_faults=False)

    assert checked(brokers) == set()
    assert audited(tmp_path, brokers, capsys) == set()


def test_the_words_are_those_that_an_audit_has():
    assert set(SHARED) <= set(FINDINGS)
