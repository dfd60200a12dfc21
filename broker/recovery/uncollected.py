"""No search for cycles while much is made that stays."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["uncollected"]

# Objects of a start beyond which they are never looked through: a tenth of a second, about.
_FROZEN_COUNT: Final = 200_000


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection meanwhile: all that is made stays.

    If very many objects were made, later collections skip them, so that clients do not wait for
    that. Each is still freed as soon as nothing refers to it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    before = gc.get_count()[0]
    try:
        yield
    finally:
        if gc.get_count()[0] - before > _FROZEN_COUNT:
            gc.freeze()
        if was_enabled:
            gc.enable()
