"""What the tests fetch from Maven Central or compile, kept in the user's cache folder.

Environment:
    QUIVER_ARTEMIS_*: what is taken instead of fetching it: see `given()`.
    XDG_CACHE_HOME: where the cache folder `quiver/` lies; `~/.cache` when unset.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FETCH_TIMEOUT_S = 300
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


class PeerUnavailableError(Exception):
    """Java, Maven or Maven Central is not there; the message says which."""


def given(name: str) -> str | None:
    """The value of QUIVER_ARTEMIS_<name>, or of its old name QUIVER_REFERENCE_<name>."""
    return os.environ.get(f"QUIVER_ARTEMIS_{name}") or os.environ.get(f"QUIVER_REFERENCE_{name}")


def cache_root() -> Path:
    """The folder that all of it shares."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "quiver"


def cache_folder(prefix: str, sources: Iterable[Path]) -> Path:
    """A folder for one state of these sources."""
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.name.encode() + source.read_bytes())
    return cache_root() / f"{prefix}-{digest.hexdigest()[:12]}"


def tool(name: str) -> str:
    """Path of a program.

    Raises:
        PeerUnavailableError: it is not installed.
    """
    path = shutil.which(name)
    if path is None:
        raise PeerUnavailableError(f"no `{name}` on PATH")
    return path


def into(folder: Path, what: str, command: Sequence[str]) -> Path:
    """Run a command that fills the folder `{}`, and put that in place as `folder`.

    Raises:
        PeerUnavailableError: the command failed or did not end; nothing is left of it.
    """
    if folder.exists():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    partial.mkdir(parents=True, exist_ok=True)
    words = [word.replace("{}", str(partial)) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise PeerUnavailableError(f"{what} failed: " + " | ".join(lines[:2]))
        publish(partial, folder)
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailableError(f"{what}: no end in {FETCH_TIMEOUT_S} s") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def publish(partial: Path, folder: Path) -> None:
    """Put a finished folder in place; one that another process finished first is as good."""
    try:
        partial.rename(folder)
    except OSError:
        shutil.rmtree(partial)


def jars_of(pom: Path, folder: Path, *properties: str) -> Path:
    """Folder with the jars that a pom names and what they need, fetched at the first call."""
    options = ["-DincludeScope=runtime", "-DoutputDirectory={}", *properties]
    command = [tool("mvn"), "-q", "-B", "-f", str(pom), COPY_JARS, *options]
    return into(folder, f"fetching the jars of {pom.parent.name}/{pom.name}", command)


def compiled(sources: Sequence[Path], class_path: str, folder: Path, *options: str) -> Path:
    """Folder with the classes of Java sources, compiled at the first call."""
    command = [tool("javac"), *options, "-d", "{}", "-cp", class_path, *map(str, sources)]
    return into(folder, f"compiling {sources[0].name}", command)
