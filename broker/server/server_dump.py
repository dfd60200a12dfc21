"""What a broker writes into its log every server-dump-interval: memory, pages, connections."""

from __future__ import annotations

import resource
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.core import Core

__all__ = ["server_dump"]


def server_dump(core: Core, connection_count: int) -> str:
    """The state of a broker in one line; only addresses that page are named.

    Args:
        core: of the broker.
        connection_count: open ones.
    """
    memory = core.postoffice.addresses.memory
    paging = () if core.paging is None else core.paging.stores.items()
    pages = ", ".join(
        f"{name} {len(store.pages)} pages" for name, store in sorted(paging) if store.is_paging
    )
    return (
        f"messages: {memory.count} in memory, {memory.size} bytes of "
        f"{memory.size_max if memory.size_max > 0 else 'any number'}; "
        f"process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} KiB at most; "
        f"paging: {pages or 'none'}; threads: {threading.active_count()}; "
        f"connections: {connection_count}"
    )
