"""One call that makes the data sources known to a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]

# Without it Spark refuses a Python source that takes filters.
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register the sources `journal`, `messages`, `bindings`, `retention` and `broker`.

    Also lets Python sources take filters (`spark.sql.python.filterPushdown.enabled`), for the
    session: these do where a query asks for it (option `filterPushdown`), and Spark refuses one
    that might while that is off.

    Args:
        spark: a session of PySpark 4.1 or later; its workers must be able to import `pipeline`.
    """
    # Here, so that `import pipeline` needs no PySpark.
    from pipeline.sources.bindings import BindingsSource
    from pipeline.sources.broker import BrokerSource
    from pipeline.sources.journal import JournalSource
    from pipeline.sources.messages import MessagesSource
    from pipeline.sources.retention import RetentionSource

    spark.conf.set(PUSHDOWN, "true")
    for source in (JournalSource, MessagesSource, BindingsSource, RetentionSource, BrokerSource):
        spark.dataSource.register(source)
