"""Users and roles in two files, as PropertiesLoginModule has them.

    artemis-users.properties     name = password, or name = ENC(iterations:salt:hash)
    artemis-roles.properties     role = name,name

A change of either file is seen at the next login (Artemis's `reload=true`). Changes by
`add`, `reset` and `remove` go through a new file that takes the old one's place, synced, so that a
crash leaves one of the two whole.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker.security.passwords import hash_password, verify_password
from broker.security.properties_file import parse_properties, with_property, without_property

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["ROLES_FILE", "USERS_FILE", "User", "UserError", "Users"]

USERS_FILE: Final = "artemis-users.properties"
ROLES_FILE: Final = "artemis-roles.properties"
# Passwords are in it: only its owner may read it.
FILE_MODE: Final = 0o600


class UserError(ValueError):
    """A user that is there already, or is not; a name that cannot be one.

    Attributes:
        text: with Artemis's number of the message, where it has one.
    """

    def __init__(self, message: str, text: str | None = None) -> None:
        super().__init__(message)
        self.text = message if text is None else text


@dataclass(frozen=True, slots=True)
class User:
    """A user without his password."""

    name: str
    roles: frozenset[str]


@dataclass(slots=True)
class Users:
    """The users of an instance, read again when their files change.

    Attributes:
        users_file: names and passwords.
        roles_file: roles and names.
    """

    users_file: Path
    roles_file: Path
    _stamp: tuple[tuple[int, int, int], ...] = ()
    _passwords: Mapping[str, str] = field(default_factory=dict)
    _roles: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of_instance(cls, etc: Path) -> Users:
        """The files of an instance's etc/."""
        return cls(etc / USERS_FILE, etc / ROLES_FILE)

    def authenticate(self, name: str, password: str) -> frozenset[str] | None:
        """The roles of a user with this password; None if it is wrong or there is no such user.

        Raises:
            OSError: a file cannot be read.
        """
        self._refresh()
        if not verify_password(self._passwords.get(name), password):
            return None
        return self._roles.get(name, frozenset())

    def list(self) -> list[User]:
        """Every user by name; OSError where a file cannot be read."""
        self._refresh()
        return [User(name, self._roles.get(name, frozenset())) for name in sorted(self._passwords)]

    def add(
        self, name: str, password: str, roles: Iterable[str], *, plaintext: bool = False
    ) -> None:
        """Add a user.

        Args:
            name: not empty, no comma: names are listed with commas between.
            password: in the clear; kept as a salted hash.
            roles: that he has.
            plaintext: keep it in the clear.

        Raises:
            UserError: there is one of that name.
            OSError: a file cannot be read or written.
        """
        roles = [*roles]
        for given in (name, *roles):
            if not given.strip() or "," in given:
                raise UserError(f"{given!r} cannot be a name: it is empty or has a comma")
        kept = _kept(password, plaintext)
        with self._alone():
            if name in self._passwords:
                raise UserError(
                    f"user {name!r} is there already", f"AMQ229223: User {name} already exists"
                )
            # Roles first: one without a user means nothing, a user without roles may log in.
            self._set_roles(name, roles)
            self._write(self.users_file, with_property(_text(self.users_file), name, kept))

    def reset(
        self,
        name: str,
        *,
        password: str | None = None,
        roles: Iterable[str] | None = None,
        plaintext: bool = False,
    ) -> None:
        """Change a user's password, roles, or both; UserError if there is no such user."""
        kept = None if password is None else _kept(password, plaintext)
        with self._alone():
            self._require(name)
            if roles is not None:
                self._set_roles(name, [*roles])
            if kept is not None:
                self._write(self.users_file, with_property(_text(self.users_file), name, kept))

    def remove(self, name: str) -> None:
        """Remove a user and his roles; UserError if there is no such user."""
        with self._alone():
            self._require(name)
            self._write(self.users_file, without_property(_text(self.users_file), name))
            self._set_roles(name, [])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Read and write while no other process does: a broker and a command may change them."""
        folder = os.open(self.users_file.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            # What another process has just written may have the same size and time.
            self._stamp = ()
            self._refresh()
            yield
        finally:
            os.close(folder)

    def _require(self, name: str) -> None:
        if name not in self._passwords:
            raise UserError(
                f"user {name!r} does not exist", f"AMQ229224: User {name} does not exist"
            )

    def _set_roles(self, name: str, roles: Iterable[str]) -> None:
        text = _text(self.roles_file)
        wanted = set(roles)
        members = {role: _names(names) for role, names in parse_properties(text).items()}
        for role in sorted(members.keys() | wanted):
            names = [one for one in members.get(role, []) if one != name]
            if role in wanted:
                names.append(name)
            if names == members.get(role):
                continue
            if names:
                text = with_property(text, role, ",".join(names))
            else:
                text = without_property(text, role)
        self._write(self.roles_file, text)

    def _write(self, path: Path, text: str) -> None:
        write_private(path, text)
        self._stamp = ()

    def _refresh(self) -> None:
        stamp = tuple(
            (status.st_mtime_ns, status.st_size, status.st_ino)
            for status in (os.stat(self.users_file), os.stat(self.roles_file))
        )
        if stamp == self._stamp:
            return
        self._passwords = parse_properties(_text(self.users_file))
        roles: dict[str, set[str]] = {}
        for role, names in parse_properties(_text(self.roles_file)).items():
            for name in _names(names):
                roles.setdefault(name, set()).add(role)
        self._roles = {name: frozenset(found) for name, found in roles.items()}
        self._stamp = stamp


def write_private(path: Path, text: str) -> None:
    """Put a text in a file's place: readable by its owner, whole or not at all, synced.

    Of a symbolic link the file that it leads to is replaced.
    """
    path = path.resolve()
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _kept(password: str, plaintext: bool) -> str:
    return password if plaintext else f"ENC({hash_password(password)})"
