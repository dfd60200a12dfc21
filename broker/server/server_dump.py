"""What a broker writes into its log every server-dump-interval: memory, pages, connections."""

from __future__ import annotations

import resource
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.paging.paging import Paging
    from broker.queues.memory import GlobalMemory

__all__ = ["server_dump"]


def server_dump(memory: GlobalMemory, paging: Paging | None, connection_count: int) -> str:
    """The state of a broker in one line; only addresses that page are named.

    Args:
        memory: of all addresses.
        paging: of the broker; None where nothing is kept.
        connection_count: open ones.
    """
    stores = () if paging is None else paging.stores.items()
    pages = ", ".join(
        f"{name} {len(store.pages)} pages" for name, store in sorted(stores) if store.is_paging
    )
    return (
        f"messages: {memory.count} in memory, {memory.size} bytes of "
        f"{memory.size_max if memory.size_max > 0 else 'any number'}; "
        f"process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} KiB at most; "
        f"paging: {pages or 'none'}; threads: {threading.active_count()}; "
        f"connections: {connection_count}"
    )
