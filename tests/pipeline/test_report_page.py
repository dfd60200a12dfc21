"""A report is one page that needs nothing else."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: quiver-mq[report] brings it")

from pipeline.report import Report, Total
from pipeline.report_page import page

HOUR_MS = 3_600_000
LINE = [(float(hour * HOUR_MS), float(hour % 7)) for hour in range(48)]
FULL = Report(
    totals=[
        Total("left", 1200, 100, 7, routed=1250, acknowledged=1100, waiting=150, bytes=5_000_000),
        Total("<right>", 3, routed=3, acknowledged=2, waiting=1, bytes=10),
    ],
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

    # In the legends of rates and depths, beside a flow, and below a bar.
    for name in names:
        assert f">{name}<" in text
        assert f">{name} → {name}<" in text
        assert f">{name} · {name}<" in text
        assert f">{name} {name}.amq<" in text


def ticks(text, title):
    """The texts of one drawing."""
    drawing = text[text.index(f"<h2>{title}</h2>") :]
    drawing = drawing[: drawing.index("</svg>")]
    return re.findall(r"<tspan[^>]*>([^<]+)</tspan>|<text[^>]*>([^<]+)</text>", drawing)


@pytest.mark.parametrize("step_ms", [1000, 60_000, HOUR_MS, 6 * HOUR_MS])
def test_a_time_axis_says_day_hour_and_minute(step_ms):
    start = 1_800_000_000_000
    line = [(float(start + number * step_ms), float(number)) for number in range(48)]

    text = page(replace(FULL, rates=[("orders", line)]), "Orders", MADE)

    said = {one or other for one, other in ticks(text, "Rates")}
    assert [one for one in said if re.fullmatch(r"\d\d:\d\d(:\d\d)?", one)]


def test_one_pair_of_nodes_is_a_bar_from_zero_with_its_number():
    text = page(replace(FULL, flows=[("left", "right", 1234)]), "Orders", MADE)

    said = {one or other for one, other in ticks(text, "Flow between nodes")}
    assert {"left → right", "1,234", "0"} <= said


def test_what_is_in_pages_and_what_is_large_is_counted_in():
    text = page(FULL, "Orders", MADE)

    cells = re.findall(r"<td>([^<]*)</td>", text)[:8]
    assert cells == ["left", "1,200", "100", "7", "1,250", "1,100", "150", "4.77 MiB"]
