"""Finds decoders of record bodies, by the entry point group `quiver.journal.decoders`.

The journal never looks into a body. A product that does, such as the broker, registers a class.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

import click

if TYPE_CHECKING:
    from pathlib import Path

    from journal.api import RecordDecoder

__all__ = ["GROUP", "find_decoder", "left_beside"]

GROUP = "quiver.journal.decoders"


def find_decoder(name: str | None) -> RecordDecoder:
    """The decoder of that name, or the only one there is.

    Raises:
        click.UsageError: there is none, or more than one to choose from.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name is None and len(found) == 1:
        name = next(iter(found))
    if name not in found:
        known = ", ".join(sorted(found)) or "none is installed"
        wanted = "which decoder?" if name is None else f"no decoder {name!r}"
        raise click.UsageError(f"{wanted} (known: {known}); choose with --decoder NAME")
    return cast("RecordDecoder", found[name].load()())


def left_beside(folder: Path) -> list[Path]:
    """What the records of the journal in this folder refer to, as far as a decoder knows them."""
    decoders = [entry.load()() for entry in entry_points(group=GROUP)]
    return [one for decoder in decoders for one in decoder.beside(folder)]
