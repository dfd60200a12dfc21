"""An audit of brokers whose histories were made by chance says what it has always said.

`random_findings.jsonl` has what an audit of many passes over the records said of them, one that
sorted and joined the records anew for each kind of finding; a line a finding, in order.
"""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from tests.pipeline.planted import NOW_MS
from tests.pipeline.random_clusters import make_clusters

RECORDED = Path(__file__).with_suffix("").with_name("random_findings.jsonl")
NAMES = (
    *("finding", "reason", "node", "address", "queue", "message_id", "timestamp_ms", "detail"),
)


@pytest.fixture(autouse=True)
def _keep_spark(spark, monkeypatch):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


# Where a record lies depends on when its journal had a new file ready.
PLACE = re.compile(r"activemq-data-\d+\.amq:\d+")


def audited(root, capsys):
    words = ["audit", str(root / "*"), "--retention", str(root / "*" / "retention")]
    capsys.readouterr()
    status = run(commands, "pipeline", [*words, "--as-of", str(NOW_MS), "--json"])
    said = capsys.readouterr()
    assert status in (0, 1), said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_what_is_wrong_in_twenty_clusters_is_found_as_before(tmp_path, capsys):
    names = make_clusters(tmp_path, range(20), has_faults=True)

    found = audited(tmp_path, capsys)

    def named(value):
        for node_id, name in names.items() if isinstance(value, str) else ():
            value = value.replace(node_id, name)
        return PLACE.sub("a file", value) if isinstance(value, str) else value

    rows = sorted(json.dumps([named(one[name]) for name in NAMES]) for one in found)
    assert rows == RECORDED.read_text().splitlines()


def test_in_clusters_without_a_fault_nothing_is_found(tmp_path, capsys):
    make_clusters(tmp_path, range(20, 24), has_faults=False)

    assert audited(tmp_path, capsys) == []
