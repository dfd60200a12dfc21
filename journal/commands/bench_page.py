"""The page of `journal-bench --html`: curves as inline SVG in one file that fetches nothing."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Point", "bench_page"]

WIDTH: Final = 640
HEIGHT: Final = 380
LEFT: Final = 76
RIGHT: Final = 150
TOP: Final = 16
BOTTOM: Final = 52
COLOURS: Final = ("#0b6e99", "#c2571a", "#3d7a37", "#8a3ffc", "#a3195b", "#5c5c5c")

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #6a737d; --line: #d7dce1; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #98a2ac; --line: #3a4148; --page: #15181b; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 1360px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 1.2rem 0 .3rem; }
p { margin: .2rem 0 .8rem; } .soft { color: var(--soft); }
.row { display: flex; flex-wrap: wrap; gap: 0 2rem; }
figure { margin: 0 0 1rem; flex: 1 1 560px; max-width: 640px; } svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg .name { font-weight: 600; } svg .grid { stroke: var(--line); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem .2rem 0; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } td.text { text-align: left; }
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One measured point of the curves; latencies in microseconds."""

    size: int
    producers: int
    records_per_s: float
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart: its name, colour, dashes, and (x, y)."""

    name: str
    colour: str
    dashes: str
    points: tuple[tuple[float, float], ...]


def bench_page(result: dict[str, Any], points: Sequence[Point]) -> str:
    """The page.

    Args:
        result: what `journal-bench --json` prints.
        points: what was measured for the curves.
    """
    sizes = sorted({point.size for point in points})
    producers = sorted({point.producers for point in points})
    kind = "synced" if result["sync"] else "not synced"
    title = f"journal-bench: {result['type_used']}, {kind}"
    by_size = [[p for p in points if p.size == size] for size in sizes]
    by_producers = [[p for p in points if p.producers == count] for count in producers]
    size_names = [f"{size:,} B" for size in sizes]
    producer_names = [f"{count} producers" if count > 1 else "1 producer" for count in producers]
    charts = [
        _figure(
            "Records a second over producers",
            "producers (threads)",
            "records/s",
            _curves(by_size, size_names, lambda p: p.producers, lambda p: p.records_per_s),
        ),
        _figure(
            "Latency over producers: p50 solid, p99 dashed",
            "producers (threads)",
            "microseconds",
            _latencies(by_size, size_names, lambda p: p.producers),
        ),
        _figure(
            "Megabytes a second over record size",
            "bytes of a record",
            "MB/s",
            _curves(
                by_producers,
                producer_names,
                lambda p: p.size,
                lambda p: p.records_per_s * p.size / 1e6,
            ),
        ),
        _figure(
            "Latency over record size: p50 solid, p99 dashed",
            "bytes of a record",
            "microseconds",
            _latencies(by_producers, producer_names, lambda p: p.size),
        ),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_text(title)}</h1>\n"
        f'<p class="soft">{_text(_subtitle(result))}</p>\n'
        f'<div class="row">\n{"".join(charts)}</div>\n'
        f"<h2>The run</h2>\n{_run_table(result)}\n"
        f"<h2>Under it</h2>\n{_under_table(result)}\n"
        f"<h2>Every point</h2>\n{_point_table(points)}\n"
        "</body>\n</html>\n"
    )


def _subtitle(result: dict[str, Any]) -> str:
    under = result["under"]
    place = f"{under['file_system'] or 'unknown file system'} on {under['device'] or 'no device'}"
    machine = f"{under['kernel']}, {under['cpu_count']} CPUs"
    return f"{place}, {machine}. On this disk, {under['power_loss']}."


def _curves(
    groups: Sequence[Sequence[Point]],
    names: Sequence[str],
    x: Callable[[Point], float],
    y: Callable[[Point], float],
    dashes: str = "",
) -> list[Curve]:
    return [
        Curve(name, COLOURS[index % len(COLOURS)], dashes, tuple((x(p), y(p)) for p in group))
        for index, (group, name) in enumerate(zip(groups, names, strict=True))
    ]


def _latencies(
    groups: Sequence[Sequence[Point]], names: Sequence[str], x: Callable[[Point], float]
) -> list[Curve]:
    return [
        *_curves(groups, names, x, lambda p: p.p50_us),
        *_curves(groups, [""] * len(names), x, lambda p: p.p99_us, dashes="5 4"),
    ]


def _figure(title: str, x_name: str, y_name: str, curves: Sequence[Curve]) -> str:
    """One chart, both axes logarithmic: every doubling has the same width."""
    xs = sorted({x for curve in curves for x, _ in curve.points if x > 0}) or [1.0]
    ys = [y for curve in curves for _, y in curve.points if y > 0] or [1.0]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    high = max(high, low + 1)

    def place_x(x: float) -> float:
        span = math.log(xs[-1] / xs[0]) or 1.0
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(max(x, xs[0]) / xs[0]) / span)

    def place_y(y: float) -> float:
        share = (math.log10(max(y, 10**low)) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [
        (
            f'<figure><figcaption><h2>{_text(title)}</h2></figcaption>\n<svg viewBox="0 0 {WIDTH}'
            f' {HEIGHT}" role="img" aria-label="{_text(title)}">\n'
        )
    ]
    for power in range(low, high + 1):
        y = place_y(10**power)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_number(10**power)}</text>\n'
        )
    parts += [
        f'<text x="{place_x(x):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
        f"{x:,.0f}</text>\n"
        for x in xs
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
        f"{_text(x_name)}</text>\n"
        f'<text x="14" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle"'
        f' transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})">{_text(y_name)}</text>\n'
    )
    for curve in curves:
        path = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in curve.points)
        parts.append(
            f'<polyline fill="none" stroke="{curve.colour}" stroke-width="2"'
            f' stroke-dasharray="{curve.dashes}" points="{path}"/>\n'
        )
        parts += [
            f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3" fill="{curve.colour}">'
            f"<title>{_text(curve.name)} {x:,.0f}: {y:,.1f}</title></circle>\n"
            for x, y in curve.points
        ]
    parts += _names([curve for curve in curves if curve.name], place_y)
    parts.append("</svg></figure>\n")
    return "".join(parts)


def _names(curves: Sequence[Curve], place_y: Callable[[float], float]) -> list[str]:
    """Each curve's name beside its end, moved apart where they would touch."""
    ends = sorted((place_y(curve.points[-1][1]), curve) for curve in curves if curve.points)
    parts = []
    below = -math.inf
    for end, curve in ends:
        y = max(end, below + 15)
        below = y
        parts.append(
            f'<text class="name" x="{WIDTH - RIGHT + 10}" y="{y + 4:.1f}"'
            f' style="fill:{curve.colour}">{_text(curve.name)}</text>\n'
        )
    return parts


