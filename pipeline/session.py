"""A Spark session of our own, for the command line; a job of yours brings its own."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from journal.errors import WrongUse
from journal.extras import install_line
from pipeline.registration import register

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["check_installed", "open_session", "settings_for"]

# What the sources need, and what installs it.
_PACKAGES: Final = ("pyspark", "pyarrow")

# Of files, what one partition of a shuffle is made of: its columns are a third of it, or less.
BYTES_PER_PARTITION: Final = 64 << 20
# Below that plans and code that is made for a query cost more than they save.
SMALL: Final = 256 << 20
_OF_SMALL: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}


def check_installed() -> None:
    """Make sure that there is what a session needs.

    Raises:
        WrongUse: a package of Python, or Java, is missing; says what to do.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise WrongUse(
                f"Spark needs the Python package {package}: type {install_line('spark')}"
            )
    home = os.environ.get("JAVA_HOME")
    if shutil.which(os.path.join(home, "bin", "java") if home else "java") is None:
        where = f"below JAVA_HOME={home}" if home else "on the PATH"
        raise WrongUse(f"Spark needs Java 17 or later, and there is no `java` {where}")


def settings_for(size: int) -> dict[str, str]:
    """Settings of Spark for a job over so many bytes.

    Args:
        size: bytes of the files that are read.
    """
    partitions = max(2, -(-size // BYTES_PER_PARTITION))
    settings = {"spark.sql.shuffle.partitions": str(partitions)}
    if size < SMALL:
        settings |= _OF_SMALL
    return settings


def open_session(
    master: str, settings: Mapping[str, str] | None = None, size: int | None = None
) -> SparkSession:
    """Start Spark, with our sources registered.

    Args:
        master: of Spark, such as `local[*]`.
        settings: of Spark, beside ours.
        size: bytes of what will be read; None: not known. A session that is there already keeps
            its partitions.

    Raises:
        WrongUse: see check_installed().
    """
    check_installed()
    from pyspark.sql import SparkSession

    # Workers would take the `python3` of the PATH, which may be another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_new = SparkSession.getActiveSession() is None
    builder = SparkSession.builder.master(master).appName("quiver pipeline")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **(settings_for(size) if is_new and size is not None else {}),
        **(settings or {}),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
