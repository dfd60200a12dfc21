"""Every element and attribute of broker.xml, as rows, from the classes that read the file."""

from __future__ import annotations

import dataclasses
import re
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.config import (
    addressing,
    cluster,
    connection_routers,
    core,
    discovery,
    ha,
    permissions,
    persistence,
)
from broker.config import sections as unread
from broker.config.cluster_connections import ClusterConnection
from broker.config.xml_fields import REQUIRED, Declared, declared
from broker.security.permission import Permission
from broker.settings.settings import SETTINGS, AddressSettings
from broker.settings.value_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    SIZE,
    TEXT,
    ValueType,
)
from docs.site.attribute_docs import attribute_docs
from jdbcstore.options import DURATIONS, DatabaseStoreOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["GROUPS", "Row", "default_text", "rows_of", "type_text", "unit_of"]

ROOT: Final = Path(__file__).resolve().parents[2]
# Heading, and the class of the elements that stand in <core> itself.
GROUPS: Final = (
    ("General", core.GeneralConfig),
    ("Limits", core.LimitsConfig),
    ("Storage", persistence.PersistenceConfig),
    ("Addresses and queues", addressing.AddressingConfig),
    ("Security", core.SecurityConfig),
    ("Permissions", permissions.PermissionsConfig),
    ("Management", core.ManagementConfig),
    ("Watching", core.WatchConfig),
    ("Network, bridges, clusters", cluster.ClusterConfig),
    ("Sections of Artemis that are kept unread", unread.SectionsConfig),
)
# Applied while the broker runs (broker.options.file.Reloadable), with all that stands in them.
RELOADED: Final = (
    *("security-settings", "address-settings", "addresses", "queues", "diverts", "connectors"),
    "bridges",
)
# What a name's last word says of the unit.
_UNITS: Final = {
    "ms": "ms",
    "ns": "ns",
    "s": "s",
    "bytes": "bytes",
    "percent": "%",
    "percentage": "%",
}
_KINDS: Final = {
    BOOLEAN.name: "true or false",
    INT.name: "integer",
    LONG.name: "integer",
    SIZE.name: "bytes; K, M, G: powers of 1024",
    DOUBLE.name: "number",
    TEXT.name: "text",
    "a list of texts": "texts, by commas",
    "a regular expression": "regular expression",
}


class Row(NamedTuple):
    """An element or attribute.

    Attributes:
        path: of elements below <core>, `@` before an attribute.
        type: what its text may be.
        range: which of these; empty for all.
        default: as it is written; empty if there is none.
        unit: of a number.
        is_reloadable: whether a change holds without a restart.
        has_effect: whether anything here reads it.
        meaning: a sentence or two.
    """

    path: str
    type: str = "elements"
    range: str = ""
    default: str = ""
    unit: str = ""
    is_reloadable: bool = False
    has_effect: bool = True
    meaning: str = ""

    @property
    def names(self) -> list[str]:
        """Every name in the path."""
        return re.findall(r"[\w-]+", self.path.replace("@", ""))


@cache
def rows_of(cls: type[Any]) -> list[Row]:
    """Give the rows of a class of GROUPS, and of all that may stand in its elements."""
    rows = [row for item in declared(cls) for row in _rows(cls, item, "")]
    return [row._replace(is_reloadable=row.names[0] in RELOADED) for row in rows]


def _rows(cls: type[Any], item: Declared, above: str) -> Iterator[Row]:
    if item.is_unused:
        text = "Obsolete: neither Artemis nor this broker reads it any more."
        for name in item.elements:
            yield Row(above + name, "any", has_effect=False, meaning=text)
        return
    row = _row(cls, item, above)
    inner = _INSIDE.get((cls, item.field))
    if inner is not None:
        yield row._replace(type="elements")
        for one in inner(row.path + "/"):
            # What stands in an element without effect has none either.
            yield one._replace(has_effect=one.has_effect and row.has_effect)
    elif item.holds is None:
        yield row
    elif item.holds[1] is str:
        yield row._replace(path=f"{row.path}/@{item.holds[0][0]}")
    else:
        yield row._replace(type="elements")
        names, held = item.holds
        below = row.path + "/" + "".join(f"{name}/" for name in names)
        for one in declared(held):
            for inside in _rows(held, one, below):
                yield inside._replace(has_effect=inside.has_effect and row.has_effect)


