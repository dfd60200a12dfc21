"""Brokers that ours is held against, each in a process and a folder of its own, and their clients.

RabbitMQ and nats-server are the system's (`apt install rabbitmq-server nats-server`), their Java
clients are fetched from Maven Central, and so is the reference's driver for PostgreSQL. What is not
there is an Unavailable.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.interop.fetched import ReferenceUnavailableError, into, tool
from tests.interop.jms.client import COPY, cache_folder, jar
from tests.interop.reference import jars
from tests.interop.reference_broker import ReferenceBroker, free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers import Database

__all__ = ["BROKERS", "Broker", "Kind", "Unavailable", "ours", "reference"]

Unavailable = ReferenceUnavailableError

JAVA = Path(__file__).parent / "java"
START_TIMEOUT_S = 120
USER, PASSWORD = "admin", "secret"


class Broker(Protocol):
    """One that runs."""

    port: int

    def stop(self) -> None:
        """End it in order."""


class _Process:
    """A server that runs as long as its process does.

    Args:
        command: what starts it.
        port: where it will listen.
        log: what it prints.
        environment: beside our own.
        hello: what somebody says to it once it listens.
        greeting: how its answer to that begins.
        behind: a command to be run when it has ended.
    """

    def __init__(
        self,
        command: list[str],
        port: int,
        log: Path,
        environment: dict[str, str] | None = None,
        *,
        hello: bytes = b"",
        greeting: bytes,
        behind: list[str] | None = None,
    ) -> None:
        self.port = port
        self._behind = behind
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env={**os.environ, **(environment or {})}
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _answers(port, hello, greeting):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"{command[0]} did not start: {log.read_text()[-500:]}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End it in order."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(START_TIMEOUT_S)
        if self._behind is not None:
            subprocess.run(self._behind, check=False, capture_output=True)


def _answers(port: int, hello: bytes, greeting: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(hello)
            return connection.recv(64).startswith(greeting)
    except OSError:
        return False


def ours(folder: Path, database: Database | None, max_size_bytes: int = -1) -> Broker:
    """`broker create`, `broker run`; with `max_size_bytes` in memory an address begins to page."""
    port = free_port()
    instance = folder / "ours"
    broker = [sys.executable, "-m", "broker.cli.main"]
    subprocess.run(
        [
            *(*broker, "create", str(instance), "--user", USER, "--password", PASSWORD),
            *("--port", str(port), "--no-web", "--max-disk-usage", "-1"),
            *(("--jdbc", str(database.jdbc_url)) if database is not None else ()),
        ],
        check=True,
        capture_output=True,
    )
    file = instance / "etc" / "broker.xml"
    file.write_text(file.read_text().replace(*_limit(max_size_bytes)))
    # A ping's answer: its own type, on channel 0.
    ping = b"ARTEMIS" + (17).to_bytes(4, "big") + b"\x0a" + bytes(8) + (60_000).to_bytes(8, "big")
    return _Process(
        [*broker, "run", str(instance)], port, folder / "log", hello=ping, greeting=b"\0\0\0"
    )


def _limit(max_size_bytes: int) -> tuple[str, str]:
    """What is replaced in a new broker.xml, and by what."""
    return ("<max-size-bytes>-1<", f"<max-size-bytes>{max_size_bytes}<")


def reference(folder: Path, database: Database | None, max_size_bytes: int = -1) -> Broker:
    """The reference's broker, with a timer calibrated for this disk, or on a database."""
    if database is None:
        broker = ReferenceBroker(folder, ("--aio",), memory_mb=2048)
    else:
        place = ("--jdbc", "--jdbc-connection-url", str(database.jdbc_url))
        driver = ("--jdbc-driver-class-name", "org.postgresql.Driver")
        broker = ReferenceBroker(folder, ("--no-autotune", *place, *driver), memory_mb=2048)
        for jar_file in jars().glob("postgresql-*.jar"):
            shutil.copy(jar_file, folder / "broker" / "lib")
    broker.change_configuration(_limit(max_size_bytes))
    broker.start()
    return broker


def rabbitmq(folder: Path, database: Database | None) -> Broker:
    """RabbitMQ as it comes, without its plugins."""
    _refuse(database)
    # The wrapper in /usr/sbin changes the user.
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not server.exists():
        raise Unavailable(f"no {server}")
    port, names = free_port(), str(free_port())
    environment = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_PORT": names,
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
    }
    (folder / "plugins").write_text("[].\n")
    (folder / "rabbitmq.conf").write_text("loopback_users = none\ndisk_free_limit.absolute = 1MB\n")
    return _Process(
        [str(server)],
        port,
        folder / "log",
        environment,
        hello=b"AMQP\0\0\x09\x01",
        greeting=b"\x01\0\0",
        # Its name server, which it has started, stays otherwise.
        behind=[tool("epmd"), "-port", names, "-kill"],
    )


def _refuse(database: Database | None) -> None:
    if database is not None:
        raise Unavailable("it keeps nothing in a database")


def jetstream(folder: Path, database: Database | None) -> Broker:
    """A single nats-server, which acknowledges before anything is synced."""
    _refuse(database)
    port = free_port()
    command = [tool("nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    return _Process(command, port, folder / "log", greeting=b"INFO")


class Kind:
    """A kind of broker, and how it is driven.

    Args:
        name: as it is shown.
        start: starts one in a folder, on files there or on a database.
        client: class of the program in java/.
        uri: `{}` is the port.
        artifacts: of Maven Central; none: the jar of the reference's client.
        account: user and password.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[Path, Database | None], Broker],
        client: str = "CoreLoad",
        uri: str = "tcp://127.0.0.1:{}",
        artifacts: tuple[str, ...] = (),
        account: tuple[str, str] = (USER, PASSWORD),
    ) -> None:
        self.name = name
        self.start = start
        self._client = client
        self._uri = uri
        self._artifacts = artifacts
        self._account = account

    def command(self, port: int) -> list[str]:
        """Give the compiled client's command, up to user and password.

        Raises:
            Unavailable: no Java, or a jar cannot be fetched.
        """
        jars = [_fetched(artifact) for artifact in self._artifacts] or [jar()]
        sources = [JAVA / "Load.java", JAVA / f"{self._client}.java"]
        path = ":".join(map(str, jars))
        state = max(source.stat().st_mtime_ns for source in sources)
        built = into(
            Path(tempfile.gettempdir()) / f"quiver-{self._client}-{state}",
            f"compiling {self._client}.java failed",
            [tool("javac"), "-d", "{}", "-cp", path, *map(str, sources)],
        )
        return [
            *(tool("java"), "-Xmx512m", "-cp", f"{built}:{path}", self._client),
            *(self._uri.format(port), *self._account),
        ]


def _fetched(artifact: str) -> Path:
    folder = cache_folder().parent / artifact.replace(":", "-")
    command = [tool("mvn"), "-q", "-B", COPY, f"-Dartifact={artifact}", "-DoutputDirectory={}"]
    return next(into(folder, f"fetching {artifact} failed", command).glob("*.jar"))


BROKERS = (
    Kind("ours", ours),
    Kind("reference", reference),
    Kind(
        "rabbitmq",
        rabbitmq,
        "RabbitLoad",
        "amqp://127.0.0.1:{}",
        ("com.rabbitmq:amqp-client:5.20.0", "org.slf4j:slf4j-api:1.7.36"),
        ("guest", "guest"),
    ),
    Kind("jetstream", jetstream, "NatsLoad", "nats://127.0.0.1:{}", ("io.nats:jnats:2.17.6",)),
)
