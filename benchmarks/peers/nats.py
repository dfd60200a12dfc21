"""NATS beside ours: the newest server, built by Go from its module proxy, or the system's."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchmarks.peers.process import Broker, Process, refuse_database
from tests.interop.fetched import cache_root, into, tool
from tests.servers import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import Database

VERSION = "v2.15.2"
MODULE = f"github.com/nats-io/nats-server/v2@{VERSION}"
# Sessions and messages at QoS 1 are in JetStream.
CONFIGURATION = """
server_name: bench
listen: "127.0.0.1:{nats}"
jetstream {{ store_dir: "{folder}/jetstream" }}
mqtt {{ listen: "127.0.0.1:{port}" }}
"""


def server() -> str:
    """Path of nats-server: of VERSION where Go is there, else what the system has.

    Raises:
        PeerUnavailableError: neither, or Go cannot build it. No other version is measured.
    """
    if shutil.which("go") is None:
        return tool("nats-server")
    # Go takes the folder of its programs from the environment only.
    build = ["env", "GOBIN={}", tool("go"), "install", MODULE]
    folder = into(cache_root() / f"nats-{VERSION}", f"building {MODULE}", build)
    return str(folder / "nats-server")


def jetstream(folder: Path, database: Database | None) -> Broker:
    """A single nats-server, which acknowledges before anything is synced."""
    refuse_database(database)
    port = free_port()
    command = [server(), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    return Process(command, port, folder / "log", greeting=b"INFO")


def mqtt(folder: Path, hello: bytes, greeting: bytes) -> Broker:
    """The same, whose port is that of MQTT: it answers `hello` by `greeting`."""
    port = free_port()
    file = folder / "nats.conf"
    file.write_text(CONFIGURATION.format(port=port, nats=free_port(), folder=folder.resolve()))
    command = [server(), "-c", str(file)]
    return Process(command, port, folder / "log", hello=hello, greeting=greeting)
