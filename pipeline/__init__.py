"""Spark over what brokers stored: data sources for PySpark, and jobs on top of them.

    import pipeline

    pipeline.register(spark)
    spark.read.format("messages").load("my-broker").show()

Needs PySpark 4.1 or later and Java: `pip install 'quiver-mq[spark]'`. The manual's page
Pipeline (docs/guide/pipeline.md) has the columns and options of every source.
"""

from journal.version import __version__
from pipeline.registration import register

__all__ = ["__version__", "register"]
