"""A network in memory: hosts with names, links with delays, TCP and datagrams, and its faults.

    write ─▶ send buffer ─▶ (window) link: delay, bandwidth, cut? ─▶ receive buffer ─▶ data_received
               │ full: pause_writing                                   │ not read: the window closes

TCP: bytes of one connection keep their order; those of two overtake each other. What is sent over
a link that is cut is sent again once it is whole, or ends the connection after `GIVE_UP_S`. A host
without power answers nothing: connections to it stay half-open until somebody writes after it is
back, who gets a reset. A process that was killed on a host with power has its connections reset.

A link has two directions, each with its own delay; each can be cut alone.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from typing import TYPE_CHECKING, Any

from tests.sim.datagrams import SimDatagrams
from tests.sim.tcp import BoundSocket, Listener, SimTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.sim.loop import Process, SimLoop

DELAY_S = (0.0001, 0.002)
BANDWIDTH = 1e9  # Bytes a second.
RETRY_S = (1.0, 3.0, 7.0, 15.0, 31.0, 63.0)
RESEND_S = 0.5
GIVE_UP_S = 900.0
FIRST_FREE_PORT = 32768
EPOCH_MS = 1_700_000_000_000  # Of wall clocks, when the loop's is 0.


class Host:
    """A machine: an address, names, and what listens there.

    Attributes:
        is_up: it has power.
        clock_offset_ms: of its wall clock.
    """

    def __init__(self, network: Network, name: str, address: str) -> None:
        self.network = network
        self.name = name
        self.address = address
        self.is_up = True
        self.clock_offset_ms = 0
        self.listeners: dict[int, Listener] = {}
        self.transports: dict[int, SimTransport] = {}
        self.datagrams: dict[int, list[SimDatagrams]] = {}

    def clock_ms(self) -> int:
        """Its wall clock, ms since 1970."""
        return EPOCH_MS + int(self.network.loop.time() * 1000) + self.clock_offset_ms

    def clock_s(self) -> float:
        """The same in seconds."""
        return (EPOCH_MS + self.clock_offset_ms) / 1000 + self.network.loop.time()

    def __repr__(self) -> str:
        return f"<host {self.name}>"


class Link:
    """One direction between two hosts.

    Attributes:
        delay_s: least and most.
        bandwidth: bytes a second.
        is_cut: nothing arrives.
        loss, duplicates: shares of datagrams.
    """

    def __init__(self, delay_s: tuple[float, float]) -> None:
        self.delay_s = delay_s
        self.bandwidth = BANDWIDTH
        self.is_cut = False
        self.loss = 0.0
        self.duplicates = 0.0
        self.busy_until = 0.0
        self.held: deque[tuple[SimTransport, Callable[..., object], tuple[Any, ...]]] = deque()


class Network:
    """All hosts and links; the loop's sockets are made here.

    Args:
        loop: whose network it becomes.

    Attributes:
        closers: called when it is closed, with the loop.
    """

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        loop.network = self
        self.delay_s = DELAY_S
        self.closers: list[Callable[[], object]] = []
        self.hosts: dict[str, Host] = {}
        self.names: dict[str, list[Host]] = {}
        self.links: dict[tuple[str, str], Link] = {}
        self.counts = {"connections": 0, "segments": 0, "resets": 0, "held": 0}
        self._ports = FIRST_FREE_PORT
        self._numbers = 0

    # --- hosts and links ----------------------------------------------------------------------

    def host(self, name: str) -> Host:
        """Make a host that has this name."""
        number = len(self.hosts) + 1
        made = Host(self, name, f"10.0.{number // 250}.{number % 250 + 1}")
        self.hosts[made.address] = made
        self.names[name] = [made]
        return made

    def name(self, name: str, *hosts: Host) -> None:
        """Let a name stand for hosts; for none, it is unknown from now on."""
        self.names[name] = list(hosts)

    def link(self, source: Host, target: Host) -> Link:
        """One direction between two hosts."""
        key = source.address, target.address
        found = self.links.get(key)
        if found is None:
            found = self.links[key] = Link(self.delay_s)
        return found

    def cut(self, source: Host, target: Host, *, both: bool = True) -> None:
        """Let nothing through any more, from source to target or both ways."""
        self.loop.note(b"cut %b %b" % (source.name.encode(), target.name.encode()))
        self.link(source, target).is_cut = True
        if both:
            self.link(target, source).is_cut = True

    def mend(self, source: Host, target: Host) -> None:
        """Make the link between two hosts whole; what was held is sent again."""
        self.loop.note(b"mend %b %b" % (source.name.encode(), target.name.encode()))
        for link in (self.link(source, target), self.link(target, source)):
            if link.is_cut:
                link.is_cut = False
                self._send_again(link)

    def heal(self) -> None:
        """Make all links whole."""
        for source, target in list(self.links):
            self.mend(self.hosts[source], self.hosts[target])

    def _send_again(self, link: Link) -> None:
        held, link.held = link.held, deque()
        again = self.loop.time() + self.loop.seeded.random() * RESEND_S
        for transport, call, arguments in held:
            if not transport.is_gone:
                self._deliver(transport, link, again, call, arguments)

    # --- segments -----------------------------------------------------------------------------

    def send(
        self, transport: SimTransport, size: int, call: Callable[..., object], *arguments: Any
    ) -> None:
        """Bring something of a connection to its other side, in order."""
        link = self.link(transport.host, transport.peer_host)
        self.counts["segments"] += 1
        if link.is_cut or not transport.peer_host.is_up:
            if not link.held:
                self.loop.call_in(
                    self.loop.director, self.loop.time() + GIVE_UP_S, self._give_up, link
                )
            link.held.append((transport, call, arguments))
            self.counts["held"] += 1
            return
        now = self.loop.time()
        if size > 1500:
            link.busy_until = max(now, link.busy_until) + size / link.bandwidth
            now = link.busy_until
        self._deliver(transport, link, now, call, arguments)

    def _deliver(
        self,
        transport: SimTransport,
        link: Link,
        sent: float,
        call: Callable[..., object],
        arguments: tuple[Any, ...],
    ) -> None:
        least, most = link.delay_s
        moment = sent + least + self.loop.seeded.random() * (most - least)
        # By so much that timers keep the order of a connection's segments.
        moment = transport.last_arrival = max(moment, transport.last_arrival + 1e-9)
        process = transport.peer.process
        # The host answers for a process that is no more.
        self.loop.call_in(
            process if process.is_alive else self.loop.director, moment, call, *arguments
        )

    def delay(self, transport: SimTransport, seconds: float) -> None:
        """Let all that one side of a connection sends from now on arrive so much later."""
        transport.last_arrival = max(transport.last_arrival, self.loop.time() + seconds)

    def _give_up(self, link: Link) -> None:
        if not (link.is_cut or link.held):
            return
        held, link.held = link.held, deque()
        for transport in dict.fromkeys(one[0] for one in held):
            transport.lose(OSError(errno.ETIMEDOUT, "Connection timed out"))

    def is_open(self, source: Host, target: Host) -> bool:
        """Whether a packet and its answer get through now."""
        return (
            target.is_up
            and not self.link(source, target).is_cut
            and not self.link(target, source).is_cut
        )

    def round_trip_s(self, source: Host, target: Host) -> float:
        """Seconds for a packet and its answer."""
        first, second = self.link(source, target).delay_s, self.link(target, source).delay_s
        share = self.loop.seeded.random()
        return first[0] + second[0] + share * (first[1] + second[1] - first[0] - second[0])

    # --- faults of hosts ----------------------------------------------------------------------

    def process_ended(self, process: Process) -> None:
        """Its sockets are closed by the host: with a reset where something was not read."""
        host = process.host
        for port, listener in list(host.listeners.items()):
            if getattr(listener, "process", process) is process:
                del host.listeners[port]
        for transport in list(host.transports.values()):
            if transport.process is process:
                transport.die()
        for endpoints in host.datagrams.values():
            endpoints[:] = [one for one in endpoints if one.process is not process]

    def power_off(self, host: Host) -> None:
        """The host answers nothing; its peers are told of nothing."""
        host.is_up = False
        host.listeners.clear()
        host.datagrams.clear()
        for transport in host.transports.values():
            transport.vanish()
        host.transports.clear()

    def power_on(self, host: Host) -> None:
        """It is back, and knows no connection: who sends over one again gets a reset."""
        host.is_up = True
        for (_, target), link in self.links.items():
            if target == host.address and not link.is_cut and link.held:
                held, link.held = link.held, deque()
                for transport in dict.fromkeys(one[0] for one in held):
                    transport.reset_by_peer()

    def close(self) -> None:
        """Forget everything."""
        for close in self.closers:
            close()
        for host in self.hosts.values():
            for transport in host.transports.values():
                transport.vanish()
            host.transports.clear()
            host.listeners.clear()
            host.datagrams.clear()
        self.links.clear()

    def connections(self) -> Iterator[SimTransport]:
        """Both sides of all that are open."""
        for host in self.hosts.values():
            yield from host.transports.values()

    # --- what the loop's methods do -----------------------------------------------------------

    def _here(self) -> tuple[Process, Host]:
        process = self.loop.current_process()
        if process.host is None:
            raise OSError(errno.ENETUNREACH, f"{process} is on no host")
        return process, process.host

    def bind(self, port: int, address: str | None = None) -> BoundSocket:
        """Take a port of the host that the caller runs on.

        Raises:
            OSError: it is taken.
        """
        host = self._here()[1]
        if address not in (None, "", "0.0.0.0", "127.0.0.1", "localhost", host.address, host.name):
            raise OSError(errno.EADDRNOTAVAIL, f"{address} is not an address of {host.name}")
        bound = BoundSocket(host, port or self._free_port())
        if bound.port in host.listeners:
            raise OSError(errno.EADDRINUSE, f"{host.name}: port {bound.port} is taken")
        host.listeners[bound.port] = bound  # type: ignore[assignment] # refuses until it listens.
        return bound

    def _free_port(self) -> int:
        self._ports += 1
        return self._ports

    async def create_server(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,
        port: int | None = None,
        *,
        sock: Any = None,
        ssl: Any = None,
        **_: Any,
    ) -> Listener:
        if ssl is not None:
            raise ValueError("the simulation has no TLS")
        process = self._here()[0]
        bound = sock if sock is not None else self.bind(port or 0, host)
        listener = Listener(bound, protocol_factory, process)
        bound.host.listeners[bound.port] = listener
        return listener

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, (one.address, port)) for one in self.resolve(str(host))]

    def resolve(self, name: str) -> list[Host]:
        """The hosts that a name or an address stands for.

        Raises:
            socket.gaierror: it is not known.
        """
        if name in ("localhost", "127.0.0.1"):
            return [self._here()[1]]
        if name in self.hosts:
            return [self.hosts[name]]
        found = self.names.get(name)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    async def getnameinfo(self, sockaddr: tuple[str, int], flags: int = 0) -> tuple[str, str]:
        return sockaddr[0], str(sockaddr[1])

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        **_: Any,
    ) -> tuple[SimTransport, Any]:
        if ssl is not None:
            raise ValueError("the simulation has no TLS")
        process, here = self._here()
        error: OSError | None = None
        for target in self.resolve(str(host)):
            try:
                listener = await self._connect(here, target, int(port or 0))
            except OSError as problem:
                error = problem
                continue
            transport, protocol = self._open(process, here, listener, protocol_factory)
            return transport, protocol
        assert error is not None, "a name stands for hosts"
        raise error

    async def _connect(self, here: Host, target: Host, port: int) -> Listener:
        for retry_s in (*RETRY_S, None):
            if self.is_open(here, target):
                await asyncio.sleep(self.round_trip_s(here, target))
                if self.is_open(here, target):
                    listener = target.listeners.get(port)
                    if not isinstance(listener, Listener):
                        raise ConnectionRefusedError(
                            errno.ECONNREFUSED, f"Connect call failed {(target.name, port)}"
                        )
                    return listener
            if retry_s is not None:
                await asyncio.sleep(retry_s)
        raise TimeoutError(errno.ETIMEDOUT, f"Connect call failed {(target.name, port)}")

    def _open(
        self,
        process: Process,
        here: Host,
        listener: Listener,
        factory: Callable[[], Any],
    ) -> tuple[SimTransport, Any]:
        self._numbers += 1
        self.counts["connections"] += 1
        port = self._free_port()
        target = listener.bound.host
        places = (here.address, port), (target.address, listener.bound.port)
        near = SimTransport(self, self._numbers, process, here, target, *places)
        far = SimTransport(
            self, self._numbers, listener.process, target, here, places[1], places[0]
        )
        near.peer, far.peer = far, near
        near.is_near = True
        here.transports[id(near)] = near
        target.transports[id(far)] = far
        protocol = factory()
        near.begin(protocol)
        least, most = self.link(here, target).delay_s
        moment = self.loop.time() + least + self.loop.seeded.random() * (most - least)
        far.last_arrival = near.last_arrival = moment
        self.loop.call_in(listener.process, moment, far.accept, listener)
        return near, protocol

    async def create_datagram_endpoint(
        self,
        protocol_factory: Callable[[], Any],
        local_addr: tuple[str, int] | None = None,
        remote_addr: tuple[str, int] | None = None,
        **_: Any,
    ) -> tuple[SimDatagrams, Any]:
        process, host = self._here()
        port = local_addr[1] if local_addr and local_addr[1] else self._free_port()
        protocol = protocol_factory()
        made = SimDatagrams(self, process, host, port, remote_addr, protocol)
        host.datagrams.setdefault(port, []).append(made)
        protocol.connection_made(made)
        return made, protocol
