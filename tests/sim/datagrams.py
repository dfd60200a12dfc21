"""A socket for datagrams in memory: they may be lost, come twice, or out of order."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.sim.loop import Process
    from tests.sim.network import Host, Network

_MULTICAST = tuple(f"{first}." for first in range(224, 240))


class SimDatagrams(asyncio.DatagramTransport):
    """See the module's text, and network.py."""

    def __init__(
        self,
        network: Network,
        process: Process,
        host: Host,
        port: int,
        remote: tuple[str, int] | None,
        protocol: Any,
    ) -> None:
        super().__init__({"sockname": (host.address, port), "peername": remote, "socket": None})
        self.network = network
        self.process = process
        self.host = host
        self.port = port
        self.remote = remote
        self.protocol = protocol
        # The multicast group that it has joined; None hears whatever comes to its port.
        self.group: str | None = None
        self._is_closing = False

    def sendto(self, data: Any, addr: tuple[str, int] | None = None) -> None:
        place = addr or self.remote
        assert place is not None, "where to"
        if self._is_closing:
            return
        for target in self._targets(place[0]):
            link = self.network.link(self.host, target)
            seeded = self.network.loop.seeded
            count = 1 + (seeded.random() < link.duplicates)
            if link.is_cut or not target.is_up or seeded.random() < link.loss:
                continue
            for endpoint in target.datagrams.get(place[1], ()):
                if endpoint.group not in (None, place[0]):
                    continue
                for _ in range(count):
                    least, most = link.delay_s
                    moment = self.network.loop.time() + seeded.uniform(least, most)
                    arguments = bytes(data), (self.host.address, self.port)
                    self.network.loop.call_in(
                        endpoint.process, moment, endpoint.arrived, *arguments
                    )

    def _targets(self, address: str) -> list[Host]:
        if address.startswith(_MULTICAST):
            return list(self.network.hosts.values())
        return self.network.resolve(address)

    def arrived(self, data: bytes, source: tuple[str, int]) -> None:
        """In the process that reads."""
        if not self._is_closing:
            self.network.loop.note(b"datagram %b %d" % (self.host.name.encode(), zlib.crc32(data)))
            self.protocol.datagram_received(data, source)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            endpoints = self.host.datagrams.get(self.port, [])
            if self in endpoints:
                endpoints.remove(self)
            self.process.loop.call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._is_closing
