"""The event loop that a broker runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["loop_factory"]


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Give what makes uvloop's event loop; None, for asyncio's own, where it has no wheel."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
