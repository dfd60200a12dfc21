"""The Spark session of the command line; jobs of users bring their own."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from journal.errors import WrongUse
from journal.extras import install_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["check_installed", "check_master", "open_session", "settings_for"]

# What the sources need, and what installs it.
_PACKAGES: Final = ("pyspark", "pyarrow")
# Masters that are asked over the network, and how long we wait for one: Spark tries for a minute.
_MASTER: Final = re.compile(r"(?:spark|k8s)://(?:https?://)?(.+)")
_HOST: Final = re.compile(r"\[?([^\]/]+?)\]?:(\d+)/?")
MASTER_TIMEOUT_S: Final = 20.0
# What Spark says once no master has taken its application for a minute.
_NOT_TAKEN: Final = "stopped SparkContext"
# Those whose workers are all started by the Java of this process.
_IN_PROCESS: Final = re.compile(r"local(\[.*\])?")
# Of the environment: what workers run on.
_PYTHON: Final = "PYSPARK_PYTHON"
# All that Spark's spark-submit looks at.
_KINDS: Final = ("local", "spark", "k8s")
# Errors come as exceptions, and are told in a line: what Spark logs beside them goes nowhere, but
# for the news that a job waits for a cluster without workers.
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# Come before those.
_DEFAULT_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
_LOGGING_OPTION: Final = "-Dlog4j2.configurationFile="
# Of PySpark's Python, which print an error that is raised, too.
_PYTHON_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

# Of files, what one partition of a shuffle is made of: its columns are a third of it, or less.
BYTES_PER_PARTITION: Final = 64 << 20
# Below that plans and code that is made for a query cost more than they save.
SMALL: Final = 256 << 20
_OF_SMALL: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
# And so do Java's second compiler (half of the processor time of an audit of 16 MB) and the
# collections that it makes, below that size, for the classes of Spark alone.
_JAVA_OF_SMALL: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"


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


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether the root logger takes a record: Py4J prints there what it raises, Ctrl-C too."""
    return "py4j" not in Path(record.pathname).parts


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


def check_master(master: str) -> None:
    """Make sure that Spark knows this kind of master, and that one of a network answers.

    Raises:
        WrongUse: it is not; or none of its hosts answers, within 20 s.
    """
    if master != "yarn" and not master.startswith(_KINDS):
        # Spark's own answer is an exception of Java's main(), which is printed before we see it.
        raise WrongUse(
            f"{master!r} is not a Spark master: local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT"
        )
    found = _MASTER.fullmatch(master)
    hosts = [_HOST.fullmatch(one) for one in found[1].split(",")] if found else []
    failures = []
    for host in hosts:
        if host is None:
            return  # Spark says what is wrong with it.
        try:
            address = (host[1], int(host[2]))
            socket.create_connection(address, MASTER_TIMEOUT_S / len(hosts)).close()
        except (OSError, OverflowError) as error:
            failures.append(getattr(error, "strerror", None) or str(error))
        else:
            return
    if failures:
        raise WrongUse(f"no master of Spark answers at {master}: {failures[0]}")


def open_session(
    master: str, settings: Mapping[str, str] | None = None, size: int | None = None
) -> SparkSession:
    """Start Spark; sources are registered by who reads them (pipeline.registration).

    Args:
        master: of Spark, such as `local[*]`.
        settings: of Spark, beside ours.
        size: bytes of what will be read; None: not known. A session that is there already keeps
            its partitions.

    Raises:
        WrongUse: see check_installed() and check_master(); or what answers there takes no
            application, which Spark says after a minute.
    """
    check_installed()
    check_master(master)
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    for name in _PYTHON_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)
    # Workers would take the `python3` of the PATH, which may be another one.
    is_own = os.environ.setdefault(_PYTHON, sys.executable) == sys.executable
    is_new = SparkSession.getActiveSession() is None
    more = (settings or {}).get(_JAVA_OPTIONS, "")
    # Java refuses two collectors.
    is_small = size is not None and size < SMALL and "GC" not in more
    builder = SparkSession.builder.master(master).appName("quiver pipeline")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(settings_for(size) if is_new and size is not None else {}),
        **({_DEFAULT_JAVA_OPTIONS: _JAVA_OF_SMALL} if is_small else {}),
        **(settings or {}),
        _JAVA_OPTIONS: _with_logging(more),
    }.items():
        builder = builder.config(name, value)
    try:
        with _installed_package(is_wanted=is_own and _IN_PROCESS.fullmatch(master) is not None):
            return builder.getOrCreate()
    except Exception as error:
        # An error of Py4J's, or of PySpark's, which has converted it.
        if _MASTER.fullmatch(master) is None or _NOT_TAKEN not in str(error):
            raise
        raise WrongUse(
            f"what answers at {master} is not a master of Spark, or of another version, or takes no"
            " application"
        ) from error


@contextmanager
def _installed_package(*, is_wanted: bool) -> Iterator[None]:
    """Have workers import the PySpark that is installed, as this process has.

    They would import python/lib/pyspark.zip of SPARK_HOME, and Python compiles what it finds in an
    archive anew in each process: half a second for each of a dozen. So SPARK_HOME is a folder of
    links to all of the package but that, while Java starts.

    Args:
        is_wanted: nothing happens otherwise: where the user has a Spark or a Python for workers, or
            other machines take part, the archive is what fits.
    """
    home = None if not is_wanted or "SPARK_HOME" in os.environ else _links()
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _links() -> Path | None:
    """The folder of links, one for all that use this package; None if it cannot be made.

    It stays: a Java whose Python has ended still loads classes from it.
    """
    import pyspark

    package = Path(pyspark.__file__).parent
    place = hashlib.sha256(str(package).encode()).hexdigest()[:16]
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quiver"
        home = cache / f"pyspark-{pyspark.__version__}-{place}"
        if not home.is_dir():
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache) as made:
                links = Path(made) / "links"
                links.mkdir()
                for one in package.iterdir():
                    if one.name != "python":
                        (links / one.name).symlink_to(one)
                try:
                    links.rename(home)
                except OSError:
                    if not home.is_dir():  # Else another process was faster.
                        raise
    except (OSError, RuntimeError):  # Such as no home.
        return None
    return home


def _with_logging(java_options: str) -> str:
    """The options of Spark's Java with our settings of log4j, unless they name others."""
    if _LOGGING_OPTION in java_options:
        return java_options
    return f"{java_options} {_LOGGING_OPTION}{_LOGGING.as_uri()}".strip()
