"""`pipeline report`: draw rates, depth, sizes, latencies, files and flow, on one page of HTML."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from journal.commands.output import example
from journal.errors import WrongUse
from journal.extras import install_line
from pipeline.audit_queues import Cluster, frame_of, queues_of
from pipeline.cli.sources import (
    bindings_of,
    files_of,
    nodes_of,
    read,
    source_options,
    spark_of,
    steps_of,
)
from pipeline.message_traces import trace_messages
from pipeline.report import NEEDED, make_report
from pipeline.side_by_side import side_by_side

__all__ = ["report"]


@click.command("report", epilog=example("pipeline report 'backups/*/data' --to report.html"))
@source_options
@click.option(
    "--to",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the page; an existing one is replaced.",
)
@click.option(
    "--retention",
    "histories",
    metavar="HISTORY",
    multiple=True,
    help="Instance, folder or glob of histories (journal-retention-directory). Repeatable.",
)
@click.option("--title", default="What the brokers stored", show_default=True, help="Of the page.")
def report(
    sources: tuple[str, ...],
    *,
    target: Path,
    histories: tuple[str, ...],
    title: str,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Draw rates, depths over time, sizes, latencies, live share, flow.

    SOURCE is an instance or a data folder, or a glob of these; or the URL of a database. The page
    needs nothing else. Exit status 1: something in SOURCE is damaged, and no page is written.
    """
    if find_spec("matplotlib") is None:
        raise WrongUse(f"charts need the Python package matplotlib: type {install_line('report')}")
    if not target.absolute().parent.is_dir():
        raise WrongUse(f"{target.parent}: no such folder")
    nodes = nodes_of(sources, histories, given)
    spark = spark_of(given, nodes)
    try:
        # One byte: the sizes of what is in a database are asked for, not the bodies.
        more = {"maxLargeBodyBytes": 1} if nodes.has_database else {}
        messages, queues, steps, files, drawing = side_by_side(
            spark,
            lambda: read(spark, "messages", sources, given, **more),
            lambda: queues_of(bindings_of(spark, sources, given), Cluster()),
            lambda: steps_of(spark, sources, histories, given),
            lambda: files_of(spark, sources, given),
            # It imports matplotlib, which takes a second.
            lambda: import_module("pipeline.report_page"),
        )
        # What is prepared has come to no queue yet.
        stored = messages.where("damage IS NULL AND state <> 'prepared'").select(*NEEDED)
        found = make_report(
            trace_messages(steps, frame_of(spark, ()), nodes.ids, stored).persist(),
            frame_of(spark, queues).select("node", "queue_id", "queue"),
            files,
        )
    finally:
        spark.stop()
    target.write_text(drawing.page(found, title, datetime.now(UTC)), encoding="utf-8")
    return 0
