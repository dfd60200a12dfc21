"""The output of `broker perf`, during and after a run: a table, or JSON lines."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Final, Self

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from broker.cli.latencies import PERCENTILES

if TYPE_CHECKING:
    from types import TracebackType

    from broker.cli.latencies import Latencies
    from broker.cli.load import Measured

__all__ = ["PerfView"]

COUNTS: Final = ("sent", "completed", "received")
LATENCIES: Final = {"sending": "send to confirmation", "transfer": "send to receipt"}


# Columns of a table that goes to no terminal: more than it has.
WIDTH: Final = 1000


class PerfView:
    """Shows one run; use it in a `with` block. Threads: one.

    Args:
        is_json: a JSON object a line on standard output: one an interval, and a summary.
        is_live: the latest interval as a table on standard error, where that is a terminal.
    """

    def __init__(self, *, is_json: bool, is_live: bool = True) -> None:
        self._is_json = is_json
        self._live: Live | None = None
        if is_live and not is_json and sys.stderr.isatty():
            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def interval(self, measured: Measured, *, is_warmup: bool) -> None:
        """Show what one interval had."""
        if self._is_json:
            click.echo(json.dumps({**_sample("interval", measured), "warmup": is_warmup}))
        elif self._live is not None:
            title = "warm-up" if is_warmup else "now"
            self._live.update(_table(measured, title), refresh=True)

    def summary(self, measured: Measured) -> None:
        """Show what all intervals had but the warm-up."""
        self._stop()
        if self._is_json:
            click.echo(json.dumps(_sample("summary", measured)))
        else:
            # Without a terminal to fit, the table has a fixed width.
            Console(width=None if sys.stdout.isatty() else WIDTH).print(_table(measured, "all"))


def _sample(kind: str, measured: Measured) -> dict[str, object]:
    elapsed_s = max(measured.elapsed_s, 1e-9)
    found: dict[str, object] = {
        "sample": kind,
        "time_ms": time.time_ns() // 1_000_000,
        "seconds": round(measured.elapsed_s, 3),
    }
    for name in COUNTS:
        count = getattr(measured, name)
        found[name] = count
        found[f"{name}_per_s"] = round(count / elapsed_s, 1)
    for name in LATENCIES:
        latencies: Latencies = getattr(measured, name)
        if len(latencies):
            found[f"{name}_us"] = latencies.as_object()
    return found


def _table(measured: Measured, title: str) -> Table:
    table = Table(title=f"{title}: {measured.elapsed_s:.1f} s", title_justify="left")
    table.add_column("")
    for heading in ("messages", "a second"):
        table.add_column(heading, justify="right")
    for heading in ("mean", *PERCENTILES, "max"):
        table.add_column(f"{heading} µs", justify="right")
    elapsed_s = max(measured.elapsed_s, 1e-9)
    cells = {"completed": "sending", "received": "transfer"}
    for name in COUNTS:
        count = getattr(measured, name)
        row = [name, f"{count:,}", f"{count / elapsed_s:,.0f}"]
        if name in cells:
            latencies: Latencies = getattr(measured, cells[name])
            if len(latencies):
                row += [f"{value:,.0f}" for value in latencies.as_object().values()]
        table.add_row(*row)
    return table
