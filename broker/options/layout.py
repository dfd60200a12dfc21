"""The storage layout of an instance or a bare data folder: folders, or a database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.config.load import load
from broker.options.from_config import broker_options
from broker.storage.layout import (
    BINDINGS,
    BROKER_XML,
    LARGE_MESSAGES,
    MESSAGES,
    PAGING,
    Layout,
    first_folder,
    layout_of_data,
)
from broker.storage.open import FileStoreOptions
from journal.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["layout_of"]


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
        _layout_of_instance(folder) if (folder / BROKER_XML).is_file() else layout_of_data(folder)
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
        large_messages=store.large_messages or first_folder(messages.parent, LARGE_MESSAGES),
    )
