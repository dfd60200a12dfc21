"""Real database servers for tests: private, on random ports, killed and paused at will.

A server lives in a folder of its own below the system's temporary folder. It keeps its defaults of
durability, and listens on the loopback address only. tests/conftest.py starts one server of each
kind per test session, and gives every test a database of its own in it.

    server = PostgreSQL()        # raises ServerMissingError, which names the Debian package
    server.start()
    database = server.new_database()
    server.kill9()               # every process of the server at once
    server.start()               # same port, same data
    server.pause(); server.resume()
    server.remove()

PostgreSQL refuses to run as root: then each server runs as the user that its package made.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# Below the ports that the kernel hands out by itself: no process takes ours between stop and start.
PORTS = range(20_000, 32_000)
# Of the kernel: hypothesis gives all processes of a run the same seed for Python's own.
_CHANCE = random.SystemRandom()
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
FOLDER_PREFIX = "quiver-server-"
JAVA_FOLDER = Path("/usr/share/java")

# A server must go when the tests die, and Linux tells it so when the *thread* that started it ends.
# Hence one thread for all of them, which lives as long as the process.
_starter = ThreadPoolExecutor(1, thread_name_prefix="servers")


def _environment() -> dict[str, str]:
    """Ours, without what `make sanitize` loads into Python: a server stands still under it."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


class ServerMissingError(Exception):
    """The server is not installed; the message names the package."""


@dataclass(frozen=True)
class Database:
    """An empty database of one test.

    Attributes:
        url: as SQLAlchemy takes it.
        jdbc_url: as the vendor's JDBC driver takes it; None where Artemis has none.
        name: the database's name within its server, or the file of an SQLite database.
        server: what runs it; None for SQLite, which is a library.
        host: address of the server.
        port: its TCP port; 0 without a server.
        user: who logs in.
        password: with this password.
    """

    url: str
    jdbc_url: str | None
    name: str
    server: Server | None = None
    host: str = "127.0.0.1"
    port: int = 0
    user: str = ""
    password: str = ""


def free_port() -> int:
    """A TCP port of the loopback address that no process listens on.

    Raises:
        RuntimeError: none was found in a hundred tries.
    """
    for _ in range(100):
        port = _CHANCE.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free TCP port")


def descendants(pid: int) -> list[int]:
    """Process ids of all living children of a process, and of theirs."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # It ended meanwhile.
                # The name, in parentheses, may hold anything; the parent's id is the second after.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    queue = [pid]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or is left only for its parent to ask about."""
    return _state_of(Path("/proc") / str(pid)) == "Z"


