"""A bridge written down: a TOML file as values.

    name = "orders"                            the file's name without .toml, if absent
    quality-of-service = "ONCE_AND_ONLY_ONCE"  and all other parameters, with `-` for `_`

    [source]
    provider = "core"                          core (default), jms, stomp, or module:callable
    url = "tcp://a:61616"                      vm:// is the broker that runs the bridge
    queue = "orders"                           or topic = "..."
    user = "u"
    password = "ENC(...)"

    [target]
    ...

What a side has beside these is for its provider (`provider_types.py`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, cast

from broker.bridges.jms.errors import BridgeConfigError
from broker.bridges.jms.options import ExactlyOnce, JMSBridgeOptions, QualityOfService
from broker.bridges.jms.providers import Destination
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import Enum
    from pathlib import Path

    from broker.bridges.jms.options import BridgeSettings

__all__ = ["BridgeDefinition", "SideDefinition", "read_definition"]

_ENUMS: Final[dict[str, type[Enum]]] = {
    "quality_of_service": QualityOfService,
    "exactly_once": ExactlyOnce,
}
# Who the bridge is stands at each side.
_OF_SIDES: Final = ("source_user_name", "source_password", "target_user_name", "target_password")
_KINDS: Final = {"str": str, "int": int, "bool": bool, "str | None": str, "int | None": int}


@dataclass(frozen=True, slots=True, kw_only=True)
class SideDefinition:
    """Source or target.

    Attributes:
        role: "source" or "target".
        provider: name of a provider type, or `module:callable`.
        destination: queue or topic.
        user_name: None is anonymous.
        password: of the user, perhaps masked.
        settings: for the provider, by the names of the file.
    """

    role: str
    provider: str
    destination: Destination
    user_name: str | None
    password: str | None
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeDefinition:
    """A bridge.

    Attributes:
        path: of its file.
        source: where messages come from.
        target: where they go to.
        parameters: of the bridge.
        transaction_log: folder of its transaction manager's decisions; None has none.
        object_name: its name in management; None is its own name.
    """

    path: Path
    source: SideDefinition
    target: SideDefinition
    parameters: BridgeSettings
    transaction_log: Path | None
    object_name: str | None

    @property
    def name(self) -> str:
        """Of the bridge."""
        return self.parameters["name"]


def read_definition(path: Path) -> BridgeDefinition:
    """Read a bridge's file. Relative paths in it are below the file's folder.

    Args:
        path: of the file.

    Raises:
        BridgeConfigError: it cannot be read; a name in it is not known; a value is not valid.
    """
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise BridgeConfigError(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise BridgeConfigError(f"{path}: {error}") from error
    try:
        return _definition(path, found)
    except BridgeConfigError as error:
        raise BridgeConfigError(f"{path}: {error}") from None


def _definition(path: Path, found: dict[str, Any]) -> BridgeDefinition:
    sides = [_side(role, found.pop(role, None)) for role in ("source", "target")]
    log = _taken(found, "transaction-log", str)
    object_name = _taken(found, "object-name", str)
    parameters: dict[str, Any] = {"name": path.stem, **_parameters(found)}
    for side in sides:
        parameters[f"{side.role}_user_name"] = side.user_name
        parameters[f"{side.role}_password"] = side.password
    # Its checks, before anything is started.
    JMSBridgeOptions(**parameters)
    return BridgeDefinition(
        path=path,
        source=sides[0],
        target=sides[1],
        parameters=cast("BridgeSettings", parameters),
        transaction_log=None if log is None else path.parent / log,
        object_name=object_name,
    )


def _parameters(found: dict[str, Any]) -> dict[str, Any]:
    kinds = {
        one.name.replace("_", "-"): (one.name, str(one.type))
        for one in fields(JMSBridgeOptions)
        if one.name not in _OF_SIDES
    }
    known = [*kinds, "transaction-log", "object-name", "source", "target"]
    parameters = {}
    for name, value in found.items():
        if name not in kinds:
            raise BridgeConfigError(f"no parameter {name!r}{_nearest(name, known)}")
        field, kind = kinds[name]
        parameters[field] = _value(name, field, kind, value)
    return parameters


def _value(name: str, field: str, kind: str, value: Any) -> Any:  # noqa: ANN401 - as TOML has it.
    if field in _ENUMS:
        choices = {one.value: one for one in _ENUMS[field]}
        if value not in choices:
            raise BridgeConfigError(f"{name} is {value!r}; it must be {' or '.join(choices)}")
        return choices[value]
    if type(value) is not _KINDS[kind]:
        raise BridgeConfigError(f"{name} is {value!r}; it must be of type {_KINDS[kind].__name__}")
    return value


def _side(role: str, found: object) -> SideDefinition:
    if not isinstance(found, dict):
        raise BridgeConfigError(f"[{role}] is missing")
    settings = dict(found)
    names = {kind: _taken(settings, kind, str) for kind in ("queue", "topic")}
    if sum(name is not None for name in names.values()) != 1:
        raise BridgeConfigError(f"[{role}] needs either a queue or a topic")
    queue, topic = names["queue"], names["topic"]
    return SideDefinition(
        role=role,
        provider=_taken(settings, "provider", str) or "core",
        destination=Destination.queue(queue)
        if queue is not None
        else Destination.topic(topic or ""),
        user_name=_taken(settings, "user", str),
        password=_taken(settings, "password", str),
        settings=settings,
    )


def _taken(settings: dict[str, Any], name: str, kind: type) -> Any:  # noqa: ANN401 - of that type.
    value = settings.pop(name, None)
    if value is not None and type(value) is not kind:
        raise BridgeConfigError(f"{name} is {value!r}; it must be of type {kind.__name__}")
    return value


def _nearest(name: str, known: list[str]) -> str:
    return nearest(name, known) or f"; there are {', '.join(known)}"
