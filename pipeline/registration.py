"""Registers the data sources with a Spark session."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

__all__ = ["SOURCES", "register"]

# Name to class. Imported when registered, so that `import pipeline` needs no PySpark.
SOURCES: Final = {
    "journal": ("pipeline.sources.journal", "JournalSource"),
    "messages": ("pipeline.sources.messages", "MessagesSource"),
    "bindings": ("pipeline.sources.bindings", "BindingsSource"),
    "retention": ("pipeline.sources.retention", "RetentionSource"),
    "broker": ("pipeline.sources.broker", "BrokerSource"),
}

# Without it Spark refuses a Python source that takes filters.
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession, names: Iterable[str] = tuple(SOURCES)) -> None:
    """Register the sources `journal`, `messages`, `bindings`, `retention` and `broker`.

    Also lets Python sources take filters (`spark.sql.python.filterPushdown.enabled`), for the
    session: these do where a query asks for it (option `filterPushdown`), and Spark refuses one
    that might while that is off.

    Args:
        spark: a session of PySpark 4.1 or later; its workers must be able to import `pipeline`.
        names: of the sources that are wanted; each takes Spark a fifth of a second.

    Raises:
        KeyError: a name is not one of SOURCES.
    """
    spark.conf.set(PUSHDOWN, "true")
    for name in names:
        module, kind = SOURCES[name]
        spark.dataSource.register(getattr(import_module(module), kind))
