"""Whether this machine reaches its network (network-check-list, network-check-URL-list).

Hosts are pinged by the system's `ping`, URLs are opened; one that answers is enough. Hosts of this
machine itself are left out: they answer without a network. Nothing to ask is a good answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from dataclasses import dataclass
from typing import Final

__all__ = ["NetworkCheck"]

log = logging.getLogger("broker")

_PING: Final = "ping -c 1 -w %d %s"
_PING6: Final = "ping -6 -c 1 -w %d %s"
# %d or %1$d is the time-out in seconds, %s or %2$s the host.
_FIELD: Final = re.compile(r"%(?:1\$)?d|%(?:2\$)?s")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCheck:
    """See the module's text.

    Attributes:
        hosts: to ping, names or addresses.
        urls: to open.
        period_ms: between two checks.
        timeout_ms: for one answer.
        interface: that pings leave by; None is the system's choice.
        ping: command for IPv4, with `%d` for seconds and `%s` for the host; None is the system's.
        ping6: the same for IPv6.
    """

    hosts: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    period_ms: int = 10_000
    timeout_ms: int = 1000
    interface: str | None = None
    ping: str | None = None
    ping6: str | None = None

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to ask."""
        return bool(self.hosts or self.urls)

    async def is_healthy(self) -> bool:
        """Ask one after another until one answers; true if none is configured."""
        asked = False
        for host in self.hosts:
            address = await self._address(host)
            if address is not None and ipaddress.ip_address(address).is_loopback:
                log.warning("AMQ202001: %s is a loopback address, it is not checked", host)
                continue
            asked = True
            if address is not None and await self._answers(address):
                return True
        for url in self.urls:
            asked = True
            if await asyncio.to_thread(self._opens, url):
                return True
        return not asked

    async def _address(self, host: str) -> str | None:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            log.debug("network check of %s: %s", host, error)
            return None
        return str(found[0][4][0]).partition("%")[0]

    async def _answers(self, address: str) -> bool:
        is_6 = ":" in address
        own = self.ping6 if is_6 else self.ping
        command = (own or (_PING6 if is_6 else _PING)).split()
        if own is None and self.interface is not None:
            command[1:1] = ["-I", self.interface]
        seconds = str(max(1, self.timeout_ms // 1000))
        words = [
            _FIELD.sub(lambda field: seconds if field[0][-1] == "d" else address, word)
            for word in command
        ]
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
            )
        except OSError as error:
            log.warning("network check: cannot run %s: %s", words[0], error.strerror)
            return False
        try:
            return await process.wait() == 0
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise

    def _opens(self, url: str) -> bool:
        """Whether a URL answers with success. In a thread: it blocks."""
        # 2 MB, which a broker that asks no URL does not pay.
        import urllib.request

        try:
            with urllib.request.urlopen(url, timeout=self.timeout_ms / 1000) as answer:
                answer.read(1)
        except (OSError, ValueError) as error:
            log.debug("network check of %s: %s", url, error)
            return False
        return True
