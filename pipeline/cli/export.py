"""`pipeline export`: what brokers stored, as Parquet, JSON lines or CSV."""

from __future__ import annotations

from typing import Any

import click

from journal.cli.folder import example
from pipeline.cli.sources import read, source_options, spark_of
from pipeline.export import FORMATS, Target
from pipeline.export import export as write

__all__ = ["export"]


@click.command("export", epilog=example("pipeline export 'backups/*/data' --to parquet:history"))
@source_options
@click.option(
    "--to",
    "target",
    metavar="FORMAT:FOLDER",
    required=True,
    help=f"Format ({', '.join(FORMATS)}), and a folder that the job makes.",
)
@click.option(
    "--what",
    type=click.Choice(["messages", "journal", "bindings", "retention"]),
    default="messages",
    show_default=True,
    help="Which of the sources of docs/guide/pipeline.md.",
)
@click.option("--overwrite", is_flag=True, help="Replace what is in FOLDER.")
def export(
    sources: tuple[str, ...],
    *,
    target: str,
    what: str,
    overwrite: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Export what is in SOURCE: instances, data folders, journal folders, globs, URLs of databases.

    Parquet is partitioned, messages by node, address and hour (UTC) of their timestamp. Nothing in
    SOURCE is touched. Exit status 1: something in it is damaged, and nothing was exported.
    """
    place = Target.parse(target)
    spark = spark_of(given)
    try:
        write(read(spark, what, sources, given), what, place, overwrite=overwrite)
    finally:
        spark.stop()
    return 0
