"""Draws mermaid's flowcharts and sequences as SVG, when the site is built: readers load no script.

    flowchart LR                                  sequenceDiagram
        a["journal"] -->|"append"| b["file"]          participant c as client
        b -.-> c                                      c->>b: send

Of mermaid's language these forms alone are understood, and anything else is an error: a drawing
that GitHub shows and the site does not would go unnoticed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DrawingError", "draw", "fence"]

# Pixels.
CHARACTER: Final = 7.2
LINE: Final = 17
PAD: Final = 12
GAP: Final = 34
BETWEEN: Final = 64
BELOW: Final = 30
LANE: Final = 16
NODE: Final = r'(\w+)(?:\["([^"]+)"\])?'
EDGE: Final = re.compile(rf'{NODE}\s*(-->|-\.->)\s*(?:\|"([^"]+)"\|\s*)?{NODE}')
MESSAGE: Final = re.compile(r"(\w+)(->>|-->>)(\w+): (.+)")
NOTE: Final = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)")


class DrawingError(ValueError):
    """A line that is none of the forms."""


@dataclass
class _Box:
    name: str
    lines: list[str]
    level: int = 0
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * CHARACTER + 2 * PAD

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + PAD


# From, to, its text, whether it is dashed.
_EdgeOf: TypeAlias = tuple[str, str, str, bool]


@dataclass
class _Chart:
    boxes: dict[str, _Box] = field(default_factory=dict)
    edges: list[_EdgeOf] = field(default_factory=list)

    def box(self, name: str, label: str | None) -> str:
        found = self.boxes.setdefault(name, _Box(name, [name]))
        if label:
            found.lines = label.split("<br>")
        return name


def fence(source: str, *_: Any, **__: Any) -> str:  # noqa: ANN401 - what superfences hands over.
    """Give a fenced block as HTML, as `pymdownx.superfences` asks for it."""
    return f'<figure class="drawing">{draw(source)}</figure>'


def draw(source: str) -> str:
    r"""Give the SVG of a drawing.

    Raises:
        DrawingError: a line is none of the forms.

    >>> draw('flowchart LR\n a["one"] --> b["two"]').count('class="box"')
    2
    """
    lines = [line.strip() for line in source.splitlines()]
    lines = [line for line in lines if line and not line.startswith("%%")]
    head, rest = lines[0], lines[1:]
    if head in ("flowchart LR", "flowchart TD"):
        return _flowchart(rest, is_across=head.endswith("LR"))
    if head == "sequenceDiagram":
        return _sequence(rest)
    raise DrawingError(f"{head!r} is not flowchart LR, flowchart TD or sequenceDiagram")


def _flowchart(lines: list[str], *, is_across: bool) -> str:
    chart = _Chart()
    for line in lines:
        edge = EDGE.fullmatch(line)
        node = re.fullmatch(NODE, line)
        if edge:
            ends = chart.box(edge[1], edge[2]), chart.box(edge[5], edge[6])
            chart.edges.append((*ends, edge[4] or "", edge[3] == "-.->"))
        elif node:
            chart.box(node[1], node[2])
        else:
            raise DrawingError(f"{line!r} is not A --> B or a box")
    _level(chart)
    width, height = _place(chart, is_across=is_across)
    above = [one for one in chart.edges if is_across and _is_blocked(chart, one)]
    below = [one for one in chart.edges if _is_back(chart, one, is_across=is_across)]
    for box in chart.boxes.values():
        box.y += BELOW * len(above)
    height += BELOW * len(above + below) + (4 if below else 0)
    parts = []
    for one in chart.edges:
        if one in above:
            parts.append(_around(chart, one, above.index(one), is_above=True))
        elif one in below:
            parts.append(_around(chart, one, below.index(one), is_above=False))
        else:
            parts.append(_edge(chart, one, is_across=is_across))
    parts += [_box(box) for box in chart.boxes.values()]
    return _svg(width, height, parts, chart.boxes.values())


def _is_back(chart: _Chart, edge: _EdgeOf, *, is_across: bool) -> bool:
    source, target = chart.boxes[edge[0]], chart.boxes[edge[1]]
    return target.level < source.level or (target.level == source.level and not is_across)


def _is_blocked(chart: _Chart, edge: _EdgeOf) -> bool:
    """Whether another box stands between two ends of one height."""
    source, target = chart.boxes[edge[0]], chart.boxes[edge[1]]
    height = source.y + source.height / 2
    if abs(target.y + target.height / 2 - height) > 1:
        return False
    between = (box for box in chart.boxes.values() if source.level < box.level < target.level)
    return any(box.y <= height <= box.y + box.height for box in between)


def _level(chart: _Chart) -> None:
    """Put each box behind those that lead to it; edges back to earlier boxes do not count."""
    order = {name: at for at, name in enumerate(chart.boxes)}
    for name, box in chart.boxes.items():
        before = [
            chart.boxes[source].level + 1
            for source, target, _, _ in chart.edges
            if target == name and order[source] < order[name]
        ]
        box.level = max(before, default=0)


def _place(chart: _Chart, *, is_across: bool) -> tuple[float, float]:
    levels: dict[int, list[_Box]] = {}
    for box in chart.boxes.values():
        levels.setdefault(box.level, []).append(box)
    labels = [len(text) * CHARACTER + 20 for _, _, text, _ in chart.edges if text]
    step = max([BETWEEN, *labels]) if is_across else BETWEEN
    along, across = 4.0, 0.0
    for _, row in sorted(levels.items()):
        side = 4.0
        for box in row:
            box.x, box.y = (along, side) if is_across else (side, along)
            side += (box.height if is_across else box.width) + GAP
        across = max(across, side - GAP)
        along += max(box.width if is_across else box.height for box in row) + step
    for row in levels.values():
        last = row[-1]
        used = last.y + last.height if is_across else last.x + last.width
        for box in row:
            if is_across:
                box.y += (across - used) / 2
            else:
                box.x += (across - used) / 2
    along = along - step + 4
    return (along, across + 4) if is_across else (across + 4, along)


def _edge(chart: _Chart, edge: _EdgeOf, *, is_across: bool) -> str:
    source, target = chart.boxes[edge[0]], chart.boxes[edge[1]]
    if target.level == source.level and is_across:
        is_up = target.y < source.y
        start = source.x + source.width / 2, source.y + (0 if is_up else source.height)
        end = target.x + target.width / 2, target.y + (target.height if is_up else 0)
        beside = (start[0] + end[0]) / 2 + len(edge[2]) * CHARACTER / 2 + PAD
        text = _text(beside, (start[1] + end[1]) / 2 + 4, edge[2], "label")
        return _arrow(start, end, "", is_dashed=edge[3]) + text
    if is_across:
        start = source.x + source.width, source.y + source.height / 2
        end = target.x, target.y + target.height / 2
    else:
        start = source.x + source.width / 2, source.y + source.height
        end = target.x + target.width / 2, target.y
    return _arrow(start, end, edge[2], is_dashed=edge[3])


def _around(chart: _Chart, edge: _EdgeOf, lane: int, *, is_above: bool) -> str:
    """Draw an edge to another box: away from it, along above or below both, and to it."""
    source, target, label = chart.boxes[edge[0]], chart.boxes[edge[1]], edge[2]
    first = source.x + source.width / 2 + LANE * lane
    last = target.x + target.width / 2 - LANE * lane
    if is_above:
        begin, end = source.y, target.y
        along = min(begin, end) - BELOW * (lane + 1) + 8
    else:
        begin, end = source.y + source.height, target.y + target.height
        along = max(begin, end) + BELOW * (lane + 1)
    dash = ' stroke-dasharray="5 4"' if edge[3] else ""
    way = f"M{first:.1f} {begin:.1f} V{along:.1f} H{last:.1f}"
    tip = _arrow((last, along), (last, end), "", is_dashed=edge[3])
    text = _text((first + last) / 2, along - 6, label, "label") if label else ""
    return f'<path class="line" d="{way}"{dash}/>{tip}{text}'


def _arrow(
    start: tuple[float, float], end: tuple[float, float], label: str, *, is_dashed: bool
) -> str:
    dash = ' stroke-dasharray="5 4"' if is_dashed else ""
    (x1, y1), (x2, y2) = start, end
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    left = x2 - 9 * ux - 4 * uy, y2 - 9 * uy + 4 * ux
    right = x2 - 9 * ux + 4 * uy, y2 - 9 * uy - 4 * ux
    tip = f"{x2:.1f},{y2:.1f} {left[0]:.1f},{left[1]:.1f} {right[0]:.1f},{right[1]:.1f}"
    text = _text((x1 + x2) / 2, (y1 + y2) / 2 - 6, label, "label") if label else ""
    return (
        f'<path class="line" d="M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}"{dash}/>'
        f'<polygon class="tip" points="{tip}"/>{text}'
    )


def _text(x: float, y: float, text: str, kind: str = "name") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="middle"'
    return f'<text class="{kind}" {place}>{escape(text)}</text>'


def _box(box: _Box) -> str:
    middle = box.x + box.width / 2
    texts = [
        _text(middle, box.y + PAD / 2 + LINE * (at + 0.75), line)
        for at, line in enumerate(box.lines)
    ]
    return (
        f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="4"/>' + "".join(texts)
    )


def _sequence(lines: list[str]) -> str:
    lanes: dict[str, _Box] = {}
    steps: list[tuple[str, str, str, str]] = []
    for line in lines:
        person = re.fullmatch(r"participant (\w+)(?: as (.+))?", line)
        message, note = MESSAGE.fullmatch(line), NOTE.fullmatch(line)
        if person:
            lanes[person[1]] = _Box(person[1], [person[2] or person[1]])
        elif message and {message[1], message[3]} <= lanes.keys():
            kind = "dashed" if message[2] == "-->>" else "plain"
            steps.append((kind, message[1], message[3], message[4]))
        elif note and {note[1], note[2] or note[1]} <= lanes.keys():
            steps.append(("note", note[1], note[2] or note[1], note[3]))
        else:
            raise DrawingError(f"{line!r} is not a participant, a message between two, or a note")
    longest = max([len(text) for *_, text in steps] + [len(one.lines[0]) for one in lanes.values()])
    step = longest * CHARACTER + 2 * PAD
    middle = {}
    for at, (name, box) in enumerate(lanes.items()):
        middle[name] = step * (at + 0.5)
        box.x, box.y = middle[name] - box.width / 2, 4
    top = 4 + LINE + PAD
    height = top + 36 * (len(steps) + 0.5)
    parts = [
        f'<path class="life" d="M{x:.1f} {top} L{x:.1f} {height:.1f}"/>' for x in middle.values()
    ]
    parts += [_box(box) for box in lanes.values()]
    for at, (kind, source, target, text) in enumerate(steps, 1):
        y = top + 36 * at
        if kind == "note" or source == target:
            note_box = _Box("", [text])
            note_box.x = (middle[source] + middle[target] - note_box.width) / 2
            note_box.y = y - LINE
            parts.append(_box(note_box))
        else:
            ends = (middle[source], y), (middle[target], y)
            parts.append(_arrow(*ends, text, is_dashed=kind == "dashed"))
    return _svg(step * len(lanes), height + 4, parts, lanes.values())


def _svg(width: float, height: float, parts: list[str], boxes: Iterable[_Box]) -> str:
    # For readers who do not see it.
    title = "Drawing: " + "; ".join(" ".join(box.lines) for box in boxes)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
