"""Where a data folder keeps what a broker has stored; that of an instance is in its broker.xml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jdbcstore.options import DatabaseStoreOptions

__all__ = [
    "BINDINGS",
    "BRIDGES",
    "BROKER_XML",
    "LARGE_MESSAGES",
    "MESSAGES",
    "MESSAGES_FILES",
    "PAGING",
    "Layout",
    "first_folder",
    "layout_of_data",
]

# Of an instance.
BROKER_XML: Final = Path("etc/broker.xml")
BRIDGES: Final = Path("etc/bridges")  # A .toml for each JMS bridge.
# Where Artemis and we keep them when nothing else is configured.
BINDINGS: Final = "bindings"
MESSAGES: Final = "journal"
MESSAGES_FILES: Final = "activemq-data"  # How the names of its files begin.
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


def layout_of_data(folder: Path) -> Layout:
    """Name the folders of a data folder, whether or not they are there."""
    return Layout(
        folder / BINDINGS, folder / MESSAGES, folder / PAGING, first_folder(folder, LARGE_MESSAGES)
    )


def first_folder(folder: Path, names: tuple[str, ...]) -> Path:
    """Give the first folder of some names that is there; the first name where none is."""
    found = (folder / name for name in names)
    return next((path for path in found if path.is_dir()), folder / names[0])
