"""A line in the log for TLS handshakes that failed."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

__all__ = ["FailedHandshakes"]

log = logging.getLogger("broker")

# A scan of ports must not fill the log.
SILENT_S: Final = 1.0


class FailedHandshakes:
    """Logs those of an acceptor: the first at once, then one line a second at most."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0
        self._last: tuple[object, object] = (None, None)

    def tell(self, remote: object, reason: object) -> None:
        """One failed.

        Args:
            remote: address of the peer.
            reason: text or error; one without a text says that the peer was gone.
        """
        if self._timer is not None:
            self._count += 1
            self._last = (remote, reason)
            return
        self._log(remote, reason)

    def _log(self, remote: object, reason: object, more: str = "") -> None:
        log.warning(
            "AMQ222208: SSL handshake failed for client from %s: %s%s",
            remote,
            str(reason) or "the client has closed the connection",
            more,
        )
        self._timer = asyncio.get_running_loop().call_later(SILENT_S, self._tell_others)

    def _tell_others(self) -> None:
        self._timer = None
        count, self._count = self._count, 0
        if count:
            more = f"; and {count - 1} others within a second" if count > 1 else ""
            self._log(*self._last, more)
