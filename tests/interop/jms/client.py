"""The reference's JMS client, driven from Python: its jar, our Java program over it, one JVM.

Nothing is fetched until `jar()` is called; what was fetched stays in the user's cache folder.
QUIVER_REFERENCE_JMS_JAR names a jar instead.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.interop.reference import ReferenceUnavailableError

SOURCE = Path(__file__).parent / "java" / "JmsClient.java"
# The newest under this name on Maven Central whose classes run on Java 17.
ARTIFACT = "org.apache.activemq:artemis-jms-client-all:2.44.0"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
FETCH_S = 300


def cache_folder():
    """Where the jar and the compiled class lie, one folder per state of the source."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    digest = hashlib.sha256(ARTIFACT.encode() + SOURCE.read_bytes()).hexdigest()[:12]
    return Path(home) / "quiver" / f"jms-{digest}"


def tool(name):
    path = shutil.which(name)
    if path is None:
        raise ReferenceUnavailableError(f"no `{name}` on PATH")
    return path


def into(folder, what, command):
    """Run a command that fills `{}` and put that in place as `folder`."""
    if folder.exists():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    partial.mkdir(parents=True, exist_ok=True)
    words = [word.replace("{}", str(partial)) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=FETCH_S)
    if done.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise ReferenceUnavailableError(f"{what}: " + " | ".join(lines[:2]))
    try:
        partial.rename(folder)
    except OSError:
        # Another process was faster; its folder is as good.
        shutil.rmtree(partial)
    return folder


def jar():
    """The client's jar.

    Raises:
        ReferenceUnavailableError: no Maven, or Maven Central cannot be reached.
    """
    given = os.environ.get("QUIVER_REFERENCE_JMS_JAR")
    if given:
        return Path(given)
    command = [tool("mvn"), "-q", "-B", COPY, f"-Dartifact={ARTIFACT}", "-DoutputDirectory={}"]
    folder = into(cache_folder() / "jar", "fetching the JMS client failed", command)
    return next(folder.glob("*.jar"))


def classes():
    """Our compiled program."""
    command = [tool("javac"), "-d", "{}", "-cp", str(jar()), str(SOURCE)]
    return into(cache_folder() / "classes", "compiling JmsClient.java failed", command)


class JmsError(Exception):
    """The client threw; the message is its exception's text."""


class JmsClient:
    """One JVM with the client, against one broker; a scenario at a time.

    Args:
        port: of the broker, on this machine.
        user: who the client is; None says nothing.
        password: of that user.
        host: as the client calls this machine.
        parameters: more of the URL.
    """

    def __init__(self, port, user=None, password=None, *, host="127.0.0.1", **parameters):
        class_path = f"{classes()}:{jar()}"
        if user is not None:
            parameters |= {"user": user, "password": password}
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        url = f"tcp://{host}:{port}" + (f"?{query}" if query else "")
        self._process = subprocess.Popen(
            [tool("java"), "-cp", class_path, "JmsClient", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

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
