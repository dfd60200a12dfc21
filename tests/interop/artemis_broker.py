"""Artemis's broker, run in a process of its own on a port of ours.

Environment:
    QUIVER_ARTEMIS_BROKER: folder of Artemis's unpacked distribution; none is fetched then.
    XDG_CACHE_HOME: where the cache folder `quiver/` lies; `~/.cache` when unset.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop.fetched import (
    PeerUnavailableError,
    cache_folder,
    cache_root,
    compiled,
    given,
    jars_of,
    tool,
)
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Sequence

# The newest distribution that Maven Central has as a zip.
VERSION = "2.44.0"
# The newest server there, of jars alone: its command line is the distribution's.
NEWEST = "2.56.0"
VERSIONS = (VERSION, NEWEST)
SERVER = Path(__file__).parent / "server"
URL = (
    "https://repo.maven.apache.org/maven2/org/apache/activemq/apache-artemis/"
    f"{VERSION}/apache-artemis-{VERSION}-bin.zip"
)
FETCH_TIMEOUT_S = 300
# A loaded machine starts a JVM slowly.
START_TIMEOUT_S = 180


def distribution() -> Path:
    """Folder of Artemis's distribution, fetched from Maven Central at the first call.

    Raises:
        PeerUnavailableError: no Java, or Maven Central cannot be reached.
    """
    tool("java")
    unpacked = given("BROKER")
    if unpacked:
        return Path(unpacked)
    folder = cache_root() / f"apache-artemis-{VERSION}"
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}")
        partial.mkdir(parents=True)
        try:
            _fetch(partial)
            (partial / f"apache-artemis-{VERSION}").rename(folder)
        except (OSError, urllib.error.URLError, zipfile.BadZipFile) as error:
            if not folder.exists():
                raise PeerUnavailableError(f"fetching {URL} failed: {error}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _fetch(folder: Path) -> None:
    archive = folder / "bin.zip"
    with (
        urllib.request.urlopen(URL, timeout=FETCH_TIMEOUT_S) as answer,
        archive.open("wb") as target,
    ):
        shutil.copyfileobj(answer, target)
    with zipfile.ZipFile(archive) as found:
        found.extractall(folder)
    for script in folder.glob("*/bin/*"):
        script.chmod(0o755)


def newest_class_path() -> str:
    """Jars of the newest server, and what starts it."""
    folder = cache_folder(f"server-{NEWEST}", SERVER.glob("*"))
    class_path = f"{jars_of(SERVER / 'pom.xml', folder / 'jars')}/*"
    return f"{compiled([SERVER / 'RunBroker.java'], class_path, folder / 'classes')}:{class_path}"


class ArtemisBroker:
    """An instance in a folder; started, stopped and killed as a test likes.

    Args:
        folder: where the instance and its log are put.
        options: more of `artemis create`.
        memory_mb: of its JVM.
        version: one of VERSIONS. The newest speaks the Core protocol only.

    Attributes:
        port: where it listens, on 127.0.0.1.
        home: the distribution.
    """

    USER = "admin"
    PASSWORD = "secret"

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = ("--nio", "--no-autotune"),
        memory_mb: int = 512,
        version: str = VERSION,
    ) -> None:
        self.home = distribution()
        self._options = tuple(options)
        self._memory_mb = memory_mb
        self._class_path = newest_class_path() if version == NEWEST else None
        self.port = free_port()
        self._folder = folder.resolve() / "broker"
        self._log = folder.resolve() / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._create()

    @property
    def uri(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def _create(self) -> None:
        command = [
            *(str(self.home / "bin" / "artemis"), "create", str(self._folder), "--silent"),
            *("--user", self.USER, "--password", self.PASSWORD, "--require-login"),
            *("--host", "127.0.0.1", "--http-host", "127.0.0.1", "--no-web"),
            *(*self._options, "--no-amqp-acceptor", "--no-mqtt-acceptor"),
            *("--no-hornetq-acceptor", "--no-stomp-acceptor"),
            *("--default-port", str(self.port), "--name", "artemis"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S)
        if done.returncode:
            raise PeerUnavailableError(f"artemis create: {done.stdout}{done.stderr}")
        profile = self._folder / "etc" / "artemis.profile"
        text = re.sub(r"-Xms\S+ -Xmx\S+", f"-Xms64M -Xmx{self._memory_mb}M", profile.read_text())
        profile.write_text(text.replace("-XX:AutoBoxCacheMax=20000 ", ""))
        self.change_configuration(
            # Whole seconds of a lost client are too long for a test.
            ("<critical-analyzer>true", "<critical-analyzer>false"),
            ("<max-disk-usage>90", "<max-disk-usage>100"),
        )

    @property
    def configuration(self) -> Path:
        """Its broker.xml, to be changed before a start."""
        return self._folder / "etc" / "broker.xml"

    def change_configuration(self, *changes: tuple[str, str]) -> None:
        """Replace text of broker.xml, before a start."""
        path = self.configuration
        text = path.read_text()
        for old, new in changes:
            assert old in text, f"broker.xml has no {old!r}"
            text = text.replace(old, new)
        path.write_text(text)

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._begin()
        assert self._process is not None, "it was just started"
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise PeerUnavailableError(f"the broker ended: {self.log()[-500:]}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        raise PeerUnavailableError(f"the broker did not start: {self.log()[-500:]}")

    def _begin(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdout=log,
                stderr=log,
                cwd=self._folder,
                # The script starts a JVM of its own: both end with their group.
                start_new_session=True,
            )

    def _command(self) -> list[str]:
        if self._class_path is None:
            return [str(self._folder / "bin" / "artemis"), "run"]
        etc = self._folder / "etc"
        return [
            *("java", "-Xms64M", f"-Xmx{self._memory_mb}M"),
            f"-Dartemis.instance={self._folder}",
            f"-Ddata.dir={self._folder / 'data'}",
            f"-Djava.security.auth.login.config={etc / 'login.config'}",
            *("-cp", f"{self._class_path}:{self._folder / 'lib'}/*", "RunBroker"),
            str(self._folder),
        ]

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def stop(self) -> None:
        """Let it end in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            os.killpg(process.pid, how)
            process.wait(timeout=START_TIMEOUT_S)
