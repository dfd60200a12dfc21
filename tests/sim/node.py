"""A broker on a simulated machine, and what it has of that: clock, ids, chance, network, disk.

    node = Node(network, "a", seeded)
    await node.start()   node.kill()   await node.start()   node.power_off()   node.power_on()   …

The broker is the real one. Each start is a process of its own; what the disk has outlives it.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.environment import Environment
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.storage.open import Ownership, Stores
from broker.transport.acceptor import AcceptorOptions
from tests.sim.files import MemoryBodies, MemoryFolders
from tests.sim.loop import THREAD_S
from tests.sim.record_log import Disk, RecordLog
from tests.sim.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.sim.datagrams import SimDatagrams
    from tests.sim.loop import Process, SimLoop
    from tests.sim.network import Host, Network
    from tests.sim.tcp import BoundSocket, Listener

PORT = 61616
# Least and most seconds of a sync: an NVMe drive, an SSD, a disk that turns.
SYNC_S = ((0.0001, 0.002), (0.001, 0.01), (0.01, 0.1))
# Where bytes of messages would be spilled: a simulation never has so many.
_SPILL_FOLDER = Path("/var/tmp")


class HostClock:
    """The clock of a machine, for one process on it."""

    def __init__(self, host: Host) -> None:
        self.now_ms = host.clock_ms
        self.now_s = host.clock_s
        self.monotonic_s = host.network.loop.time


class SeededIds:
    """Ids that follow from a seed."""

    def __init__(self, seeded: random.Random) -> None:
        self._seeded = seeded

    def time_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._seeded.getrandbits(128), version=1)

    def random_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._seeded.getrandbits(128), version=4)

    def token(self, size: int) -> str:
        return self._seeded.randbytes(size).hex()


class _Port:
    """A port that was taken; see broker.environment.Listener."""

    def __init__(self, network: Network, bound: BoundSocket) -> None:
        self._network = network
        self._bound = bound
        self._listener: Listener | None = None
        self.host, self.port = bound.getsockname()

    async def listen(self, accept: Callable[[], Any], *, ssl: Any, **_: Any) -> None:
        self._listener = await self._network.create_server(accept, sock=self._bound, ssl=ssl)

    def close(self) -> None:
        if self._listener is None:
            self._bound.close()
        else:
            self._listener.close()


class _DatagramPort(asyncio.DatagramProtocol):
    """See broker.environment.DatagramSocket."""

    transport: SimDatagrams

    def __init__(self, received: Callable[[bytes], object] | None) -> None:
        self._received = received

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        del addr
        if self._received is not None:
            self._received(data)

    def send(self, data: bytes, host: str, port: int) -> None:
        self.transport.sendto(data, (host, port))

    def close(self) -> None:
        self.transport.close()


async def _open_port(
    network: Network, place: tuple[str, int], received: Callable[[bytes], object] | None
) -> _DatagramPort:
    made = await network.create_datagram_endpoint(lambda: _DatagramPort(received), place)
    return made[1]


class Streams:
    """The network as a process sees it; see broker.environment.Network."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def bind(self, host: str, port: int) -> list[_Port]:
        return [_Port(self._network, self._network.bind(port, host))]

    async def connect(
        self, make: Callable[[], Any], host: str, port: int, *, ssl: Any, server_hostname: Any
    ) -> Any:
        del server_hostname
        return (await self._network.create_connection(make, host, port, ssl=ssl))[1]

    async def open_datagrams(self, host: str | None, port: int) -> _DatagramPort:
        return await _open_port(self._network, (host or "0.0.0.0", port), None)

    async def join_group(
        self, group: str, port: int, interface: str | None, received: Callable[[bytes], object]
    ) -> _DatagramPort:
        made = await _open_port(self._network, (interface or "0.0.0.0", port), received)
        made.transport.group = group
        return made


