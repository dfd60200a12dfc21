"""Draws docs/figures.svg from the first table of "The broker" in benchmarks/README.md.

    python -m benchmarks.chart

What is drawn is what is written there: medians of ratios within each round, of messages a second
that were confirmed. The figures come from `python -m benchmarks.bench_broker`.
"""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "benchmarks" / "README.md"
CHART = ROOT / "docs" / "figures.svg"
# Columns of the table: the head of each ratio, and how it is called below the chart.
PEERS = {
    "over Artemis 2.56": "Artemis 2.56",
    "over RabbitMQ 3.10": "RabbitMQ 3.10",
    "over JetStream 2.15": "JetStream 2.15 (not synced)",
    "over Kafka 4, nothing": "Kafka 4 (not synced)",
}
# Pixels. Both colours can be read on white and on black.
LEFT, WIDTH, BAR, GAP = 190, 420, 15, 14
COLOURS = ("#2f7fb8", "#c26a2c", "#4d9a56", "#8a63b3")


class Case(NamedTuple):
    """A row: its name, and the ratio over each peer, in the order of PEERS."""

    name: str
    ratios: tuple[float, ...]


def cases(text: str) -> list[Case]:
    """Give the rows of the table."""
    table = next(part for part in text.split("\n\n") if "over JetStream 2.15" in part)
    head, _, *rows = (line.strip("| ").split(" | ") for line in table.splitlines())
    columns = [
        next(at for at, name in enumerate(head) if name.startswith(wanted)) for wanted in PEERS
    ]
    return [
        Case(row[0], tuple(float(re.match(r"[\d.]+", row[at])[0]) for at in columns))
        for row in rows
    ]


def svg(found: list[Case]) -> str:
    """Give the chart: a group of bars a case, a line where both are the same."""
    most = max(max(case.ratios) for case in found)
    scale = WIDTH / (int(most) + 1)
    parts, y = [], 44
    for case in found:
        middle = y + BAR * len(case.ratios) / 2 + 4
        parts.append(
            f'<text x="{LEFT - 8}" y="{middle:.0f}" text-anchor="end">{escape(case.name)}</text>'
        )
        for ratio, colour in zip(case.ratios, COLOURS, strict=True):
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{ratio * scale:.0f}" height="{BAR - 2}" '
                f'fill="{colour}"/>'
                f'<text x="{LEFT + ratio * scale + 5:.0f}" y="{y + BAR - 4}">{ratio:.2f}</text>'
            )
            y += BAR
        y += GAP
    one = LEFT + scale
    parts.append(f'<path d="M{one:.0f} 34 V{y - GAP}" stroke="#888" stroke-dasharray="4 3"/>')
    parts.append(f'<text x="{one:.0f}" y="28" text-anchor="middle">1 = the same</text>')
    x = 20
    for name, colour in zip(PEERS.values(), COLOURS, strict=True):
        parts.append(
            f'<rect x="{x}" y="{y + 6}" width="11" height="11" fill="{colour}"/>'
            f'<text x="{x + 16}" y="{y + 16}">over {escape(name)}</text>'
        )
        x += 46 + 6 * len(name)
    axis = "confirmed messages a second of Quiver, over those of the other broker (ratio)"
    parts.append(f'<text x="20" y="{y + 38}">{axis}</text>')
    size = f"{LEFT + WIDTH + 60} {y + 48}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#808080">'
        "<title>Confirmed messages a second of Quiver over those of others, by case</title>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> None:
    """Write it."""
    CHART.write_text(svg(cases(TABLE.read_text())))
    print(f"{CHART.relative_to(ROOT)}: drawn from {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
