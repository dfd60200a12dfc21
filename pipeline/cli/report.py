"""`pipeline report`: rates, depth, sizes, latencies, files and flow, on one page of HTML."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from journal.cli.folder import example
from journal.errors import WrongUse
from journal.extras import install_line
from pipeline.cli.sources import node_ids, read, source_options, spark_of, told

__all__ = ["report"]


@click.command("report", epilog=example("pipeline report 'backups/*/data' --to report.html"))
@source_options
@click.option(
    "--to",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page; one that is there is replaced.",
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
    """Draw what SOURCE tells: rates, depth over time, sizes, latencies, live share, flow.

    SOURCE is an instance or a data folder, or a glob of these; or the URL of a database. The page
    needs nothing else. Exit status 1: something in SOURCE is damaged, and there is no page.
    """
    if find_spec("matplotlib") is None:
        raise WrongUse(f"charts need the Python package matplotlib: type {install_line('report')}")
    if not target.absolute().parent.is_dir():
        raise WrongUse(f"{target.parent}: no such folder")
    from pipeline.report import make_report
    from pipeline.report_page import page

    ids = node_ids(sources, histories, given)
    spark = spark_of(given)
    try:
        queues = (
            read(spark, "bindings", sources, given)
            .where("record_type = 'QUEUE_BINDING_RECORD'")
            .selectExpr("node", "record_id AS queue_id", "name AS queue")
        )
        found = make_report(
            told(spark, sources, histories, given),
            queues,
            # Used with several filters, of which Spark might hand those of one use to all.
            read(spark, "journal", sources, given).drop("body").persist(),
            read(spark, "journal", sources, given, records="live"),
            ids,
        )
    finally:
        spark.stop()
    target.write_text(page(found, title, datetime.now(UTC)), encoding="utf-8")
    return 0
