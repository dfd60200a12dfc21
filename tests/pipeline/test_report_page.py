"""A report is one page that needs nothing else."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: quiver-mq[report] brings it")

from pipeline.report import Report
from pipeline.report_page import page

HOUR_MS = 3_600_000
LINE = [(float(hour * HOUR_MS), float(hour % 7)) for hour in range(48)]
FULL = Report(
    totals=[("left", 1200, 1100, 1250, 5_000_000), ("<right>", 3, 2, 3, 10)],
    bucket_s=3600,
    rates=[("orders", LINE), ("bills & <co>", LINE[10:12])],
    depths=[("left · orders", LINE)],
    sizes=[(0.0, 3), (1024.0, 500), (2048.0, 700)],
    latencies=[(1.0, 10), (128.0, 1000)],
    files=[("left", f"activemq-data-{number}.amq", 10 << 20, number << 17) for number in range(70)],
    flows=[("left", "<right>", 40), ("<right>", "left", 7)],
)
EMPTY = Report([], 0.001, [], [], [], [], [], [])
MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_every_figure_is_drawn_inside_of_the_page():
    text = page(FULL, "Orders & <more>", MADE)

    assert text.count("<svg") == 6
    assert "<title>Orders &amp; &lt;more&gt;</title>" in text
    assert "2026-01-02 03:04:05 UTC" in text
    assert "1,200" in text
    assert "4.77 MiB" in text
    for wild in ("<right>", "<co>", "<more>"):
        assert wild not in text
    # Names of what SVG is made of, and nothing that would be fetched.
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)
    assert "<script" not in text


def test_what_is_not_recorded_is_said():
    text = page(EMPTY, "Nothing", MADE)

    assert text.count("Nothing is recorded of it.") == 6
    assert "<svg" not in text


@pytest.mark.filterwarnings("error")
def test_names_are_text_whatever_is_in_them():
    names = ("$SYS.$\\frac$", "_hidden", "a$x_$b", "日本語")
    wild = replace(
        FULL,
        rates=[(name, LINE) for name in names],
        depths=[(f"{name} · {name}", LINE) for name in names],
        flows=[(name, name, 1) for name in names],
        files=[(name, f"{name}.amq", 10, 1) for name in names],
    )

    text = page(wild, "Orders", MADE)

    # In the legends of rates and depths, beside both axes of flows, and below a bar.
    for name in names:
        assert text.count(f">{name}<") == 3
        assert f">{name} · {name}<" in text
        assert f">{name} {name}.amq<" in text
