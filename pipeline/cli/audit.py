"""`pipeline audit`: find lost, stuck, duplicated and damaged messages of any number of brokers."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

import click

from journal.commands.exit_status import DAMAGED
from journal.commands.output import example, say, write_lines
from pipeline.audit import NEEDED, Limits, findings, summary
from pipeline.audit_queues import Cluster
from pipeline.cli.sources import bindings_of, nodes_of, read, source_options, spark_of, steps_of
from pipeline.export import TIME_MAX_MS
from pipeline.side_by_side import side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

__all__ = ["audit"]

_TITLES: Final = ("finding", "reason", "node", "address", "queue", "count")


@click.command("audit", epilog=example("pipeline audit 'backups/*/data' --age 600"))
@source_options
@click.option(
    "--age",
    "age_s",
    type=click.IntRange(0, TIME_MAX_MS // 1000),
    default=3600,
    show_default=True,
    help="Seconds after which a message should have been acknowledged.",
)
@click.option(
    "--deliveries",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Deliveries without an acknowledgement that are too many.",
)
@click.option(
    "--as-of",
    "as_of_ms",
    type=click.IntRange(0, TIME_MAX_MS),
    help="Time of the audit, ms since 1970. [default: now]",
)
@click.option(
    "--retention",
    "histories",
    metavar="HISTORY",
    multiple=True,
    help="Instance, folder or glob of the histories of all SOURCEs (journal-retention-directory):"
    " finds messages lost and out of order as well. Repeatable.",
)
@click.option(
    "--bridge-queue",
    "bridge_queues",
    metavar="QUEUE",
    multiple=True,
    help="A queue that a bridge of broker.xml, or a JMS bridge, consumes from, to a node among"
    " SOURCEs. NODE:QUEUE is that of one node. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Every finding, a JSON object a line.")
def audit(
    sources: tuple[str, ...],
    *,
    age_s: int,
    deliveries: int,
    as_of_ms: int | None,
    histories: tuple[str, ...],
    bridge_queues: tuple[str, ...],
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's.
) -> int:
    """Find messages that are stuck, expired, lost or duplicated.

    Also those that are out of order, or were never acknowledged.

    SOURCE is an instance or a data folder, with bindings and messages, or a glob of these; or the
    URL of a database. Damage is a finding, too. Prints how many there are by node, address and
    queue. Exit status 1: there is something.
    """
    limits = Limits(
        time.time_ns() // 1_000_000 if as_of_ms is None else as_of_ms, age_s * 1000, deliveries
    )
    given["skip_damage"] = True
    nodes = nodes_of(sources, histories, given)
    cluster = Cluster(nodes.ids, bridge_queues)
    spark = spark_of(given, nodes)
    try:
        # One byte: the sizes of what is in a database are asked for, not the bodies.
        more = {"maxLargeBodyBytes": 1} if nodes.has_database else {}
        messages, bindings, steps = side_by_side(
            spark,
            lambda: read(spark, "messages", sources, given, asOfMs=limits.as_of_ms, **more),
            lambda: bindings_of(spark, sources, given),
            lambda: steps_of(spark, sources, histories, given) if histories else None,
        )
        found = findings(
            messages.select(*NEEDED), bindings, limits, steps, cluster, nodes.with_bodies
        )
        if as_json:
            count = _write_objects(found)
        else:
            rows = [tuple(row) for row in summary(found).collect()]
            write_lines(_table(rows))
            count = sum(row[-1] for row in rows)
    finally:
        spark.stop()
    say(f"{count} findings")
    return DAMAGED if count else 0


def _write_objects(found: DataFrame) -> int:
    """A line for each row; how many there were. One partition of them is held at a time."""
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        # A job for each partition, and a union has those of all its parts.
        partitions = int(found.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        for row in found.coalesce(partitions).toLocalIterator():
            count += 1
            yield json.dumps(row.asDict(), ensure_ascii=False)

    write_lines(lines())
    return count


def _table(rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """The rows below titles, in columns as wide as they need."""
    if not rows:
        return
    cells = [_TITLES, *(tuple("" if cell is None else str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(_TITLES))]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()