class _Work(Future):  # type: ignore[type-arg]
    """Work of a thread; done by a step of the loop, or when somebody waits for it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work: Callable[[], Any] | None = work

    def do(self) -> None:
        work, self._work = self._work, None
        if work is None or not self.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - the caller that asked gets it.
            self.set_exception(error)
        else:
            self.set_result(result)


class SeededExecutor(Executor):
    """Threads that are steps of the loop: work of one is done in order, of several in any."""

    def __init__(self, loop: SimLoop, thread_count: int) -> None:
        self._loop = loop
        self._is_ordered = thread_count == 1
        self._last = 0.0
        self._pending: dict[_Work, None] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        work = _SteppedWork(self, lambda: fn(*args, **kwargs))
        self._pending[work] = None
        moment = self._loop.time() + self._loop.seeded.random() * THREAD_S
        if self._is_ordered:
            moment = self._last = max(moment, self._last + 1e-9)
        self._loop.call_at(moment, self.step, work)
        return work

    def step(self, work: _Work) -> None:
        """Do it now, and what has to come before it."""
        if self._is_ordered:
            for one in list(self._pending):
                if one is work or work not in self._pending:
                    break
                del self._pending[one]
                one.do()
        self._pending.pop(work, None)
        work.do()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait, cancel_futures
        for one in list(self._pending):
            self.step(one)


class _SteppedWork(_Work):
    """The caller that waits for it does it."""

    def __init__(self, executor: SeededExecutor, work: Callable[[], Any]) -> None:
        super().__init__(work)
        self._executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self._executor.step(self)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._executor.step(self)
        return super().exception(timeout)


def environment_of(process: Process, seeded: random.Random) -> Environment:
    """What a process has of its machine."""
    return Environment(
        clock=HostClock(process.host),
        ids=SeededIds(random.Random(seeded.getrandbits(64))),
        chance=random.Random(seeded.getrandbits(64)),
        network=Streams(process.loop.network),
        executor=lambda count, _: SeededExecutor(process.loop, count),
    )


def memory_stores(
    bindings: MemoryStore,
    messages: MemoryStore,
    *,
    node_id: str,
    pages: MemoryFolders,
    large: MemoryBodies,
    is_shared: bool = False,
    activated: Callable[[], object] = lambda: None,
    paused: Callable[[], object] = lambda: None,
    closers: Sequence[Callable[[], object]] = (),
    check_lock: Callable[[], object] | None = None,
    ownership: Ownership | None = None,
) -> Stores:
    """Give a broker its stores; see broker.storage.open.Stores."""
    return Stores(
        bindings=bindings,  # type: ignore[arg-type] # by its methods.
        messages=messages,  # type: ignore[arg-type]
        node_id=node_id,
        is_shared=is_shared,
        large=large,  # type: ignore[arg-type]
        pages=pages,  # type: ignore[arg-type]
        history=None,
        folders=(),
        spill_folder=_SPILL_FOLDER,
        page_size_max=None,
        sync_transactional=True,
        sync_non_transactional=True,
        _activated=activated,
        _paused=paused,
        _closers=list(closers),
        _check_lock=check_lock,
        ownership=ownership,
    )


def _told(task: asyncio.Task[None]) -> None:
    """What a task comes upon whose process was killed in its middle means nothing."""
    task.cancelled() or task.exception()


class NodeStorage:
    """What a node keeps."""

    def __init__(self, seeded: random.Random, loop: SimLoop) -> None:
        self.seeded = seeded
        self.disk = Disk(seeded)
        self.disk.sync_s = seeded.choice(SYNC_S)
        self.bindings = RecordLog(self.disk)
        self.messages = RecordLog(self.disk)
        self.pages = MemoryFolders(self.disk)
        self.large = MemoryBodies(self.disk)
        self.node_id = str(uuid.UUID(int=seeded.getrandbits(128), version=1))
        self.loop = loop
        self.store_type = MemoryStore

    async def open_stores(self, options: BrokerOptions, *, on_lost: Any, wait: Any) -> Stores:
        """Open them; see Broker."""
        del options, on_lost, wait
        clock = self.loop.time
        bindings = self.store_type(self.bindings, clock=clock)
        messages = self.store_type(self.messages, clock=clock)
        bindings.open()
        messages.open()
        return memory_stores(
            bindings, messages, node_id=self.node_id, pages=self.pages, large=self.large
        )

    def crash(self, *, is_power: bool) -> int:
        """Leave one of the states that a crash may; how many records were lost."""
        seeded = self.seeded
        lost = self.bindings.crash(seeded, is_power=is_power)
        lost += self.messages.crash(seeded, is_power=is_power)
        self.pages.crash(seeded, is_power=is_power)
        self.large.crash(seeded, is_power=is_power)
        self.disk.fails = self.disk.fails_to_sync = False
        return lost


class Node:
    """A machine with a broker.

    Args:
        network: it is part of.
        name: of the machine, by which others find it.
        seeded: decides what its disk does, and its ids.
        options: of the broker, but for where it keeps what, and listens.
        broker_type: a subclass, with a fault in it.
        storage: makes what it keeps; None is a disk of its own.

    Attributes:
        process: that runs; None while none does.
        ended: a future that ends with the process.
        process_number: which process it is, from 1.
        broker: of that process.
    """

    def __init__(
        self,
        network: Network,
        name: str,
        seeded: random.Random,
        options: dict[str, Any] | None = None,
        broker_type: type[Broker] = Broker,
        storage: Callable[[Host, random.Random], Any] | None = None,
    ) -> None:
        self.network = network
        self.loop = network.loop
        self.name = name
        self.host = network.host(name)
        self.seeded = seeded
        self.storage = (
            NodeStorage(seeded, self.loop) if storage is None else storage(self.host, seeded)
        )
        self.options = options or {}
        self.broker_type = broker_type
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.process_number = 0
        self.ended: asyncio.Future[None] = self.loop.create_future()

    @property
    def members(self) -> tuple[Node, ...]:
        """Itself; a pair has two."""
        return (self,)

    @property
    def uri(self) -> str:
        """For clients."""
        return f"tcp://{self.name}:{PORT}"

    def run_of(self, host: str) -> int:
        """Which process a client has that is connected to a host."""
        del host
        return self.process_number

    @property
    def is_active(self) -> bool:
        """Whether clients may come."""
        return self.broker is not None and self.broker.is_active

    async def start(self) -> None:
        """Start a process with the broker, and return once it is active, or was killed.

        Raises:
            JournalError, BrokerError: as Broker.start().
        """
        assert self.process is None, "it runs"
        self.process_number += 1
        process = self.process = self.loop.process(self.name, self.host)
        self.loop.note(b"start %b" % self.name.encode())
        starting = process.spawn(self._start(process))
        self.ended = self.loop.create_future()
        await asyncio.wait((starting, self.ended), return_when=asyncio.FIRST_COMPLETED)
        if self.process is process:
            await starting
        else:
            starting.add_done_callback(_told)

    async def _start(self, process: Process) -> None:
        options = BrokerOptions(
            name=self.name,
            acceptors=(AcceptorOptions(host="0.0.0.0", port=PORT),),
            **self.options,
        )
        self.broker = self.broker_type(
            options,
            environment=environment_of(process, self.seeded),
            open_stores=self.storage.open_stores,
        )
        await self.broker.start()

    async def stop(self) -> None:
        """Stop the broker, and end its process."""
        process = self.process
        assert process is not None, "it runs"
        stopping = process.spawn(self._stop())
        await asyncio.wait((stopping, self.ended), return_when=asyncio.FIRST_COMPLETED)
        if self.process is process:
            self._end()
            await stopping
        else:
            stopping.add_done_callback(_told)

    async def _stop(self) -> None:
        assert self.broker is not None, "it runs"
        await self.broker.stop()

    def kill(self) -> int:
        """Kill the process; how many records are lost."""
        self.loop.note(b"kill %b" % self.name.encode())
        self._end()
        return self.storage.crash(is_power=False)

    def power_off(self) -> int:
        """Take the machine's power; how many records are lost."""
        self.loop.note(b"power off %b" % self.name.encode())
        self._end(is_power=True)
        return self.storage.crash(is_power=True)

    def power_on(self) -> None:
        """Give it power again; nothing is started."""
        self.network.power_on(self.host)

    def _end(self, *, is_power: bool = False) -> None:
        process, broker = self.process, self.broker
        self.process = self.broker = None
        if broker is not None and hasattr(broker, "parts"):
            # It ends in the middle of its work. The settings outlive it, and they and its messages
            # would keep all of it in memory.
            broker.parts.postoffice.close()
            broker.parts.retroactive.close()
        if process is not None:
            process.kill()
            if not self.ended.done():
                self.ended.set_result(None)
            if is_power:
                self.network.power_off(self.host)
            else:
                self.network.process_ended(process)
