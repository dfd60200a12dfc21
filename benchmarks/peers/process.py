"""A server of another project: a process that runs until a benchmark is done with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Protocol

from tests.interop.fetched import PeerUnavailableError as Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import Database

__all__ = ["Broker", "Process", "Unavailable", "refuse_database"]

START_TIMEOUT_S = 120


class Broker(Protocol):
    """One that runs."""

    port: int

    def stop(self) -> None:
        """End it in order."""


class Process:
    """A server that runs as long as its process does.

    Args:
        command: what starts it.
        port: where it will listen.
        log: what it prints.
        environment: beside our own.
        hello: bytes that a client sends once the server listens.
        greeting: how its answer to that begins.
        behind: a command to be run when it has ended.

    Attributes:
        pid: of the process.
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
        self.pid = self._process.pid
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

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait(START_TIMEOUT_S)


def _answers(port: int, hello: bytes, greeting: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(hello)
            return connection.recv(64).startswith(greeting)
    except OSError:
        return False


def refuse_database(database: Database | None) -> None:
    """Say that a broker has no store in a database.

    Raises:
        Unavailable: a database was asked for.
    """
    if database is not None:
        raise Unavailable("it keeps nothing in a database")
