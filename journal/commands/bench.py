"""`journal-bench`, also `broker perf journal`: measures the journal on a disk."""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from journal.commands.bench_page import Point, bench_page
from journal.commands.engine_options import engine_options, journal_options
from journal.commands.output import example, say
from journal.commands.parameters import SIZE
from journal.tools.bench import Run, Workload, measure, measure_append, suggest
from journal.tools.disk import disk_facts
from journal.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from journal.options import JournalOptions
    from journal.tools.bench import Suggestion
    from journal.tools.disk import DiskFacts

__all__ = ["journal_bench"]

CURVE_PRODUCERS: Final = (1, 4, 16, 64)
CURVE_SIZES: Final = (100, 1024, 10240)
CURVE_RECORDS: Final = {True: 1500, False: 30_000}  # a producer of a curve's point, by is_synced
CURVE_RECORDS_MAX: Final = 40_000
CURVE_BYTES_MAX: Final = 200_000_000


@click.command(
    "journal-bench",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("journal-bench --count 200000 --size 1024 --producers 16 --sync"),
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="Records in all.",
)
@click.option("--size", type=SIZE, default=1024, show_default=True, help="Of each record's body.")
@click.option(
    "--producers",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    help="Threads that append.",
)
@click.option(
    "--sync/--no-sync",
    default=True,
    show_default=True,
    help="Wait for every record (batch, transaction) to be durable.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Records of one append call.",
)
@click.option(
    "--tx",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Records of one transaction; 0: none.",
)
@click.option(
    "--delete",
    "delete_share",
    type=click.FloatRange(0, 1),
    default=0.7,
    show_default=True,
    help="Share of the records deleted before the compaction.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Runs; the one with the median append rate is shown.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default="here",
    help="Where to measure: a temporary folder below it, removed afterwards.",
)
@click.option(
    "--suggest/--no-suggest",
    "wants_suggestion",
    default=True,
    show_default=True,
    help="Measure what to set journal-buffer-timeout and journal-max-io to.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also measure curves over producers and sizes, and draw them on this page.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@engine_options
@click.version_option(__version__, prog_name="journal-bench")
def journal_bench(
    *,
    count: int,
    size: int,
    producers: int,
    sync: bool,
    batch: int,
    tx: int,
    delete_share: float,
    repeat: int,
    folder: Path,
    wants_suggestion: bool,
    html: Path | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> None:
    """Append, load and compact a fresh journal, and print how fast each was.

    Beside the figures stands what lies under them: file system, block sizes, the device's write
    cache, and what that means for a power loss.
    """
    if size < 0:
        raise click.UsageError(f"--size is {size}; at least 0")
    if producers > count:
        raise click.UsageError(f"--producers is {producers}; at most --count, {count}")
    if html is not None and not html.absolute().parent.is_dir():
        raise click.UsageError(f"--html: folder {html.absolute().parent} does not exist")
    work = Workload(count, size, producers, sync, batch, tx, delete_share)
    journal_options("journal-bench-checks-its-options", given)  # Before anything is made.
    with _work_folder(folder) as place:
        options = journal_options(place, given)
        facts = disk_facts(place, datasync=options.datasync)
        runs = _runs(options, work, repeat)
        advice = _advice(options, place) if wants_suggestion else None
        curves = _curves(options, work, place) if html is not None else []
    chosen = sorted(runs, key=lambda run: run.append.records_per_s)[len(runs) // 2]
    result = _result(options, work, chosen, runs, facts, advice)
    _tell("")
    click.echo(json.dumps(result) if as_json else _table(result))
    if html is not None:
        html.write_text(bench_page(result, curves), "utf-8")
        say(f"curves: {html}")


def _runs(options: JournalOptions, work: Workload, repeat: int) -> list[Run]:
    runs = []
    for number in range(1, repeat + 1):
        _clear(options.directory)
        label = f"run {number} of {repeat}: " if repeat > 1 else ""
        runs.append(measure(options, work, partial(_tell_leg, label)))
    return runs


def _advice(options: JournalOptions, place: Path) -> Suggestion:
    _tell("what this disk suggests")
    folder = place / "suggest"
    try:
        return suggest(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _curves(options: JournalOptions, work: Workload, place: Path) -> list[Point]:
    points = []
    for size in sorted({*CURVE_SIZES, work.size}):
        for producers in sorted({*CURVE_PRODUCERS, work.producers}):
            _tell(f"curves: {producers} producers, {size} bytes")
            count = min(CURVE_RECORDS[work.is_synced] * producers, CURVE_RECORDS_MAX)
            count = max(producers, min(count, CURVE_BYTES_MAX // max(size, 1)))
            folder = place / "curve"
            try:
                _, leg = measure_append(
                    options.replace(directory=folder),
                    Workload(count, size, producers, work.is_synced, work.batch, work.tx),
                )
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            points.append(
                Point(size, producers, leg.records_per_s, leg.latency_us.p50, leg.latency_us.p99)
            )
    return points


def _tell_leg(label: str, leg: str) -> None:
    _tell(f"{label}{leg}")


def _tell(text: str) -> None:
    """Progress on a terminal, over the line before."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}", err=True, nl=False)


# --- where ---------------------------------------------------------------------------------------


@contextmanager
def _work_folder(parent: Path) -> Iterator[Path]:
    """A new folder below `parent` that is gone afterwards.

    SIGTERM ends the bench as Ctrl-C does, so that the folder goes then, too.
    """
    parent.mkdir(parents=True, exist_ok=True)
    previous = signal.signal(signal.SIGTERM, _terminate)
    place = Path(tempfile.mkdtemp(prefix="journal-bench-", dir=parent))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        signal.signal(signal.SIGTERM, previous)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _clear(folder: Path) -> None:
    """Remove what the run before left."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


# --- what is said ---------------------------------------------------------------------------------


def _result(
    options: JournalOptions,
    work: Workload,
    chosen: Run,
    runs: Sequence[Run],
    facts: DiskFacts,
    advice: Suggestion | None,
) -> dict[str, Any]:
    rates = [run.append.records_per_s for run in runs]
    return {
        "type": options.journal_type.value,
        "type_used": chosen.type_used,
        "sync": work.is_synced,
        "size": work.size,
        "producers": work.producers,
        "count": work.count,
        "batch": work.batch,
        "tx": work.tx,
        "delete": work.delete_share,
        "append": asdict(chosen.append),
        "load": asdict(chosen.load),
        "compact": asdict(chosen.compact),
        "runs": {
            "count": len(runs),
            "append_records_per_s": [round(rate) for rate in rates],
            "spread": round((max(rates) - min(rates)) / statistics.median(rates), 3),
        },
        "under": asdict(facts),
        "suggested": None if advice is None else asdict(advice),
    }


def _table(result: dict[str, Any]) -> str:
    append, load, compact = result["append"], result["load"], result["compact"]
    latency, runs, under = append["latency_us"], result["runs"], result["under"]
    unit = "transaction" if result["tx"] else "batch" if result["batch"] > 1 else "record"
    kind = "synced" if result["sync"] else "not synced"
    used = result["type_used"]
    used += "" if used == result["type"] else f" (instead of {result['type']})"
    lines = [
        (
            f"{used}: {result['count']:,} records of {result['size']:,} bytes, {kind},"
            f" {result['producers']} producers"
        ),
        "",
        f"{'':<10}{'seconds':>10}{'records/s':>14}{'MB/s':>10}",
        _leg("append", append["seconds"], append["records_per_s"], append["mb_per_s"]),
        _leg("load", load["seconds"], load["records_per_s"], load["mb_per_s"]),
        _leg("compact", compact["seconds"], None, compact["mb_per_s"])
        + f"   {compact['files_before']} files to {compact['files_after']}",
        "",
        (
            f"latency of a {unit} in us: p50 {latency['p50']:,}  p99 {latency['p99']:,}"
            f"  p99.9 {latency['p999']:,}  max {latency['max']:,}"
        ),
        (
            f"flushes {append['flushes']:,}, syncs {append['syncs']:,},"
            f" {result['count'] / max(append['flushes'], 1):.1f} records a flush"
        ),
    ]
    if runs["count"] > 1:
        lines.append(
            f"the median of {runs['count']} runs; they differ by {100 * runs['spread']:.0f} %"
        )
    lines += ["", *_under(under)]
    if result["suggested"] is not None:
        lines += ["", *_suggested(result["suggested"])]
    return "\n".join(lines)


def _leg(name: str, seconds: float, records: float | None, megabytes: float) -> str:
    rate = "" if records is None else f"{records:,.0f}"
    return f"{name:<10}{seconds:>10.3f}{rate:>14}{megabytes:>10,.1f}"


def _under(under: dict[str, Any]) -> list[str]:
    def said(value: object) -> str:
        return "unknown" if value is None else str(value)

    yes = {True: "yes", False: "no", None: "unknown"}
    logical, physical = said(under["logical_block_size"]), said(under["physical_block_size"])
    return [
        "under it",
        f"  file system   {said(under['file_system'])}, blocks of {under['block_size']} bytes",
        f"  device        {said(under['device'])}, logical block {logical}, physical {physical}",
        (
            f"  write cache   {said(under['write_cache'])}, FUA {yes[under['fua']]},"
            f" rotational {yes[under['rotational']]}"
        ),
        f"  machine       {under['kernel']}, {under['cpu_count']} CPUs",
        f"  power loss    {under['power_loss']}",
    ]


def _suggested(advice: dict[str, Any]) -> list[str]:
    low, median, high = advice["write_us"]
    depths = ", ".join(f"{depth}: {rate:,}" for depth, rate in advice["records_per_s"].items())
    return [
        "suggested for this disk",
        (
            f"  journal-buffer-timeout  {advice['buffer_timeout_ns']} ns   (one synced 4 KiB write:"
            f" {low} us at best, {median} median, p99 {high})"
        ),
        f"  journal-max-io          {advice['max_io']}"
        + (f"   (records/s by writes in flight: {depths})" if depths else ""),
    ]