def _run_table(result: dict[str, Any]) -> str:
    append, load, compact = result["append"], result["load"], result["compact"]
    latency = append["latency_us"]
    rows = [
        ("append", append["seconds"], append["records_per_s"], append["mb_per_s"]),
        ("load", load["seconds"], load["records_per_s"], load["mb_per_s"]),
        ("compact", compact["seconds"], None, compact["mb_per_s"]),
    ]
    cells = "".join(
        f"<tr><td>{name}</td><td>{seconds:.3f}</td>"
        f"<td>{'' if records is None else f'{records:,.0f}'}</td><td>{megabytes:,.1f}</td></tr>"
        for name, seconds, records, megabytes in rows
    )
    return (
        f"<p>{result['count']:,} records of {result['size']:,} bytes from {result['producers']}"
        f" producers; latency p50 {latency['p50']:,}, p99 {latency['p99']:,}, p99.9"
        f" {latency['p999']:,}, most {latency['max']:,} microseconds;"
        f" {append['flushes']:,} flushes; compaction from {compact['files_before']} files to"
        f" {compact['files_after']}.</p>"
        "<table><tr><th>leg</th><th>seconds</th><th>records/s</th><th>MB/s</th></tr>"
        f"{cells}</table>"
    )


def _under_table(result: dict[str, Any]) -> str:
    cells = "".join(
        f'<tr><td>{_text(name.replace("_", " "))}</td><td class="text">'
        f"{_text(_said(value))}</td></tr>"
        for name, value in result["under"].items()
    )
    return f"<table>{cells}</table>"


def _point_table(points: Sequence[Point]) -> str:
    cells = "".join(
        f"<tr><td>{p.size:,}</td><td>{p.producers}</td><td>{p.records_per_s:,.0f}</td>"
        f"<td>{p.records_per_s * p.size / 1e6:,.1f}</td><td>{p.p50_us:,.1f}</td>"
        f"<td>{p.p99_us:,.1f}</td></tr>"
        for p in points
    )
    return (
        "<table><tr><th>bytes</th><th>producers</th><th>records/s</th><th>MB/s</th>"
        f"<th>p50 us</th><th>p99 us</th></tr>{cells}</table>"
    )


def _said(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _number(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _text(text: str) -> str:
    return html.escape(text)