def _row(cls: type[Any], item: Declared, above: str) -> Row:
    names = item.elements or item.attributes
    meaning = attribute_docs(cls).get(item.field, "")
    if len(names) > 1:
        meaning += f" Also written {', '.join(f'`{name}`' for name in names[1:])}."
    # Without a name it is the text of the element itself.
    path = f"{above}{'' if item.elements else '@'}{names[0]}" if names else above.rstrip("/")
    unit = unit_of(item.field)
    return Row(
        path=path,
        type=type_text(item.kind),
        range=item.kind.range,
        default=_default(item, unit),
        unit=unit,
        has_effect=_is_used(item),
        meaning=meaning,
    )


def _default(item: Declared, unit: str) -> str:
    if item.default is REQUIRED:
        return "required" if item.elements or item.attributes else ""
    if "password" in item.field and item.default is not None:
        return "Artemis's"
    return default_text(item.default, unit)


def default_text(value: object, unit: str = "") -> str:
    """Give a default as a file has it.

    >>> default_text(10485760, "bytes"), default_text(None), default_text(False)
    ('10M', '', 'false')
    """
    if value is None or isinstance(value, tuple | frozenset | dict):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    if unit == "bytes" and isinstance(value, int) and value > 0:
        for size, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
            if value % size == 0:
                return f"{value // size}{letter}"
    return str(value) if dataclasses.is_dataclass(value) is False else ""


def type_text(kind: ValueType[Any]) -> str:
    """Give what a kind is, for a table."""
    return _KINDS.get(kind.name, kind.name)


def unit_of(field: str) -> str:
    """Give the unit that a name ends in."""
    return _UNITS.get(field.rpartition("_")[2], "")


@cache
def _read_by_file() -> dict[str, frozenset[str]]:
    """The attributes that each file of the broker reads.

    Of files that declare elements only what their classes read of themselves: they also copy.
    """
    found = {}
    for suffix in ("*.py", "*.pyx"):
        for path in (ROOT / "broker").rglob(suffix):
            file = path.relative_to(ROOT).as_posix()
            owner = r"\b(?:self|group)" if file.startswith("broker/config/") else ""
            found[file] = frozenset(re.findall(owner + r"\.(\w+)", path.read_text()))
    return found


def _is_used(item: Declared) -> bool:
    """Whether any file reads the attribute; the list of what has no effect does not count."""
    for file, names in _read_by_file().items():
        if item.field in names and file != "broker/config/unsupported.py":
            return True
    # What has to be known before the rest can be read.
    name = (item.elements or item.attributes or ("",))[0]
    return f'"{name}"' in _loader()


@cache
def _loader() -> str:
    return (ROOT / "broker/config/load.py").read_text()


# --- what readers of their own take, which no field says ----------------------------------------


def _simple(*parts: tuple[str, str]) -> Any:  # noqa: ANN401 - a function of a path.
    def rows(above: str) -> Iterator[Row]:
        for path, meaning in parts:
            yield Row(above + path, "text", meaning=meaning)

    return rows


def _of(*names: str, cls: type[Any]) -> Any:  # noqa: ANN401 - a function of a path.
    def rows(above: str) -> Iterator[Row]:
        below = above + "".join(f"{name}/" for name in names)
        for item in declared(cls):
            yield from _rows(cls, item, below)

    return rows


