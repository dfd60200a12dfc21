"""A session of Spark that takes little: what the tests and their programs run on."""

from pipeline.registration import register
from pipeline.session import open_session


def small_spark(place, **settings):
    """A session that keeps its files below `place`; with more settings of Spark."""
    spark = open_session(
        "local[2]",
        {
            "spark.driver.memory": "512m",
            # What lives for a minute is not worth compiling well.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(place / "local"),
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
            **settings,
        },
    )
    register(spark)
    return spark
