"""What other distributions bring: objects by the entry points of a group."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["installed"]


def installed(group: str, members: Sequence[str], what: str) -> dict[str, Any]:
    """Load all of a group, by name and in the order of the names.

    Args:
        group: of the entry points.
        members: that each object has to have, `name` among them.
        what: each is, with its article; for errors.

    Raises:
        BrokerError: an entry point cannot be loaded, lacks a member, or has the name of another;
            the text names it.
    """
    found: dict[str, Any] = {}
    for entry in sorted(entry_points(group=group), key=lambda one: (one.name, one.value)):
        where = f"entry point {group}: {entry.name} = {entry.value}"
        try:
            loaded = entry.load()
        except Exception as error:
            raise _broken(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
        missing = [name for name in members if not hasattr(loaded, name)]
        if missing:
            raise _broken(f"{where} is not {what}: it lacks {', '.join(missing)}")
        if loaded.name != entry.name:
            raise _broken(f"{where} calls itself {loaded.name}")
        if entry.name in found:
            raise _broken(f"{where}: another entry point has that name")
        found[entry.name] = loaded
    return found


def _broken(text: str) -> BrokerError:
    return BrokerError(ErrorCode.ILLEGAL_STATE, text)