def _addresses(above: str) -> Iterator[Row]:
    yield Row(f"{above}address/@name", "text", default="required", meaning="Of the address.")
    for kind, meaning in (
        ("anycast", "Each message goes to one of the address's queues."),
        ("multicast", "Each message goes to every queue of the address."),
    ):
        yield Row(f"{above}address/{kind}", meaning=meaning)
        yield from _of("address", kind, "queue", cls=addressing.QueueConfig)(above)


def _settings(above: str) -> Iterator[Row]:
    below = f"{above}address-setting/"
    texts = attribute_docs(AddressSettings)
    defaults = {field.name: field.default for field in dataclasses.fields(AddressSettings)}
    yield Row(f"{below}@match", "text", default="required", meaning="Addresses that it is for.")
    for item in SETTINGS:
        unit = unit_of(item.attribute)
        meaning = texts.get(item.attribute, "")
        if len(item.elements) > 1:
            meaning += f" Also written {', '.join(f'`{name}`' for name in item.elements[1:])}."
        yield Row(
            below + item.elements[0],
            type_text(item.kind),
            item.kind.range,
            default_text(defaults[item.attribute], unit),
            unit,
            has_effect=_is_setting_used(item.attribute),
            meaning=meaning,
        )


def _is_setting_used(attribute: str) -> bool:
    own = ("broker/settings/settings.py", "broker/config/unsupported.py")
    return any(attribute in names for file, names in _read_by_file().items() if file not in own)


def _permissions(above: str) -> Iterator[Row]:
    kinds = ", ".join(one.value for one in Permission)
    below = f"{above}security-setting/"
    for path, meaning in (
        (f"{below}@match", "Addresses that it is for."),
        (f"{below}permission/@type", f"One of {kinds}."),
        (f"{below}permission/@roles", "Roles that have it, separated by commas."),
        (f"{above}role-mapping/@from", "A role from elsewhere, as a login module gives it."),
        (f"{above}role-mapping/@to", "Roles of this file that it stands for."),
    ):
        yield Row(path, "text", meaning=meaning)
    meaning = "A Java class of Artemis, which is refused here."
    yield Row(f"{above}security-setting-plugin", "any", has_effect=False, meaning=meaning)


def _database(above: str) -> Iterator[Row]:
    texts = attribute_docs(DatabaseStoreOptions)
    for field in dataclasses.fields(DatabaseStoreOptions):
        if field.name == "data_source_properties":
            continue
        unit = unit_of(field.name)
        # Tables are called as they are; all others have a prefix.
        name = re.sub("_(ms|s)$", "", field.name).replace("_", "-")
        if not name.endswith("-table-name"):
            name = f"jdbc-{name}"
        least = DURATIONS.get(field.name)
        default = "" if field.default is dataclasses.MISSING else default_text(field.default, unit)
        yield Row(
            above + name,
            _KINDS[SIZE.name] if unit == "bytes" else "integer" if unit else "text",
            "" if least is None else f"at least {least}",
            "required" if field.name == "connection_url" else default,
            unit,
            meaning=_sentence(re.sub(r" ?\((jdbc-)?[a-z-]+\)", "", texts.get(field.name, ""))),
        )
    yield Row(
        f"{above}jdbc-page-max-size-bytes",
        "bytes; K, M, G: powers of 1024",
        unit="bytes",
        meaning="The name that Artemis's manual has for `jdbc-max-page-size-bytes`.",
    )
    for name in ("key", "value"):
        path = f"{above}data-source-properties/data-source-property/@{name}"
        yield Row(path, "text", meaning="Of the connection pool, by its DBCP name.")
    meaning = "A connection pool of Java, read without effect."
    yield Row(f"{above}data-source-class-name", "text", has_effect=False, meaning=meaning)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _transport(name: str) -> Any:  # noqa: ANN401 - a function of a path.
    return _simple(
        (f"{name}/@name", f"Of the {name}."),
        (name, "`tcp://HOST:PORT?NAME=VALUE;NAME=VALUE`: see the page of URL parameters."),
    )


