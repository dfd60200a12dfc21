"""`pipeline export`: export stored data as Parquet, JSON lines or CSV."""

from __future__ import annotations

from typing import Any

import click

from journal.commands.output import example
from journal.commands.parameters import SIZE
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
    help="Which of the sources that the manual's page Pipeline lists.",
)
@click.option(
    "--columns",
    metavar="NAME,...",
    default="",
    help="Columns to write, in this order. [default: all]",
)
@click.option("--where", metavar="SQL", help="SQL condition: only rows that match are exported.")
@click.option(
    "--file-size",
    type=SIZE,
    help="Bytes of a file, about: small ones of many tasks become one. [default: each task's own]",
)
@click.option("--overwrite", is_flag=True, help="Replace what is in FOLDER.")
@click.option("--append", is_flag=True, help="Add to what is in FOLDER.")
def export(
    sources: tuple[str, ...],
    *,
    target: str,
    what: str,
    columns: str,
    where: str | None,
    file_size: int | None,
    overwrite: bool,
    append: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Export the stored messages or records of SOURCE.

    SOURCE is an instance, a data folder, a journal folder, a glob, or the URL of a database.
    Parquet is partitioned, messages by node, address and hour (UTC) of their timestamp. Nothing in
    SOURCE is touched. Exit status 1: something in it is damaged, and nothing was exported.
    """
    if overwrite and append:
        raise click.UsageError("--overwrite and --append exclude each other")
    if file_size is not None and file_size < 1:
        raise click.UsageError("--file-size must be 1 or more")
    place = Target.parse(target)
    spark = spark_of(given)
    try:
        write(
            read(spark, what, sources, given),
            what,
            place,
            columns=[name.strip() for name in columns.split(",") if name.strip()],
            where=where,
            file_size=file_size,
            overwrite=overwrite,
            append=append,
        )
    finally:
        spark.stop()
    return 0
