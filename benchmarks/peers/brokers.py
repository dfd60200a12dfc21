"""Brokers that ours is compared with, each a process in a folder of its own, and their clients.

RabbitMQ is the system's (rabbitmq.py), NATS is built by Go (nats.py), Artemis and Kafka come from
Maven Central, as do all clients and Artemis's driver for PostgreSQL. `Unavailable` says what is not
there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.kafka import flushed_kafka, kafka
from benchmarks.peers.kafka import jars as kafka_jars
from benchmarks.peers.nats import jetstream
from benchmarks.peers.process import Broker, Process, Unavailable
from benchmarks.peers.rabbitmq import PASSWORD as RABBITMQ_PASSWORD
from benchmarks.peers.rabbitmq import USER as RABBITMQ_USER
from benchmarks.peers.rabbitmq import rabbitmq
from tests.interop.artemis import jars
from tests.interop.artemis_broker import NEWEST, ArtemisBroker
from tests.interop.artemis_broker import VERSION as DISTRIBUTED
from tests.interop.fetched import into, tool
from tests.interop.jms.client import COPY, cache_folder, jar
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.servers import Database

__all__ = ["BROKERS", "Broker", "Kind", "Unavailable", "artemis", "fetched", "java_client", "ours"]

JAVA = Path(__file__).parent / "java"
START_TIMEOUT_S = 120
USER, PASSWORD = "admin", "secret"


def ours(
    folder: Path, database: Database | None, max_size_bytes: int = -1, tree: Path | None = None
) -> Broker:
    """`broker create`, `broker run`; with `max_size_bytes` in memory an address begins to page.

    `tree` is another checkout, built in place, whose broker is to run.
    """
    port = free_port()
    instance = folder / "ours"
    # -P: the working directory is this checkout, and would come first.
    broker = [sys.executable, *(("-P",) if tree else ()), "-m", "broker.cli.main"]
    environment = {"PYTHONPATH": str(tree)} if tree else {}
    subprocess.run(
        [
            *(*broker, "create", str(instance), "--user", USER, "--password", PASSWORD),
            *("--port", str(port), "--no-web", "--max-disk-usage", "-1"),
            *(("--jdbc", str(database.jdbc_url)) if database is not None else ()),
        ],
        check=True,
        capture_output=True,
        env={**os.environ, **environment},
    )
    file = instance / "etc" / "broker.xml"
    file.write_text(file.read_text().replace(*_limit(max_size_bytes)))
    # A ping's answer: its own type, on channel 0.
    ping = b"ARTEMIS" + (17).to_bytes(4, "big") + b"\x0a" + bytes(8) + (60_000).to_bytes(8, "big")
    return Process(
        [*broker, "run", str(instance)],
        port,
        folder / "log",
        environment,
        hello=ping,
        greeting=b"\0\0\0",
    )


def _limit(max_size_bytes: int) -> tuple[str, str]:
    """What is replaced in a new broker.xml, and by what."""
    return ("<max-size-bytes>-1<", f"<max-size-bytes>{max_size_bytes}<")


def artemis(
    folder: Path, database: Database | None, max_size_bytes: int = -1, version: str = DISTRIBUTED
) -> Broker:
    """Artemis, with a timer calibrated for this disk, or on a database."""
    if database is None:
        broker = ArtemisBroker(folder, ("--aio",), memory_mb=2048, version=version)
    else:
        place = ("--jdbc", "--jdbc-connection-url", str(database.jdbc_url))
        driver = ("--jdbc-driver-class-name", "org.postgresql.Driver")
        options = ("--no-autotune", *place, *driver)
        broker = ArtemisBroker(folder, options, memory_mb=2048, version=version)
        for jar_file in jars().glob("postgresql-*.jar"):
            shutil.copy(jar_file, folder / "broker" / "lib")
    broker.change_configuration(_limit(max_size_bytes))
    broker.start()
    return broker


def newest_artemis(folder: Path, database: Database | None) -> Broker:
    """The newest server of Artemis, in the same way."""
    return artemis(folder, database, version=NEWEST)


class Kind:
    """A kind of broker, and how it is driven.

    Args:
        name: as it is shown.
        start: starts one in a folder, on files there or on a database.
        client: class of the program in java/.
        uri: `{}` is the port.
        artifacts: of Maven Central; none: the jar of Artemis's client.
        account: user and password.
        jars: gives a folder with the client's jars, in place of artifacts.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[Path, Database | None], Broker],
        client: str = "CoreLoad",
        uri: str = "tcp://127.0.0.1:{}",
        artifacts: tuple[str, ...] = (),
        account: tuple[str, str] = (USER, PASSWORD),
        jars: Callable[[], Path] | None = None,
    ) -> None:
        self.name = name
        self.start = start
        self._client = client
        self._uri = uri
        self._artifacts = artifacts
        self._account = account
        self._jars = jars

    def command(self, port: int) -> list[str]:
        """Give the compiled client's command, up to user and password.

        Raises:
            Unavailable: no Java, or a jar cannot be fetched.
        """
        if self._jars is not None:
            jars = [self._jars() / "*"]
        else:
            jars = [fetched(artifact) for artifact in self._artifacts] or [jar()]
        return [*java_client(self._client, jars), self._uri.format(port), *self._account]


def java_client(name: str, jars: Sequence[Path], *options: str) -> list[str]:
    """Compile a program of java/ against jars; its command, without arguments.

    Raises:
        Unavailable: no Java, or it does not compile.
    """
    path = ":".join(map(str, jars))
    state = max(source.stat().st_mtime_ns for source in JAVA.glob("*.java"))
    # The compiler finds those that it is made of.
    command = [tool("javac"), "-d", "{}", "-cp", path, "-sourcepath", str(JAVA)]
    built = into(
        Path(tempfile.gettempdir()) / f"quiver-{name}-{state}",
        f"compiling {name}.java",
        [*command, str(JAVA / f"{name}.java")],
    )
    return [tool("java"), "-Xmx512m", *options, "-cp", f"{built}:{path}", name]


def fetched(artifact: str) -> Path:
    """The jar of an artifact of Maven Central."""
    folder = cache_folder().parent / artifact.replace(":", "-")
    command = [tool("mvn"), "-q", "-B", COPY, f"-Dartifact={artifact}", "-DoutputDirectory={}"]
    return next(into(folder, f"fetching {artifact}", command).glob("*.jar"))


BROKERS = (
    Kind("ours", ours),
    Kind("artemis", artemis),
    Kind("artemis-2.56", newest_artemis),
    Kind(
        "rabbitmq",
        rabbitmq,
        "RabbitLoad",
        "amqp://127.0.0.1:{}",
        ("com.rabbitmq:amqp-client:5.20.0", "org.slf4j:slf4j-api:1.7.36"),
        (RABBITMQ_USER, RABBITMQ_PASSWORD),
    ),
    Kind("jetstream", jetstream, "NatsLoad", "nats://127.0.0.1:{}", ("io.nats:jnats:2.17.6",)),
    Kind("kafka", kafka, "KafkaLoad", "127.0.0.1:{}", jars=kafka_jars),
    Kind("kafka-flushed", flushed_kafka, "KafkaLoad", "127.0.0.1:{}", jars=kafka_jars),
)