def _cluster_connections(above: str) -> Iterator[Row]:
    yield from _of("cluster-connection", cls=ClusterConnection)(above)
    for name, meaning in (
        ("name", "Of the connection."),
        ("address", "All of it as a URI: see the page of URL parameters."),
    ):
        yield Row(f"{above}cluster-connection-uri/@{name}", "text", meaning=meaning)


def _policies(above: str) -> Iterator[Row]:
    for path, cls, aliases in (
        ("primary-only/", ha.PrimaryOnly, "Also written `live-only`. "),
        ("shared-store/primary/", ha.SharedStorePrimary, "Also written `master`. "),
        ("shared-store/backup/", ha.SharedStoreBackup, "Also written `slave`. "),
        ("replication/primary/", ha.ReplicationPrimary, "Also written `master`. Refused. "),
        ("replication/backup/", ha.ReplicationBackup, "Also written `slave`. Refused. "),
        ("shared-store/colocated/", ha.Colocated, ""),
        ("shared-store/colocated/primary/", ha.SharedStorePrimary, "Also written `master`. "),
        ("shared-store/colocated/backup/", ha.SharedStoreBackup, "Also written `slave`. "),
        ("replication/colocated/", ha.Colocated, "Refused. "),
    ):
        doc = (cls.__doc__ or "").partition("\n")[0]
        # The start stops at what is refused, and says what to take instead.
        is_refused = aliases.endswith("Refused. ")
        yield Row((above + path).rstrip("/"), has_effect=not is_refused, meaning=aliases + doc)
        for item in declared(cls):
            for row in _rows(cls, item, above + path):
                yield row._replace(has_effect=row.has_effect and not is_refused)


_PROPERTIES: Final = (
    ("property/@key", "Name of a parameter."),
    ("property/@value", "Its value."),
)
_LOCK_MANAGER: Final = _simple(
    ("class-name", "Artemis's class of lock managers."),
    *((f"properties/{path}", meaning) for path, meaning in _PROPERTIES),
)
_TRANSFORMER: Final = _simple(
    ("class-name", "Name of an entry point, or Artemis's name of one that is built in."),
    *_PROPERTIES,
)
_REFS: Final = _simple(("connector-ref", "Name of a connector."))
_ENDPOINT: Final = _simple(("@name", "`dns`, `shared-folder` or another."), *_PROPERTIES)
_POLICY: Final = _simple(
    ("@name", f"One of {', '.join(one.value for one in connection_routers.PolicyName)}."),
    ("property/@key", "`MODULO` or `CONNECTION_COUNT_THRESHOLD`: see the guide."),
    ("property/@value", "A number."),
)
_INSIDE: Final[Mapping[tuple[type[Any], str], Any]] = {
    (addressing.AddressingConfig, "wildcards"): _of(cls=addressing._Wildcards),
    (addressing.AddressingConfig, "addresses"): _addresses,
    (addressing.AddressingConfig, "address_settings"): _settings,
    (addressing.DivertConfig, "transformer"): _TRANSFORMER,
    (cluster.BridgeConfig, "transformer"): _TRANSFORMER,
    (cluster.ClusterConfig, "acceptors"): _transport("acceptor"),
    (cluster.ClusterConfig, "connectors"): _transport("connector"),
    (cluster.ClusterConfig, "cluster_connections"): _cluster_connections,
    (cluster.ClusterConfig, "ha_policy"): _policies,
    (connection_routers.ConnectionRouterConfig, "policy"): _POLICY,
    (discovery.BroadcastGroup, "endpoint"): _ENDPOINT,
    (discovery.DiscoveryGroup, "endpoint"): _ENDPOINT,
    (ha.ReplicationPrimary, "manager"): _LOCK_MANAGER,
    (ha.ReplicationBackup, "manager"): _LOCK_MANAGER,
    (ha.ScaleDown, "connector_refs"): _REFS,
    (ha.Colocated, "excludes"): _REFS,
    (permissions.PermissionsConfig, "security_settings"): _permissions,
    (persistence.Store, "database"): _database,
}
