"""Objects of Proton's are given up in the thread that made them.

    collector, in any thread ─▶ __del__ ─┬─ this thread made it ──▶ pn_decref()
                                         └─ another one did ──▶ its queue ─▶ pn_decref(), there

Proton's engines belong to one thread each, but Python's collector runs in whichever thread happens
to allocate: one that reads pages, say. An object of the engine that it finds there, a closed
session or a settled delivery in a cycle, is given up beside the calls of the event loop's thread,
which let go of the interpreter's lock. Both change the same lists: a segmentation fault.

What is queued is given up when its thread makes the next object. What a thread that has ended made
stays until another one gets its number.
"""

from __future__ import annotations

from collections import deque
from threading import get_ident
from typing import Final

from cproton import pn_decref, pn_incref
from proton._wrapper import Wrapper

__all__ = ["give_up", "give_up_where_made", "keep"]

# Of a wrapper, beside Proton's own `_impl` and `_attrs`: the number of its thread.
_MADE_IN: Final = "_made_in"
_begin: Final = Wrapper.__init__
# What others found, by thread. Its operations are atomic: __del__ comes between any two others.
_queues: Final[dict[int, deque[object]]] = {}


def give_up_where_made() -> None:
    """Have it so for all objects of Proton in this process; once is enough."""
    Wrapper.__init__ = _make
    Wrapper.__del__ = _give_up


def keep(handle: object) -> int:
    """Have an object of the engine until it is given up; the number of this thread."""
    thread = _here()
    pn_incref(handle)
    return thread


def give_up(handle: object, thread: int) -> None:
    """Have it no longer.

    Args:
        handle: of the engine's own functions.
        thread: that has it, by its number.
    """
    if thread == get_ident():
        pn_decref(handle)
    else:
        _queues.setdefault(thread, deque()).append(handle)


def _here() -> int:
    """Give up what others found of this thread's; its number."""
    thread = get_ident()
    queue = _queues.get(thread)
    while queue:
        pn_decref(queue.popleft())
    return thread


def _make(self: Wrapper, *arguments: object, **named: object) -> None:
    self.__dict__[_MADE_IN] = _here()
    _begin(self, *arguments, **named)


def _give_up(self: Wrapper) -> None:
    fields = self.__dict__
    found = fields.get("_impl")
    if found is None:
        return  # It could not be made.
    thread = fields.get(_MADE_IN)
    give_up(found, get_ident() if thread is None else thread)
