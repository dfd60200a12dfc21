"""ActiveMQ Classic beside ours: its newest broker from its jars, which Maven Central has."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from benchmarks.peers.process import Process, refuse_database
from tests.interop.fetched import cache_folder, compiled, jars_of, tool
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.servers import Database

JAVA = Path(__file__).parent / "java" / "classic"
POM = JAVA / "pom.xml"
SOURCE = JAVA / "RunClassic.java"
# OpenWire's is last: connectors start in order, so all listen when it answers.
SCHEMES = {"amqp": "amqp", "mqtt": "mqtt", "stomp": "stomp", "openwire": "tcp"}
CONNECTOR = "{scheme}://127.0.0.1:{port}?maximumConnections=1000&wireFormat.maxFrameSize=104857600"


def _cache() -> Path:
    return cache_folder("classic", [POM, SOURCE])


def jars() -> Path:
    """Folder of the broker's jars, its JMS client's among them.

    Raises:
        PeerUnavailableError: no Maven, or Maven Central cannot be reached.
    """
    return jars_of(POM, _cache() / "jars")


def class_path() -> str:
    """Our program over the broker's jars.

    Raises:
        PeerUnavailableError: no Java or Maven, or Maven Central cannot be reached.
    """
    all_of_them = f"{jars()}/*"
    return f"{compiled([SOURCE], all_of_them, _cache() / 'classes')}:{all_of_them}"


class Classic(Process):
    """A broker on KahaDB, which syncs what it confirms; any user gets in.

    Args:
        folder: where it keeps everything.
        protocol: whose port is to be `port`; a name of SCHEMES.
        ports: of an earlier one on this folder, to be taken again; None takes free ones.
        memory: of its JVM.
        more: parameters of the connectors' URIs, by the names of SCHEMES.

    Attributes:
        ports: where it listens, by the names of SCHEMES.
    """

    def __init__(
        self,
        folder: Path,
        protocol: str = "openwire",
        ports: dict[str, int] | None = None,
        memory: str = "2g",
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.ports = ports or {name: free_port() for name in SCHEMES}
        connectors = [
            CONNECTOR.format(scheme=scheme, port=self.ports[name]) + more.get(name, "")
            for name, scheme in SCHEMES.items()
        ]
        # It begins to speak first: a length, the type of WIREFORMAT_INFO, its magic.
        super().__init__(
            [
                *(tool("java"), f"-Xmx{memory}", "-cp", class_path(), "RunClassic"),
                *(str(folder), *connectors),
            ],
            self.ports["openwire"],
            folder / "log",
            greeting=b"\0\0",
        )
        self.port = self.ports[protocol]


def classic(folder: Path, database: Database | None = None, protocol: str = "openwire") -> Classic:
    """ActiveMQ Classic as its distribution configures it, without its web console."""
    refuse_database(database)
    return Classic(folder.resolve(), protocol)
