"""security-settings: who may do what, by match."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.config.xml_fields import Context, check_names, custom
from broker.security.permission import DEPRECATED_PERMISSIONS, Permission, RoleTable
from broker.settings.value_types import TEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.document import Element

log = logging.getLogger("broker.config")

__all__ = ["PermissionsConfig", "SecuritySettings"]

_NAMES = {permission.value: permission for permission in Permission} | DEPRECATED_PERMISSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """The permissions of a file.

    Attributes:
        permissions: roles by permission, by match.
        role_mappings: roles of this broker and those from elsewhere that stand for them.
    """

    permissions: tuple[tuple[str, RoleTable], ...] = ()
    role_mappings: Mapping[str, frozenset[str]] = field(default_factory=dict)


def _security_settings(parent: Element, context: Context) -> SecuritySettings:
    check_names(
        parent, ("security-setting", "security-setting-plugin", "role-mapping"), (), context
    )
    for child in parent.children:
        if child.name == "security-setting-plugin":
            context.unknown(
                child,
                "<security-setting-plugin> loads a Java class, which this broker cannot; "
                "write its permissions as <security-setting>",
            )
    mappings: dict[str, frozenset[str]] = {}
    for child in parent.children:
        if child.name == "role-mapping":
            check_names(child, (), ("from", "to"), context)
            outside = child.attributes.get("from", "").strip()
            for role in TEXTS.parse(child.attributes.get("to", "")):
                mappings[role] = mappings.get(role, frozenset()) | {outside}
    found: dict[str, RoleTable] = {}
    for child in parent.children:
        if child.name == "security-setting":
            match = child.attributes.get("match")
            if not match:
                raise child.wrong("<security-setting> needs a match")
            if match in found:
                log.warning(
                    "%s", child.wrong(f"security setting {match!r} stands twice; the last counts")
                )
            found[match] = _table(child, mappings, context)
    return SecuritySettings(permissions=tuple(found.items()), role_mappings=mappings)


def _table(parent: Element, mappings: Mapping[str, frozenset[str]], context: Context) -> RoleTable:
    check_names(parent, ("permission",), ("match",), context)
    roles: dict[Permission, frozenset[str]] = {}
    for child in parent.children:
        if child.name != "permission":
            continue
        check_names(child, (), ("type", "roles"), context)
        name = child.attributes.get("type", "")
        permission = _NAMES.get(name)
        if permission is None:
            raise child.wrong(f"no permission is called {name!r}; one of {', '.join(_NAMES)}")
        named = frozenset(TEXTS.parse(child.attributes.get("roles", "")))
        mapped = frozenset().union(*(mappings.get(role, frozenset()) for role in named))
        roles[permission] = roles.get(permission, frozenset()) | named | mapped
    return RoleTable(roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsConfig:
    """The one section."""

    security_settings: SecuritySettings = custom(
        "security-settings", _security_settings, SecuritySettings()
    )
    """Which roles may do what, by match; the closest match counts alone."""