def stands_still(pid: int) -> bool:
    """Whether each thread of a process has come to the stop that a signal has asked for."""
    try:
        return all(_state_of(task) in "TZ" for task in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return has_ended(pid)


def _state_of(task: Path) -> str:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def remove_abandoned_folders() -> None:
    """Delete the servers' folders of test processes that were killed; their servers ended too."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        if has_ended(int(folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0])):
            shutil.rmtree(folder, ignore_errors=True)  # Another test process may be at it too.


class Server:
    """One server process and its folder.

    Attributes:
        kind: its name in the tests' parameters.
        package: the Debian package that brings it.
        port: TCP port on 127.0.0.1, the same for the server's whole life.
        folder: data, socket and log.
    """

    kind = ""
    package = ""
    account = ""

    def __init__(self) -> None:
        self._check_installed()
        self.port = free_port()
        remove_abandoned_folders()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-{self.kind}-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._paused = False
        self._is_set_up = False
        self._databases = 0
        if os.geteuid() == 0 and self.account:
            owner = pwd.getpwnam(self.account)
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)

    # What each kind of server says about itself.

    def _check_installed(self) -> None:
        raise NotImplementedError

    def _set_up(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _is_ready(self) -> bool:
        raise NotImplementedError

    def _ask_to_stop(self, process: subprocess.Popen[bytes]) -> None:
        raise NotImplementedError

    def new_database(self) -> Database:
        """Create an empty database."""
        raise NotImplementedError

    def drop_database(self, database: Database) -> None:
        """Drop a database, even if clients are still connected to it."""
        raise NotImplementedError

    # What a test may do with any of them.

    @property
    def is_running(self) -> bool:
        """Whether its main process lives, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of its main process."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server wrote to its standard output and standard error."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            RuntimeError: it ended, or did not answer in START_TIMEOUT_S seconds.
        """
        assert not self.is_running
        if not self._is_set_up:
            self._set_up()
            self._is_set_up = True
        self._paused = False
        self._process = self._spawn(self._command())
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if not self.is_running or time.monotonic() > deadline:
                raise RuntimeError(f"{self.kind} did not start:\n{self.log[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it in good order; what was committed is in its files."""
        process = self._process
        assert process is not None
        if self._paused:
            self.resume()
        self._ask_to_stop(process)
        process.wait(STOP_TIMEOUT_S)

    def kill9(self) -> None:
        """End every process of the server at once, as a crash does."""
        assert self._process is not None
        # Stopped first, so that none sees another one die, and none is born meanwhile.
        pids = self._signal_all(signal.SIGSTOP)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(STOP_TIMEOUT_S)
        while not all(map(has_ended, pids)):
            time.sleep(0.005)
        self._paused = False

    def pause(self) -> None:
        """Stop every process of the server where it stands, connections open."""
        pids = self._signal_all(signal.SIGSTOP)
        self._paused = True
        # A thread goes on until the kernel comes to it, and may answer once more.
        while not all(map(stands_still, pids)):
            time.sleep(0.001)

    def resume(self) -> None:
        """Continue after `pause()`."""
        self._signal_all(signal.SIGCONT)
        self._paused = False

    def ensure_running(self) -> None:
        """Bring it back after whatever a test did to it."""
        if not self.is_running:
            self.start()
        elif self._paused:
            self.resume()

    def remove(self) -> None:
        """End it and delete its folder."""
        if self.is_running:
            self.kill9()
        shutil.rmtree(self.folder)

    def _signal_all(self, number: signal.Signals) -> set[int]:
        """Signal the main process, then its descendants until no new one turns up; all ids."""
        assert self._process is not None
        done: set[int] = set()
        new = {self._process.pid}
        while new:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            done |= new
            new = set(descendants(self._process.pid)) - done
        return done

    def _as_account(self, *, ends_with_us: bool = False) -> list[str]:
        """The words that make a command run as the server's user."""
        words = ["setpriv"]
        if ends_with_us:
            # setpriv sets it after the change of user, at which the kernel forgets it.
            words.append("--pdeathsig=KILL")
        if os.geteuid() == 0 and self.account:
            owner = pwd.getpwnam(self.account)
            words += [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        return words

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return _starter.submit(
                subprocess.Popen,
                [*self._as_account(ends_with_us=True), *command],
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C ends the tests, which then end the server.
            ).result()

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            [*self._as_account(), *command],
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


class PostgreSQL(Server):
    """PostgreSQL as its initdb leaves it, but for the number of connections."""

    kind = "postgresql"
    package = "postgresql"
    account = "postgres"

    def _check_installed(self) -> None:
        places = sorted(
            Path("/usr/lib/postgresql").glob("*/bin/initdb"),
            key=lambda path: int(path.parent.parent.name),
        )
        found = str(places[-1]) if places else shutil.which("initdb")
        if found is None:
            raise ServerMissingError("no PostgreSQL server here: install Debian's `postgresql`")
        self._binaries = Path(found).parent

    def _set_up(self) -> None:
        self._run(
            [
                str(self._binaries / "initdb"),
                *("--auth=trust", "--username=quiver", "--encoding=UTF8", "--locale=C.UTF-8"),
                f"--pgdata={self.folder}/data",
            ]
        )
        # The user `guarded` needs a password; all others are trusted.
        rules = self.folder / "data/pg_hba.conf"
        rules.write_text("host all guarded 127.0.0.1/32 scram-sha-256\n" + rules.read_text())

    def _command(self) -> list[str]:
        # A server that was killed leaves its pid file, and refuses to start if another process
        # of this user has that id now.
        (self.folder / "data/postmaster.pid").unlink(missing_ok=True)
        return [
            str(self._binaries / "postgres"),
            *("-D", f"{self.folder}/data", "-p", str(self.port), "-k", str(self.folder)),
            *("-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"),
        ]

    def _is_ready(self) -> bool:
        import psycopg

        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _ask_to_stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGINT)  # Fast: sessions are ended, then a checkpoint.

    def _connect(self):
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="quiver",
            dbname="postgres",
            autocommit=True,
            connect_timeout=10,
        )

    def new_database(self, *, encoding: str = "UTF8") -> Database:
        self._databases += 1
        name = f"test{self._databases}"
        with self._connect() as connection:
            connection.execute(
                f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"
                if encoding != "UTF8"
                else f"CREATE DATABASE {name}"
            )
        return Database(
            url=f"postgresql+psycopg://quiver@127.0.0.1:{self.port}/{name}",
            jdbc_url=f"jdbc:postgresql://127.0.0.1:{self.port}/{name}?user=quiver",
            name=name,
            server=self,
            port=self.port,
            user="quiver",
        )

    def drop_database(self, database: Database) -> None:
        with self._connect() as connection:
            connection.execute(f"DROP DATABASE {database.name} WITH (FORCE)")


