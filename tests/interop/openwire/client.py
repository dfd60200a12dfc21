"""ActiveMQ Classic's JMS client, driven from Python: its jars, our Java program, one JVM."""

from pathlib import Path

from tests.interop.fetched import cache_folder, compiled, jars_of
from tests.interop.jms.client import ScenarioClient

SOURCE = Path(__file__).parent / "java" / "OpenWireClient.java"
POM = SOURCE.parent / "pom.xml"


def class_path():
    """Our program over the client.

    Raises:
        PeerUnavailableError: no Java or Maven, or Maven Central cannot be reached.
    """
    folder = cache_folder("openwire", [POM, SOURCE])
    jars = f"{jars_of(POM, folder / 'jars')}/*"
    return f"{compiled([SOURCE], jars, folder / 'classes', '-nowarn')}:{jars}"


class OpenWireClient(ScenarioClient):
    """One JVM with the client, against one broker; a scenario at a time.

    Args:
        url: of the broker, as the client takes it.
    """

    def __init__(self, url):
        super().__init__(class_path(), "OpenWireClient", url)
