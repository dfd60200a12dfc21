"""A report as one page of HTML that needs nothing else: drawings are SVG inside of it."""

from __future__ import annotations

import html
import io
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from pipeline.report import Report, Series

__all__ = ["page"]

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #f5f7fa; margin: 0 }
main { max-width: 1080px; margin: 0 auto; padding: 24px }
h1 { font-size: 26px; margin: 0 } h2 { font-size: 17px; margin: 0 0 2px }
section { background: #fff; border: 1px solid #e1e6eb; border-radius: 8px; padding: 16px 20px;
  margin-top: 18px }
p { margin: 0 0 8px; color: #52606d } svg { width: 100%; height: auto; display: block }
table { border-collapse: collapse; width: 100% } th, td { text-align: right; padding: 4px 8px }
th:first-child, td:first-child { text-align: left } tr + tr td { border-top: 1px solid #e1e6eb }
"""
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES: Final = ((1000.0, "ms"), (60.0, "s"), (60.0, "min"), (24.0, "h"))
_DAY_MS: Final = 86_400_000
# Characters of a name beside a drawing.
_NAME_MAX: Final = 32
# Bars of one drawing.
_FILES_MAX: Final = 60
_FLOWS_MAX: Final = 40
_FLOWS_MIN: Final = 3


def page(report: Report, title: str, made: datetime) -> str:
    """The page.

    Args:
        report: its figures.
        title: what was read.
        made: when; shown with its zone.
    """
    parts = [
        _section(
            "Brokers",
            "What records and pages tell of each. In queues is what waits now. When what was paged"
            " left its queue is not recorded: what no queue has any more counts as acknowledged.",
            _totals(report),
        ),
        _section(
            "Rates",
            "Messages sent per second, by address, as their senders' clocks had it, UTC; steps of"
            f" {_duration(report.bucket_s * 1000)}.",
            _drawing(lambda axes: _lines(axes, report.rates, "messages/s"), report.rates),
        ),
        _section(
            "Depth over time",
            "Messages that were routed to a queue and not acknowledged by it; the queues with the"
            " most traffic. What happened before the oldest record is not known. What waits in"
            " pages counts from when it was sent, as its sender's clock had it.",
            _drawing(lambda axes: _lines(axes, report.depths, "messages"), report.depths),
        ),
        _section(
            "Sizes",
            "Bodies of messages; a bar reaches from its size to twice as much. Of a large message"
            " that is gone the size is what its sender said, if he did.",
            _drawing(lambda axes: _bars(axes, report.sizes, _bytes, "messages"), report.sizes),
        ),
        _section(
            "Latency",
            "From sending to acknowledgement, by the log's own clock: a record is as old as the"
            " youngest message before it.",
            _drawing(
                lambda axes: _bars(axes, report.latencies, _duration, "acknowledgements"),
                report.latencies,
            ),
        ),
        _section("Live share per file", _files_text(report), _files(report)),
        _section("Flow between nodes", _flows_text(report), _flows(report)),
    ]
    name = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{name}</h1><p>Made {made:%Y-%m-%d %H:%M:%S %Z}</p>"
        f"{''.join(parts)}</main></body></html>\n"
    )


def _section(title: str, text: str, content: str) -> str:
    return f"<section><h2>{title}</h2><p>{html.escape(text)}</p>{content}</section>"


def _totals(report: Report) -> str:
    titles = (
        *("node", "messages", "in pages", "large", "to queues", "acknowledged", "in queues"),
        "bodies",
    )
    rows = [
        (
            one.node,
            *(f"{count:,}" for count in (one.messages, one.paged, one.large, one.routed)),
            *(f"{one.acknowledged:,}", f"{one.waiting:,}", _bytes(one.bytes)),
        )
        for one in report.totals
    ]
    head = "".join(f"<th>{one}</th>" for one in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _drawing(draw: Callable[[Axes], None], data: Sequence[object], *, height: float = 3.2) -> str:
    """What `draw` puts on its axes, as SVG; a word where there is nothing to draw."""
    if not data:
        return "<p><em>Nothing is recorded of it.</em></p>"
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["system-ui", "DejaVu Sans", "sans-serif"],
        "font.size": 9,
        # Names of queues may have dollar signs: these do not start formulas.
        "text.parse_math": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#9aa5b1",
        "axes.grid": True,
        "grid.color": "#e4e7eb",
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        # Names are text in the page: the fonts that count are the browser's.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(10, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_axisbelow(True)
        draw(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _lines(axes: Axes, lines: Sequence[Series], unit: str) -> None:
    from matplotlib.dates import AutoDateFormatter, AutoDateLocator

    drawn = []
    for _, points in lines:
        # matplotlib's own unit: days since 1970.
        times = [x / _DAY_MS for x, _ in points]
        mark = "o" if len(points) < 3 else None
        drawn += axes.plot(times, [y for _, y in points], linewidth=1.6, marker=mark)
    # These two of matplotlib have no types.
    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    shown = AutoDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
    # By days, between ticks: whatever the span, a time says its day, hour and minute.
    shown.scaled = {
        365.0: "%Y",
        28.0: "%Y-%m-%d",
        1.0: "%Y-%m-%d\n%H:%M",
        1 / 24: "%Y-%m-%d\n%H:%M",
        1 / 1440: "%Y-%m-%d\n%H:%M",
        1 / 86_400: "%H:%M:%S",
        0.0: "%H:%M:%S.%f",
    }
    axes.xaxis.set_major_formatter(shown)
    axes.set_xlabel("time, UTC")
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=min(0, *axes.get_ylim()))
    # Not by labels: one that begins with `_` would not be shown.
    names = [_short(name) for name, _ in lines]
    axes.legend(drawn, names, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def _short(name: str) -> str:
    """A name that leaves the drawing its room.

    >>> _short("left · orders"), len(_short("x" * 100))
    ('left · orders', 32)
    """
    return (
        name
        if len(name) <= _NAME_MAX
        else f"{name[: _NAME_MAX // 2 - 1]}…{name[-_NAME_MAX // 2 :]}"
    )


def _bars(
    axes: Axes, bars: Sequence[tuple[float, int]], shown: Callable[[float], str], unit: str
) -> None:
    counts = [count for _, count in bars]
    drawn = axes.bar(range(len(bars)), counts, color="#3e7cb1", width=0.85)
    axes.bar_label(drawn, [f"{count:,}" for count in counts], fontsize=8, color="#52606d")
    axes.set_xticks(range(len(bars)), [shown(least) for least, _ in bars])
    axes.set_xlabel("at least")
    axes.set_ylabel(unit)
    axes.grid(visible=False, axis="x")


def _files_text(report: Report) -> str:
    every = sum(one[2] for one in report.files)
    live = sum(one[3] for one in report.files)
    share = f"{100 * live / every:.1f} %" if every else "nothing"
    left_out = len(report.files) - _FILES_MAX
    more = (
        f" The newest {_FILES_MAX} files; {left_out} older ones are left out."
        if left_out > 0
        else ""
    )
    return (
        f"Bytes of records that a start would load, of all in each file: {share} of"
        f" {_bytes(every)}.{more}"
    )


def _files(report: Report) -> str:
    shown = report.files[-_FILES_MAX:]

    def draw(axes: Axes) -> None:
        places = range(len(shown))
        power = min(len(_SIZES) - 1, max(one[2].bit_length() - 1 for one in shown) // 10)
        sizes = [one[2] / 1024**power for one in shown]
        live = [one[3] / 1024**power for one in shown]
        axes.bar(places, sizes, color="#d5dde5", label="all records")
        axes.bar(places, live, color="#2f9e6e", label="live")
        axes.margins(x=0.01)
        step = max(1, len(shown) // 20)
        names = [f"{node} {file}" for node, file, *_ in shown]
        axes.set_xticks(list(places)[::step], names[::step], rotation=35, ha="right", fontsize=7)
        axes.set_ylabel(_SIZES[power])
        axes.grid(visible=False, axis="x")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)

    return _drawing(draw, shown, height=3.8)


def _flow_bars(axes: Axes, flows: Sequence[tuple[str, str, int]]) -> None:
    """A bar for each pair of nodes, the number beside it."""
    shown = sorted(flows, key=lambda flow: (-flow[2], flow))[:_FLOWS_MAX]
    counts = [count for _, _, count in shown]
    drawn = axes.barh(range(len(shown)), counts, color="#3e7cb1", height=0.6)
    axes.bar_label(drawn, [f"{count:,}" for count in counts], padding=4, color="#1f2933")
    names = [f"{_short(source)} → {_short(target)}" for source, target, _ in shown]
    axes.set_yticks(range(len(shown)), names)
    # The first on top; a single bar is as thick as one of many.
    axes.set_ylim(max(len(shown), _FLOWS_MIN) - 0.5, -0.5)
    # From zero, with room for the numbers.
    axes.set_xlim(0, 1.12 * max(counts))
    axes.set_xlabel("messages")
    axes.grid(visible=False, axis="y")


def _flows(report: Report) -> str:
    rows = min(_FLOWS_MAX, max(_FLOWS_MIN, len(report.flows)))
    return _drawing(
        lambda axes: _flow_bars(axes, report.flows), report.flows, height=0.9 + 0.36 * rows
    )


def _flows_text(report: Report) -> str:
    left_out = len(report.flows) - _FLOWS_MAX
    more = f" The {_FLOWS_MAX} with most; {left_out} are left out." if left_out > 0 else ""
    return (
        "Messages that a bridge or cluster connection brought, by the ids that their targets keep."
        + more
    )


def _bytes(count: float) -> str:
    """A size for people.

    >>> _bytes(0), _bytes(1536), _bytes(1 << 30)
    ('0 B', '1.5 KiB', '1 GiB')
    """
    for unit in _SIZES[:-1]:
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} {_SIZES[-1]}"


def _duration(count_ms: float) -> str:
    """A time for people.

    >>> _duration(0), _duration(512), _duration(131072), _duration(90000000)
    ('0 ms', '512 ms', '2.18 min', '1.04 d')
    """
    for size, unit in _TIMES:
        if count_ms < size:
            return f"{count_ms:.3g} {unit}"
        count_ms /= size
    return f"{count_ms:.3g} d"
