"""broker.xml as a whole."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.config.addressing import AddressingConfig
from broker.config.cluster import ClusterConfig
from broker.config.cluster_checks import check_cluster
from broker.config.core import (
    GeneralConfig,
    LimitsConfig,
    ManagementConfig,
    SecurityConfig,
    WatchConfig,
)
from broker.config.document import read_document
from broker.config.errors import ConfigError
from broker.config.permissions import PermissionsConfig
from broker.config.persistence import PersistenceConfig
from broker.config.sections import SectionsConfig
from broker.config.xml_fields import Context, check_names, read_groups
from broker.security.masking import Masking
from broker.selector import SelectorError, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from broker.config.addressing import DivertConfig, QueueConfig
    from broker.config.document import Element

__all__ = ["BrokerConfig", "load"]

log = logging.getLogger("broker.config")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Everything that a broker.xml says; without a file, every default.

    Attributes:
        file: that it was read from.
        instance: folder that relative paths are below: the one that has etc/.
    """

    general: GeneralConfig = field(default_factory=GeneralConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    permissions: PermissionsConfig = field(default_factory=PermissionsConfig)
    management: ManagementConfig = field(default_factory=ManagementConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    persistence: PersistenceConfig = field(default_factory=PersistenceConfig)
    addressing: AddressingConfig = field(default_factory=AddressingConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    sections: SectionsConfig = field(default_factory=SectionsConfig)
    file: Path | None = None
    instance: Path = field(default_factory=Path)

    @property
    def etc(self) -> Path | None:
        """The folder of the file, where certificates are looked for, too; None without a file."""
        return None if self.file is None else self.file.parent

    def path(self, text: str) -> Path:
        """A folder that the file names, below the instance where it is relative."""
        return self.instance / text

    @property
    def queues(self) -> Iterator[QueueConfig]:
        """The queues of all addresses, and the deprecated ones outside of any; a name once.

        Of two of one name, as in Artemis, the last one counts on the same address, and the first
        one where the addresses differ.
        """
        found: dict[str, QueueConfig] = {}
        for queue in self.all_queues:
            before = found.get(queue.name)
            if before is None or before.address == queue.address:
                found[queue.name] = queue
        yield from found.values()

    @property
    def all_queues(self) -> Iterator[QueueConfig]:
        """The same, those of one name too."""
        for address in self.addressing.addresses:
            yield from address.queues
        yield from self.addressing.queues

    @property
    def diverts(self) -> Iterator[DivertConfig]:
        """The diverts; of two of one name the first one counts."""
        found: dict[str, DivertConfig] = {}
        for divert in self.addressing.diverts:
            found.setdefault(divert.name, divert)
        yield from found.values()


_GROUPS: Final[Mapping[str, type[Any]]] = {
    "general": GeneralConfig,
    "limits": LimitsConfig,
    "security": SecurityConfig,
    "permissions": PermissionsConfig,
    "management": ManagementConfig,
    "watch": WatchConfig,
    "persistence": PersistenceConfig,
    "addressing": AddressingConfig,
    "cluster": ClusterConfig,
    "sections": SectionsConfig,
}


def load(
    path: Path | str, *, lenient: bool = False, properties: Mapping[str, str] | None = None
) -> BrokerConfig:
    """The configuration in a file.

    Args:
        path: of broker.xml.
        lenient: unknown elements and attributes are logged and passed over.
        properties: what `${name}` stands for, before the environment's variables.

    Raises:
        ConfigError: one line with file and line; nothing of the file is used then.
    """
    path = Path(path)
    root = read_document(path, {**os.environ, **(properties or {})})
    core = _core(root, lenient=lenient)
    masking = _masking(core)
    context = Context(unmask=masking.unmask, lenient=lenient)
    found = dict(zip(_GROUPS, read_groups(_GROUPS.values(), core, context), strict=True))
    folder = path.resolve().parent
    instance = folder.parent if folder.name == "etc" else folder
    config = BrokerConfig(file=path, instance=instance, **found)
    _check(config, core)
    return config


def _core(root: Element, *, lenient: bool) -> Element:
    """<core>, in <configuration> or alone."""
    if root.name == "core":
        return root
    if root.name != "configuration":
        raise root.wrong(f"<{root.name}> where <configuration> is expected")
    check_names(root, ("core",), (), Context(unmask=str, lenient=lenient))
    cores = [child for child in root.children if child.name == "core"]
    if len(cores) != 1:
        raise root.wrong("<configuration> needs one <core>")
    return cores[0]


def _masking(core: Element) -> Masking:
    """How passwords are masked has to be known before one is read."""
    texts = {child.name: child for child in core.children}
    flag = texts.get("mask-password")
    codec = texts.get("password-codec")
    try:
        return Masking.configured(
            codec.text if codec is not None else None,
            mask_password=None if flag is None else flag.text.lower() == "true",
        )
    except ValueError as error:
        raise (codec or core).wrong(f"<password-codec>: {error}") from None


def _check(config: BrokerConfig, core: Element) -> None:
    """What concerns more than one element."""
    for queue in config.all_queues:
        _check_filter(queue.filter, queue.where)
    for divert in config.addressing.diverts:
        _check_filter(divert.filter, divert.where)
    _warn_of_repeated("queue", config.all_queues, {one.name: one for one in config.queues})
    _warn_of_repeated(
        "divert", config.addressing.diverts, {one.name: one for one in config.diverts}
    )
    cluster = config.cluster
    for bridge in cluster.bridges:
        _check_filter(bridge.filter, bridge.where)
    check_cluster(cluster)
    places: dict[tuple[str, int], str] = {}
    for acceptor in cluster.acceptors:
        place = (acceptor.host, acceptor.port)
        if acceptor.scheme == "tcp" and acceptor.port and place in places:
            raise _at(acceptor.where, f"port {acceptor.port} is taken, {places[place]}")
        places[place] = acceptor.where
    names = [match for match, _ in config.addressing.address_settings]
    _check_matches(config, core, names)
    _check_matches(
        config, core, [match for match, _ in config.permissions.security_settings.permissions]
    )


def _warn_of_repeated(
    kind: str,
    found: Iterable[QueueConfig] | Iterable[DivertConfig],
    counting: Mapping[str, QueueConfig] | Mapping[str, DivertConfig],
) -> None:
    for one in found:
        counts = counting[one.name]
        if counts is not one:
            log.warning(
                "%s: %s %r stands twice; %s counts", one.where, kind, one.name, counts.where
            )


def _check_matches(config: BrokerConfig, core: Element, matches: list[str]) -> None:
    any_words = config.addressing.wildcards.any_words
    literal = config.general.literal_match_markers
    for match in matches:
        if literal and match[:1] == literal[0] and match[-1:] == literal[1]:
            continue
        if any_words in match[:-1]:
            raise core.wrong(f"{any_words!r} is the last character of a match, not in {match!r}")


def _check_filter(text: str | None, where: str) -> None:
    try:
        parse(text)
    except SelectorError as error:
        raise _at(where, str(error)) from None


def _at(where: str, what: str) -> ConfigError:
    return ConfigError(f"{where}: {what}")
