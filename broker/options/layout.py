"""Where an instance, or a bare data folder, keeps what it has stored: folders, or a database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.config.load import load
from broker.options.from_config import broker_options
from broker.storage.open import FileStoreOptions
from journal.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jdbcstore.options import DatabaseStoreOptions

__all__ = ["BINDINGS", "BROKER_XML", "LARGE_MESSAGES", "MESSAGES", "PAGING", "Layout", "layout_of"]

# Of an instance.
BROKER_XML: Final = Path("etc/broker.xml")
# Where Artemis and we keep them when nothing else is configured.
BINDINGS: Final = "bindings"
MESSAGES: Final = "journal"
PAGING: Final = "paging"
# Of Artemis's `create`, of its default without a word in broker.xml, and of our samples.
LARGE_MESSAGES: Final = ("large-messages", "largemessages", "large")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is: four folders, or a database.

    Attributes:
        bindings: folder of the bindings journal.
        messages: of the message journal.
        paging: of the pages; there may be none.
        large_messages: of the bodies of large messages; there may be none.
        database: all of it, in place of folders.
    """

    bindings: Path
    messages: Path
    paging: Path
    large_messages: Path
    database: DatabaseStoreOptions | None = None


def layout_of(
    folder: Path, given: Mapping[str, Path | None] | None = None, *, needs_all: bool = True
) -> Layout:
    """Find what an instance or a data folder has.

    Args:
        folder: of either.
        given: folders that were named in its place, by parameter.
        needs_all: refuse a folder without both journals.

    Raises:
        ConfigError: its broker.xml cannot be read.
        WrongUse: there is nothing.
    """
    found = (
        _layout_of_instance(folder) if (folder / BROKER_XML).is_file() else _layout_of_data(folder)
    )
    named = {
        "bindings": "bindings_folder",
        "messages": "journal_folder",
        "paging": "paging_folder",
        "large_messages": "large_messages_folder",
    }
    changes: dict[str, Any] = {}
    for field, name in named.items():
        path = (given or {}).get(name)
        if path is not None:
            changes[field] = path
    if changes and found.database is not None:
        raise WrongUse(f"{folder} keeps its data in a database: no folder can be named")
    found = replace(found, **changes)
    if needs_all and found.database is None:
        for place in (found.bindings, found.messages):
            if not place.is_dir():
                raise WrongUse(
                    f"{folder}: neither an instance ({BROKER_XML}) nor a data folder "
                    f"({BINDINGS}/ and {MESSAGES}/)"
                )
    return found


def _layout_of_instance(folder: Path) -> Layout:
    store = broker_options(load(folder / BROKER_XML, lenient=True)).store
    if store is None:
        raise WrongUse(f"{folder}: it keeps nothing (persistence-enabled)")
    if not isinstance(store, FileStoreOptions):
        none = Path()
        return Layout(none, none, none, none, store)
    messages = store.messages.directory
    return Layout(
        bindings=store.bindings.directory,
        messages=messages,
        paging=store.paging or messages.parent / PAGING,
        large_messages=store.large_messages or _first(messages.parent, LARGE_MESSAGES),
    )


def _layout_of_data(folder: Path) -> Layout:
    return Layout(
        folder / BINDINGS, folder / MESSAGES, folder / PAGING, _first(folder, LARGE_MESSAGES)
    )


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    """Give the first folder of some names that is there; the first name where none is."""
    found = (folder / name for name in names)
    return next((path for path in found if path.is_dir()), folder / names[0])
