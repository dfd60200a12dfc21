"""Artemis's JMS client, driven from Python: its jar, our Java program over it, one JVM.

Nothing is fetched until `jar()` is called; what was fetched stays in the user's cache folder.
QUIVER_ARTEMIS_JMS_JAR names a jar instead.
"""

import hashlib
import os
import subprocess
from pathlib import Path

from tests.interop.fetched import cache_folder as cache_folder_of
from tests.interop.fetched import cache_root, compiled, given, into, jars_of, publish, tool

SOURCE = Path(__file__).parent / "java" / "JmsClient.java"
# The newest under this name on Maven Central whose classes run on Java 17.
ARTIFACT = "org.apache.activemq:artemis-jms-client-all:2.44.0"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def cache_folder():
    """Where the jar and the compiled class lie, one folder per state of the source."""
    digest = hashlib.sha256(ARTIFACT.encode() + SOURCE.read_bytes()).hexdigest()[:12]
    return cache_root() / f"jms-{digest}"


def jar():
    """The client's jar.

    Raises:
        PeerUnavailableError: no Maven, or Maven Central cannot be reached.
    """
    path = given("JMS_JAR")
    if path:
        return Path(path)
    command = [tool("mvn"), "-q", "-B", COPY, f"-Dartifact={ARTIFACT}", "-DoutputDirectory={}"]
    folder = into(cache_folder() / "jar", "fetching the JMS client", command)
    return next(folder.glob("*.jar"))


def classes():
    """Our compiled program."""
    return compiled([SOURCE], str(jar()), cache_folder() / "classes")


def newest_class_path():
    """Our program over the newest client: what it speaks has another package name."""
    pom = SOURCE.parent / "newest" / "pom.xml"
    folder = cache_folder_of("jms-newest", [pom, SOURCE])
    class_path = f"{jars_of(pom, folder / 'jars')}/*"
    source = folder / "source" / SOURCE.name
    if not source.exists():
        partial = folder / f"source.{os.getpid()}"
        partial.mkdir(parents=True)
        text = SOURCE.read_text().replace("import javax.jms.", "import jakarta.jms.")
        (partial / SOURCE.name).write_text(text)
        publish(partial, source.parent)
    return f"{compiled([source], class_path, folder / 'classes')}:{class_path}"


class JmsError(Exception):
    """The client threw; the message is its exception's text."""


class ScenarioProcess:
    """A program that takes scenarios as lines, one at a time, and answers `ok ...` or an error.

    Args:
        command: that starts it.

    Attributes:
        pid: of the process.
    """

    def __init__(self, command):
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.pid = self._process.pid

    def run(self, *words):
        """Run a scenario; what it found, as text.

        Raises:
            JmsError: it failed.
        """
        self.begin(*words)
        return self.end()

    def begin(self, *words):
        """Ask for a scenario, whose answer end() gives."""
        self._process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self._process.stdin.flush()

    def end(self):
        line = self._process.stdout.readline().rstrip("\n")
        status, _, rest = line.partition(" ")
        if status != "ok":
            raise JmsError(rest or f"the JVM ended with status {self._process.wait(60)}")
        return rest

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


class ScenarioClient(ScenarioProcess):
    """One JVM with such a program.

    Args:
        class_path: of the program.
        program: its class.
        url: of the broker.
        options: of the JVM.
    """

    def __init__(self, class_path, program, url, options=()):
        super().__init__([tool("java"), *options, "-cp", class_path, program, url])


class JmsClient(ScenarioClient):
    """One JVM with the client, against one broker; a scenario at a time.

    Args:
        port: of the broker, on this machine.
        user: who the client is; None says nothing.
        password: of that user.
        host: as the client calls this machine, or a multicast group.
        scheme: `udp` where the client discovers its broker.
        newest: with the newest release's jars, whose JMS is Jakarta's.
        parameters: more of the URL.
    """

    def __init__(
        self,
        port,
        user=None,
        password=None,
        *,
        host="127.0.0.1",
        scheme="tcp",
        newest=False,
        **parameters,
    ):
        class_path = newest_class_path() if newest else f"{classes()}:{jar()}"
        if user is not None:
            parameters |= {"user": user, "password": password}
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        url = f"{scheme}://{host}:{port}" + (f"?{query}" if query else "")
        super().__init__(class_path, "JmsClient", url)
