"""etc/login.config: the files with users and roles, and the user for anonymous clients.

Artemis's JAAS file. Of it the options of PropertiesLoginModule, GuestLoginModule and
TextFileCertificateLoginModule are read; other modules are Java's, and a file that has them and no
users of its own is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.security.certificate_users import (
    CERTIFICATE_ROLES_FILE,
    CERTIFICATE_USERS_FILE,
    CertificateUsers,
)
from broker.security.manager import Subject
from broker.security.users import ROLES_FILE, USERS_FILE, Users

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LOGIN_CONFIG", "Login", "read_login"]

LOGIN_CONFIG: Final = "login.config"
_MODULES: Final = ("PropertiesLoginModule", "GuestLoginModule", "TextFileCertificateLoginModule")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPTION: Final = re.compile(r'org\.apache\.activemq\.jaas\.([\w.]+)\s*=\s*"?([^"\s;]+)"?')


@dataclass(frozen=True, slots=True)
class Login:
    """Who may log in.

    Attributes:
        users: of the properties files.
        guest: who somebody without a name is; None refuses him.
        certificates: who is known by a certificate; None for none.
    """

    users: Users
    guest: Subject | None
    certificates: CertificateUsers | None = None


def read_login(etc: Path) -> Login:
    """What an instance's login.config says; without one, the two files of users and no guest.

    Raises:
        ValueError: it has no module that this broker knows.
        OSError: it cannot be read.
    """
    path = etc / LOGIN_CONFIG
    if not path.exists():
        return Login(Users.of_instance(etc), None)
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    if not any(module in text for module in _MODULES):
        raise ValueError(f"{path}: none of {', '.join(_MODULES)} is in it")
    options = dict(_OPTION.findall(text))
    users = Users(
        etc / options.get("properties.user", USERS_FILE),
        etc / options.get("properties.role", ROLES_FILE),
    )
    guest = None
    if "GuestLoginModule" in text:
        # Artemis's defaults of the module.
        name, role = options.get("guest.user", "guest"), options.get("guest.role", "guests")
        guest = Subject(name, frozenset({role}))
    certificates = None
    if "TextFileCertificateLoginModule" in text:
        certificates = CertificateUsers(
            etc / options.get("textfiledn.user", CERTIFICATE_USERS_FILE),
            etc / options.get("textfiledn.role", CERTIFICATE_ROLES_FILE),
        )
    return Login(users, guest, certificates)
