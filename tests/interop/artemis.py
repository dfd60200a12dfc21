"""Artemis's journal, driven from Python: its jars, our Java program over them, one JVM.

Used by the tests of this folder and by benchmarks/peers. Nothing is fetched until `jars()` is
called; what was fetched stays in the user's cache folder.

Environment:
    QUIVER_ARTEMIS_JARS: folder with the jars (such as `lib/` of Artemis's distribution,
        plus an slf4j binding to java.util.logging); nothing is fetched then.
    QUIVER_ARTEMIS_JAVA_OPTIONS: options for the JVM, separated by spaces.
    XDG_CACHE_HOME: where the cache folder `quiver/` lies; `~/.cache` when unset.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from tests.interop.fetched import (
    PeerUnavailableError,
    cache_folder,
    compiled,
    given,
    jars_of,
    publish,
    tool,
)

__all__ = ["Artemis", "ArtemisError", "PeerUnavailableError", "classes", "jars"]

JAVA_SOURCES = Path(__file__).parent / "java"
# The newest on Maven Central, and the last one under the project's former group id.
VERSION = "2.56.0"
FORMER_VERSION = "2.44.0"


class ArtemisError(Exception):
    """Artemis threw; the message is its exception's text."""


def _cached(name: str, version: str) -> Path:
    """A folder for one state of the Java sources and the pom."""
    return cache_folder(f"artemis-{version}", JAVA_SOURCES.rglob("*.*")) / name


def jars(version: str = VERSION) -> Path:
    """Folder with the jars of a release of Artemis, fetched from Maven Central at the first call.

    Raises:
        PeerUnavailableError: no Maven, or Maven Central cannot be reached.
    """
    folder = given("JARS")
    if folder:
        return Path(folder)
    group = "org.apache.activemq" if version == FORMER_VERSION else "org.apache.artemis"
    properties = (f"-Dartemis.group={group}", f"-Dartemis.version={version}")
    return jars_of(JAVA_SOURCES / "pom.xml", _cached("jars", version), *properties)


def classes(version: str = VERSION) -> Path:
    """Folder holding our compiled Java program.

    Raises:
        PeerUnavailableError: no Java compiler, no jars, or the sources do not compile.
    """
    sources = sorted(JAVA_SOURCES.rglob("*.java"))
    return compiled(
        sources, f"{jars(version)}/*", _cached("classes", version), "-Xlint:all", "-Werror"
    )


def native_libraries(version: str = VERSION) -> Path:
    """Folder holding Artemis's library for kernel AIO, taken out of its jar.

    The JVM looks for libraries in folders only.

    Raises:
        PeerUnavailableError: as `jars()`.
    """
    folder = _cached("native", version)
    if not folder.exists():
        partial = folder.with_name(f"native.{os.getpid()}")
        partial.mkdir(parents=True)
        for jar in jars(version).glob("activemq-artemis-native-*.jar"):
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if name.endswith(".so"):
                        (partial / Path(name).name).write_bytes(archive.read(name))
        publish(partial, folder)
    return folder


class Artemis:
    """One JVM with the journal of a release of Artemis; a request at a time, from one thread."""

    def __init__(self, version: str = VERSION) -> None:
        class_path = f"{classes(version)}:{jars(version)}/*"
        options = (given("JAVA_OPTIONS") or "-Xmx3g").split()
        options.append(f"-Djava.library.path={native_libraries(version)}")
        self._process = subprocess.Popen(
            [tool("java"), *options, "-cp", class_path, "interop.Server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.warnings: list[str] = []

    def call(self, command: str, folder: Path | str, /, **arguments: object) -> Any:
        """Run one command (java/interop/Server.java lists them) on a journal folder.

        Args:
            command: its name.
            folder: the journal's folder.
            **arguments: journal settings named as in expected.json, and the command's own.

        Returns:
            What the command reports. `warnings` then holds what Artemis logged.

        Raises:
            ArtemisError: Artemis threw.
        """
        words = [command, f"dir={folder}"]
        words += [f"{name}={_word(value)}" for name, value in arguments.items()]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ArtemisError(f"the JVM ended with status {self._process.wait()}")
        answer = json.loads(line)
        self.warnings = answer["warnings"]
        if "error" in answer:
            raise ArtemisError(answer["error"])
        return answer["result"]

    def run(self, folder: Path, script: str, **config: object) -> None:
        """Run an ops script (words: tests/golden/README.md) and leave the folder closed."""
        path = folder.with_name(folder.name + ".ops")
        path.write_text(script)
        self.call("run", folder, script=path, **config)

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