class MariaDB(Server):
    """MariaDB with its own defaults, none of the machine's."""

    kind = "mariadb"
    package = "mariadb-server"
    account = "mysql"

    def _check_installed(self) -> None:
        search = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"))
        self._server = shutil.which("mariadbd", path=search)
        self._install = shutil.which("mariadb-install-db", path=search)
        if self._server is None or self._install is None:
            raise ServerMissingError("no MariaDB server here: install Debian's `mariadb-server`")

    def _set_up(self) -> None:
        assert self._install is not None
        self._run(
            [
                self._install,
                *("--no-defaults", f"--datadir={self.folder}/data", "--skip-test-db"),
                *(f"--tmpdir={self.folder}", "--auth-root-authentication-method=normal"),
            ]
        )

    def _command(self) -> list[str]:
        assert self._server is not None
        return [
            self._server,
            *("--no-defaults", f"--datadir={self.folder}/data", f"--socket={self.folder}/socket"),
            *("--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve"),
            *(f"--pid-file={self.folder}/pid", "--max-connections=200"),
            # At its start a server removes every temporary table there, other servers' too.
            f"--tmpdir={self.folder}",
        ]

    def _is_ready(self) -> bool:
        import pymysql

        try:
            self._connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def _ask_to_stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)

    def _connect(self):
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", autocommit=True, connect_timeout=10
        )

    def new_database(self) -> Database:
        self._databases += 1
        name = f"test{self._databases}"
        with contextlib.closing(self._connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return Database(
            url=f"mariadb+pymysql://root@127.0.0.1:{self.port}/{name}",
            jdbc_url=f"jdbc:mariadb://127.0.0.1:{self.port}/{name}?user=root",
            name=name,
            server=self,
            port=self.port,
            user="root",
        )

    def drop_database(self, database: Database) -> None:
        with contextlib.closing(self._connect()) as connection, connection.cursor() as cursor:
            # A session that holds a lock on a table would keep the drop waiting.
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE db = %s", (database.name,)
            )
            for (session,) in cursor.fetchall():
                with contextlib.suppress(Exception):  # It may have gone meanwhile.
                    cursor.execute(f"KILL {session}")
            cursor.execute(f"DROP DATABASE {database.name}")


class Derby(Server):
    """Apache Derby's network server in a JVM of its own."""

    kind = "derby"
    package = "libderby-java and libderbyclient-java"

    def _check_installed(self) -> None:
        self._java = shutil.which("java")
        if self._java is None:
            raise ServerMissingError("no Java here: install Debian's `default-jre-headless`")
        for name in ("derby", "derbynet", "derbyclient"):
            if not (JAVA_FOLDER / f"{name}.jar").exists():
                raise ServerMissingError(f"no Derby server here: install Debian's {self.package}")

    @staticmethod
    def client_jar() -> Path:
        """The JDBC driver for the network server."""
        return JAVA_FOLDER / "derbyclient.jar"

    def _java_command(self, action: str, *options: str) -> list[str]:
        assert self._java is not None
        jars = ":".join(str(JAVA_FOLDER / f"{n}.jar") for n in ("derby", "derbynet"))
        return [
            self._java,
            *(f"-Dderby.system.home={self.folder}", "-Xmx512m", "-cp", jars),
            *("org.apache.derby.drda.NetworkServerControl", action, *options),
            *("-h", "127.0.0.1", "-p", str(self.port)),
        ]

    def _set_up(self) -> None:
        """Nothing: a client that connects with `create=true` creates its database."""

    def _command(self) -> list[str]:
        return self._java_command("start", "-noSecurityManager")

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _ask_to_stop(self, process: subprocess.Popen[bytes]) -> None:
        self._run(self._java_command("shutdown"))

    def new_database(self) -> Database:
        self._databases += 1
        name = f"test{self._databases}"
        url = f"jdbc:derby://127.0.0.1:{self.port}/{name};create=true"
        return Database(url=url, jdbc_url=url, name=name, server=self, port=self.port)

    def drop_database(self, database: Database) -> None:
        """Nothing: Derby has no statement for it, and the folder goes with the server."""


SERVERS = {server.kind: server for server in (PostgreSQL, MariaDB, Derby)}


def new_sqlite_database(folder: Path) -> Database:
    """An SQLite database that is not there yet, in a file below `folder`."""
    return Database(url=f"sqlite:///{folder}/quiver.db", jdbc_url=None, name=f"{folder}/quiver.db")


def skip_without_jvm() -> None:
    """Skip the test where JPype, or a Java that it can load, is missing."""
    import pytest

    jpype = pytest.importorskip("jpype", reason="no JPype here: quiver-mq[derby] brings it")
    try:
        jpype.getDefaultJVMPath()
    except jpype.JVMNotFoundException:
        pytest.skip("no Java here: install Debian's `default-jre-headless`")


def new_embedded_derby(folder: Path) -> Database:
    """A Derby database in this process that is not there yet, below `folder`.

    The test is skipped where JPype, Java or Derby's jars are missing.
    """
    import pytest

    skip_without_jvm()
    if not (JAVA_FOLDER / "derby.jar").exists():
        pytest.skip(f"no Derby here: install Debian's {Derby.package}")
    url = f"jdbc:derby:{folder}/quiver;create=true"
    return Database(url=url, jdbc_url=url, name="quiver")
