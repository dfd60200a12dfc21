"""The loads by AMQP 1.0 and by OpenWire: JMS clients of others, which Maven Central has.

A command takes the URI of a broker, then the arguments of java/Load.java. The URI of a port is
`AMQP` or `OPENWIRE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.peers.brokers import JAVA, java_client
from tests.interop.fetched import cache_folder, jars_of
from tests.interop.openwire.client import POM as CLASSIC_POM

if TYPE_CHECKING:
    from pathlib import Path

QPID_POM = JAVA / "qpid" / "pom.xml"
AMQP = "amqp://127.0.0.1:{}"
OPENWIRE = "tcp://127.0.0.1:{}"
# An address of RabbitMQ 3's plugin for AMQP 1.0: this queue, made at its first use.
RABBITMQ_PREFIX = "/queue/"


def qpid(prefix: str = "") -> list[str]:
    """Give the load of Qpid JMS; `prefix` begins each address.

    Raises:
        Unavailable: no Java or Maven, or a jar cannot be fetched.
    """
    return java_client("QpidLoad", [_jars("qpid", QPID_POM)], f"-Dprefix={prefix}")


def classic_client() -> list[str]:
    """Give the load of ActiveMQ Classic's client.

    Raises:
        Unavailable: no Java or Maven, or a jar cannot be fetched.
    """
    return java_client("ClassicLoad", [_jars("classic-client", CLASSIC_POM)])


def _jars(name: str, pom: Path) -> Path:
    return jars_of(pom, cache_folder(name, [pom]) / "jars") / "*"
