"""Options of all jobs: sources, Spark, bindings and histories."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from journal.remote import RemotePath
from pipeline.columns import arrow_schema
from pipeline.message_traces import read_steps
from pipeline.options import SourceOptions
from pipeline.places import check_names, find_histories, find_places, node_id_of
from pipeline.registration import SOURCES, register
from pipeline.schema import BINDINGS
from pipeline.session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from journal.remote import AnyPath

__all__ = [
    "Nodes",
    "bindings_of",
    "files_of",
    "nodes_of",
    "read",
    "source_options",
    "spark_of",
    "steps_of",
]


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
        click.option("--master", default="local[*]", show_default=True, help="Master of Spark."),
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


def spark_of(given: Mapping[str, Any], nodes: Nodes | None = None) -> SparkSession:
    """The session that the options ask for.

    Args:
        given: the options.
        nodes: what will be read, if that is known: partitions are as many as it wants.

    Raises:
        WrongUse: PySpark or Java is missing, or the master does not answer.
        click.UsageError: a setting is not NAME=VALUE.
    """
    settings = {}
    for text in given["settings"]:
        name, mark, value = text.partition("=")
        if not mark:
            raise click.UsageError(f"--conf takes NAME=VALUE, not {text!r}")
        settings[name.strip()] = value.strip()
    # A database's size is unknown.
    size = None if nodes is None or nodes.has_database else nodes.size
    return open_session(given["master"], settings, size)


def read(
    spark: SparkSession,
    source: str,
    sources: Sequence[str],
    given: Mapping[str, Any],
    **options: str | int,
) -> DataFrame:
    """What the options say to read, by the source of that name; with more options of it."""
    if source in SOURCES:
        register(spark, (source,))
    return spark.read.format(source).options(**options, **_options(given)).load(list(sources))


def bindings_of(spark: SparkSession, sources: Sequence[str], given: Mapping[str, Any]) -> DataFrame:
    """What bindings journals hold, read in this process: they are few rows.

    A job of Spark's would take longer to be planned than the rows to be read.

    Raises:
        JournalError: they cannot be read.
    """
    import pyarrow as pa

    from pipeline.sources.bindings import BindingsReader

    reader = BindingsReader(
        SourceOptions.read({**_options(given), "paths": json.dumps(list(sources))})
    )
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return spark.createDataFrame(pa.Table.from_batches(batches, arrow_schema(BINDINGS)))


def _options(given: Mapping[str, Any]) -> dict[str, str]:
    return {
        "live": str(given["is_live"]).lower(),
        "failOnDataLoss": str(not given["skip_damage"]).lower(),
    }


def steps_of(
    spark: SparkSession,
    sources: Sequence[str],
    histories: Sequence[str],
    given: Mapping[str, Any],
) -> DataFrame:
    """What records of journals and histories say of messages, read once."""
    return read_steps(spark, sources, histories, _options(given))


def files_of(spark: SparkSession, sources: Sequence[str], given: Mapping[str, Any]) -> DataFrame:
    """How much of each file of journals is live."""
    from pipeline.sources.steps import FilesSource

    spark.dataSource.register(FilesSource)
    return read(spark, FilesSource.short_name, sources, given)


@dataclass(frozen=True, slots=True)
class Nodes:
    """What is read, before Spark reads it.

    Attributes:
        ids: of each node that has one, its id.
        with_bodies: those of which is known where the bodies of large messages are.
        has_database: one of them is in a database.
        size: bytes of all files; 0 for a database, whose size is unknown.
    """

    ids: dict[str, str]
    with_bodies: tuple[str, ...]
    has_database: bool
    size: int


def nodes_of(sources: Sequence[str], histories: Sequence[str], given: Mapping[str, Any]) -> Nodes:
    """Look for what the options name.

    Raises:
        WrongUse: two nodes have one name; or what find_places() and find_histories() say.
    """
    options = SourceOptions(paths=tuple(sources), is_live=given["is_live"])
    places = find_places(options, "messages", is_decoded=False)
    check_names(places, are_all_others=True)
    every = list(places)
    if histories:
        every += find_histories(SourceOptions(paths=tuple(histories)))
        check_names(every)
    found = {place.node: node_id_of(place) for place in places}
    return Nodes(
        {node: one for node, one in found.items() if one is not None},
        tuple(
            place.node
            for place in places
            if place.large_messages is not None or place.database is not None
        ),
        any(place.database is not None for place in places),
        sum(_size_of(place.folder) for place in every if place.folder is not None),
    )


def _size_of(folder: AnyPath) -> int:
    """Bytes of the files of a journal; some may go while they are looked at."""
    if isinstance(folder, RemotePath):
        return sum(folder.sizes().values())
    size = 0
    for one in os.scandir(folder):
        with suppress(FileNotFoundError):
            size += one.stat().st_size
    return size
