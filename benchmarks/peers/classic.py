"""ActiveMQ Classic beside ours: its newest broker from its jars, which Maven Central has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.process import Process, refuse_database
from tests.interop.fetched import cache_folder, compiled, jars_of, tool
from tests.servers import free_port

if TYPE_CHECKING:
    from tests.servers import Database

JAVA = Path(__file__).parent / "java" / "classic"
POM = JAVA / "pom.xml"
SOURCE = JAVA / "RunClassic.java"
# OpenWire's is last: connectors start in order, so all listen when it answers.
SCHEMES = {"amqp": "amqp", "mqtt": "mqtt", "stomp": "stomp", "openwire": "tcp"}
CONNECTOR = "{scheme}://127.0.0.1:{port}?maximumConnections=1000&wireFormat.maxFrameSize=104857600"


def class_path() -> str:
    """Our program over the broker's jars.

    Raises:
        PeerUnavailableError: no Java or Maven, or Maven Central cannot be reached.
    """
    folder = cache_folder("classic", [POM, SOURCE])
    jars = f"{jars_of(POM, folder / 'jars')}/*"
    return f"{compiled([SOURCE], jars, folder / 'classes')}:{jars}"


class Classic(Process):
    """A broker on KahaDB, which syncs what it confirms; any user gets in.

    Args:
        folder: where it keeps everything.
        protocol: whose port is to be `port`; a name of SCHEMES.

    Attributes:
        ports: where it listens, by the names of SCHEMES.
    """

    def __init__(self, folder: Path, protocol: str = "openwire") -> None:
        self.ports = {name: free_port() for name in SCHEMES}
        connectors = [
            CONNECTOR.format(scheme=scheme, port=self.ports[name])
            for name, scheme in SCHEMES.items()
        ]
        # It begins to speak first: a length, the type of WIREFORMAT_INFO, its magic.
        super().__init__(
            [tool("java"), "-Xmx2g", "-cp", class_path(), "RunClassic", str(folder), *connectors],
            self.ports["openwire"],
            folder / "log",
            greeting=b"\0\0",
        )
        self.port = self.ports[protocol]


def classic(folder: Path, database: Database | None = None, protocol: str = "openwire") -> Classic:
    """ActiveMQ Classic as its distribution configures it, without its web console."""
    refuse_database(database)
    return Classic(folder.resolve(), protocol)
