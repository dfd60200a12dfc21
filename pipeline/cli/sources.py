"""The options that say what a job reads, and on which Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipeline.history import NEEDED, history
from pipeline.options import SourceOptions
from pipeline.places import check_names, find_histories, find_places, node_id_of
from pipeline.session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.history import History

__all__ = ["node_ids", "read", "source_options", "spark_of", "told"]


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command SOURCE... and the options of reading them."""
    for option in (
        click.option(
            "--conf",
            "settings",
            metavar="NAME=VALUE",
            multiple=True,
            help="A setting of Spark. Repeatable.",
        ),
        click.option("--master", default="local[*]", show_default=True, help="Of Spark."),
        click.option(
            "--skip-damage",
            is_flag=True,
            help="Go on where something cannot be read; else the job ends with status 1.",
        ),
        click.option(
            "--live",
            "is_live",
            is_flag=True,
            help="Also while a broker runs on SOURCE; the newest records may be cut short.",
        ),
        click.argument("sources", metavar="SOURCE...", nargs=-1, required=True),
    ):
        command = option(command)
    return command


def spark_of(given: Mapping[str, Any]) -> SparkSession:
    """The session that the options ask for.

    Raises:
        WrongUse: PySpark or Java is missing.
        click.UsageError: a setting is no NAME=VALUE.
    """
    settings = {}
    for text in given["settings"]:
        name, mark, value = text.partition("=")
        if not mark:
            raise click.UsageError(f"--conf takes NAME=VALUE, not {text!r}")
        settings[name.strip()] = value.strip()
    return open_session(given["master"], settings)


def read(
    spark: SparkSession,
    source: str,
    sources: Sequence[str],
    given: Mapping[str, Any],
    **options: str | int,
) -> DataFrame:
    """What the options say to read, by the source of that name; with more options of it."""
    return (
        spark.read.format(source)
        .options(**options)
        .option("live", str(given["is_live"]).lower())
        .option("failOnDataLoss", str(not given["skip_damage"]).lower())
        .load(list(sources))
    )


def told(
    spark: SparkSession,
    sources: Sequence[str],
    histories: Sequence[str],
    given: Mapping[str, Any],
) -> History:
    """What journals and histories tell, read and worked out once."""
    frames = [read(spark, "journal", sources, given)]
    if histories:
        frames.append(read(spark, "retention", histories, given))
    return history(*(frame.select(*NEEDED).persist() for frame in frames)).persist()


def node_ids(
    sources: Sequence[str], histories: Sequence[str], given: Mapping[str, Any]
) -> dict[str, str]:
    """Of each node that has one, its id.

    Raises:
        WrongUse: two nodes have one name; or what find_places() and find_histories() say.
    """
    options = SourceOptions(paths=tuple(sources), is_live=given["is_live"])
    places = find_places(options, "messages", is_decoded=False)
    check_names(places, are_all_others=True)
    if histories:
        check_names([*places, *find_histories(SourceOptions(paths=tuple(histories)))])
    found = {place.node: node_id_of(place) for place in places}
    return {node: one for node, one in found.items() if one is not None}
