"""Kafka beside ours: one broker in KRaft mode from its jars, which Maven Central has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.process import Broker, Process, refuse_database
from tests.interop.fetched import cache_folder, jars_of, tool
from tests.servers import free_port

if TYPE_CHECKING:
    from tests.servers import Database

POM = Path(__file__).parent / "java" / "kafka" / "pom.xml"
FORMAT_TIMEOUT_S = 120
# Sixteen bytes in base64; any will do.
CLUSTER_ID = "cXVpdmVyLWJlbmNobWFyaw"
# A new broker has no topics; those that producers make have one partition and one replica.
CONFIGURATION = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
# Kafka's own default leaves syncing to the operating system.
FLUSHED = "log.flush.interval.messages=1\n"


def jars() -> Path:
    """Folder with the jars of the server and of its client."""
    return jars_of(POM, cache_folder("kafka", [POM]) / "jars")


def kafka(folder: Path, database: Database | None) -> Broker:
    """Kafka as it comes: a message is acknowledged before anything is synced."""
    return _started(folder, database, "")


def flushed_kafka(folder: Path, database: Database | None) -> Broker:
    """Kafka that syncs each batch before it acknowledges it."""
    return _started(folder, database, FLUSHED)


def _started(folder: Path, database: Database | None, more: str) -> Broker:
    refuse_database(database)
    port = free_port()
    settings = folder / "server.properties"
    settings.write_text(
        CONFIGURATION.format(port=port, controller=free_port(), folder=folder) + more
    )
    java = [tool("java"), "-Xmx1g", "-cp", f"{jars()}/*"]
    subprocess.run(
        [
            *java,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            CLUSTER_ID,
            "-c",
            settings,
        ],
        check=True,
        capture_output=True,
        timeout=FORMAT_TIMEOUT_S,
    )
    # A request that asks which versions it speaks: length, key 18, version 0, number, no client.
    hello = bytes.fromhex("0000000a 0012 0000 00000001 ffff".replace(" ", ""))
    return Process(
        [*java, "kafka.Kafka", str(settings)], port, folder / "log", hello=hello, greeting=b"\0\0"
    )
