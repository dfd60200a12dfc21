"""The reference's journal, driven from Python: its jars, our Java program over them, one JVM.

Used by the tests of this folder and by benchmarks/peers. Nothing is fetched until `jars()` is
called; what was fetched stays in the user's cache folder.

Environment:
    QUIVER_REFERENCE_JARS: folder with the jars (such as `lib/` of the reference's distribution,
        plus an slf4j binding to java.util.logging); nothing is fetched then.
    QUIVER_REFERENCE_JAVA_OPTIONS: options for the JVM, separated by spaces.
    XDG_CACHE_HOME: where the cache folder `quiver/` lies; `~/.cache` when unset.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

JAVA_SOURCES = Path(__file__).parent / "java"
FETCH_TIMEOUT_S = 300
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


class ReferenceUnavailableError(Exception):
    """Java, Maven or Maven Central is not there; the message says which."""


class ReferenceError(Exception):
    """The reference threw; the message is its exception's text."""


def cache_folder() -> Path:
    """Folder for jars and compiled classes, one per state of the Java sources and the pom."""
    digest = hashlib.sha256()
    for source in sorted(JAVA_SOURCES.rglob("*.*")):
        digest.update(source.name.encode() + source.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "quiver" / f"reference-{digest.hexdigest()[:12]}"


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ReferenceUnavailableError(f"no `{name}` on PATH")
    return path


def _run(what: str, command: list[str], partial: Path) -> None:
    """Run a command that fills the folder `partial`; nothing is left of it on failure."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ReferenceUnavailableError(f"{what}: no end in {FETCH_TIMEOUT_S} s") from error
    if done.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise ReferenceUnavailableError(f"{what}: " + " | ".join(lines[:2]))


def jars() -> Path:
    """Folder holding the reference's jars, fetched from Maven Central at the first call.

    Raises:
        ReferenceUnavailableError: no Maven, or Maven Central cannot be reached.
    """
    given = os.environ.get("QUIVER_REFERENCE_JARS")
    if given:
        return Path(given)
    folder = cache_folder() / "jars"
    if not folder.exists():
        partial = folder.with_name(f"jars.{os.getpid()}")
        pom = str(JAVA_SOURCES / "pom.xml")
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
        _run(
            "fetching the reference from Maven Central failed",
            [_tool("mvn"), "-q", "-B", "-f", pom, COPY_JARS, *options],
            partial,
        )
        _publish(partial, folder)
    return folder


def classes() -> Path:
    """Folder holding our compiled Java program.

    Raises:
        ReferenceUnavailableError: no Java compiler, no jars, or the sources do not compile.
    """
    folder = cache_folder() / "classes"
    if not folder.exists():
        partial = folder.with_name(f"classes.{os.getpid()}")
        sources = [str(source) for source in sorted(JAVA_SOURCES.rglob("*.java"))]
        options = ["-Xlint:all", "-Werror", "-d", str(partial), "-cp", f"{jars()}/*"]
        command = [_tool("javac"), *options, *sources]
        _run("compiling tests/interop/java failed", command, partial)
        _publish(partial, folder)
    return folder


def native_libraries() -> Path:
    """Folder holding the reference's library for kernel AIO, taken out of its jar.

    The JVM looks for libraries in folders only.

    Raises:
        ReferenceUnavailableError: as `jars()`.
    """
    folder = cache_folder() / "native"
    if not folder.exists():
        partial = folder.with_name(f"native.{os.getpid()}")
        partial.mkdir(parents=True)
        for jar in jars().glob("activemq-artemis-native-*.jar"):
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if name.endswith(".so"):
                        (partial / Path(name).name).write_bytes(archive.read(name))
        _publish(partial, folder)
    return folder


def _publish(partial: Path, folder: Path) -> None:
    """Put a finished folder in place; one that another process finished first is as good."""
    try:
        partial.rename(folder)
    except OSError:
        shutil.rmtree(partial)


class Reference:
    """One JVM with the reference's journal; a request at a time, from one thread."""

    def __init__(self) -> None:
        class_path = f"{classes()}:{jars()}/*"
        options = os.environ.get("QUIVER_REFERENCE_JAVA_OPTIONS", "-Xmx3g").split()
        options.append(f"-Djava.library.path={native_libraries()}")
        self._process = subprocess.Popen(
            [_tool("java"), *options, "-cp", class_path, "interop.Server"],
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
            What the command reports. `warnings` then holds what the reference logged.

        Raises:
            ReferenceError: the reference threw.
        """
        words = [command, f"dir={folder}"]
        words += [f"{name}={_word(value)}" for name, value in arguments.items()]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ReferenceError(f"the JVM ended with status {self._process.wait()}")
        answer = json.loads(line)
        self.warnings = answer["warnings"]
        if "error" in answer:
            raise ReferenceError(answer["error"])
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
