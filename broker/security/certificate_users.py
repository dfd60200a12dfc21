"""Users by the certificates that they show, as TextFileCertificateLoginModule has them.

    cert-users.properties     name = CN=me, O=mine, C=US     or name = /regular expression/
    cert-roles.properties     role = name,name

TLS has verified a certificate before its name is looked up here. A change of either file is seen at
the next login.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker.security.properties_file import parse_properties

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CERTIFICATE_ROLES_FILE", "CERTIFICATE_USERS_FILE", "CertificateUsers"]

CERTIFICATE_USERS_FILE: Final = "cert-users.properties"
CERTIFICATE_ROLES_FILE: Final = "cert-roles.properties"
# Between the parts of a distinguished name; not within quotes.
_COMMA: Final = re.compile(r""",(?=(?:[^"]*"[^"]*")*[^"]*$)""")


def _normal(principal: str) -> str:
    """Give a distinguished name without spaces around its parts.

    >>> _normal("CN=me,O=mine") == _normal("cn = me , O=mine")
    True
    """
    parts = []
    for part in _COMMA.split(principal):
        name, equals, value = part.partition("=")
        parts.append(f"{name.strip().upper()}{equals}{value.strip()}")
    return ",".join(parts)


@dataclass(slots=True)
class CertificateUsers:
    """See the module's text.

    Attributes:
        users_file: names and whose certificates.
        roles_file: roles and names.
    """

    users_file: Path
    roles_file: Path
    _stamp: tuple[tuple[int, int, int], ...] = ()
    _names: dict[str, str] = field(default_factory=dict)
    _patterns: list[tuple[re.Pattern[str], str]] = field(default_factory=list)
    _roles: dict[str, frozenset[str]] = field(default_factory=dict)

    def authenticate(self, principal: str) -> tuple[str, frozenset[str]] | None:
        """The user that a certificate is for, with his roles; None if no user has it.

        Args:
            principal: distinguished name of its subject, as Java writes it.

        Raises:
            OSError: a file cannot be read.
            ValueError: it has a regular expression that is not one.
        """
        self._refresh()
        name = self._names.get(_normal(principal))
        if name is None:
            name = next((one for by, one in self._patterns if by.fullmatch(principal)), None)
        return None if name is None else (name, self._roles.get(name, frozenset()))

    def _refresh(self) -> None:
        stamp = tuple(
            (status.st_mtime_ns, status.st_size, status.st_ino)
            for status in (os.stat(self.users_file), os.stat(self.roles_file))
        )
        if stamp == self._stamp:
            return
        self._names.clear()
        self._patterns.clear()
        for name, by in parse_properties(self.users_file.read_text(encoding="utf-8")).items():
            if len(by) > 1 and by[0] == by[-1] == "/":
                try:
                    self._patterns.append((re.compile(by[1:-1]), name))
                except re.error as error:
                    raise ValueError(f"{self.users_file}: {name}: {error}") from error
            else:
                self._names[_normal(by)] = name
        roles: dict[str, set[str]] = {}
        for role, names in parse_properties(self.roles_file.read_text(encoding="utf-8")).items():
            for name in names.split(","):
                roles.setdefault(name.strip(), set()).add(role)
        self._roles = {name: frozenset(found) for name, found in roles.items()}
        self._stamp = stamp
