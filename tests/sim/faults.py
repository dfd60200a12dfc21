"""What is done to nodes, links, stores and clocks: begun at a moment of the story, mended later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from journal.errors import JournalError
from tests.sim.network import BANDWIDTH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.sim.network import Link
    from tests.sim.node import Node
    from tests.sim.run import Run

STEP_MS = 3_600_000
STORE_STEP_MS = 20_000
SLOW_S = (0.05, 0.5)
STALL_S = 0.2
NARROW = 50_000.0  # Bytes a second.


async def kill(run: Run, seconds: float, name: str) -> None:
    """The process of a node ends at once; it is started again."""
    node = run.node(name)
    if node.process is not None:
        node.kill()
    await asyncio.sleep(seconds)
    await start(run, node)


async def power(run: Run, seconds: float, name: str) -> None:
    """The machine of a node loses its power, gets it back, and the broker is started."""
    node = run.node(name)
    if node.host.is_up:
        node.power_off()
    await asyncio.sleep(seconds)
    await start(run, node)


async def stop(run: Run, seconds: float, name: str) -> None:
    """The broker is stopped in good order, and started again."""
    node = run.node(name)
    if node.is_active:
        try:
            await node.stop()
        except JournalError as error:
            run.told(f"stop of {name}: {error}")
    await asyncio.sleep(seconds)
    await start(run, node)


async def start(run: Run, node: Node) -> None:
    """Start a node that does not run; a start that fails is a fault of the broker.

    One of a pair may wait for the other: it is started, and not waited for.
    """
    if node.name in run.absent:
        return
    if not node.host.is_up:
        node.power_on()
    if node.process is None:
        try:
            await node.start()
        except (JournalError, BrokerError) as error:
            if not node.storage.disk.is_failing:
                run.problem(f"start: of {node.name}: {type(error).__name__}: {error}")
            node.kill()


async def pause(run: Run, seconds: float, name: str) -> None:
    """The process of a node runs nothing for a while."""
    process = run.node(name).process
    if process is not None:
        process.pause()
        await asyncio.sleep(seconds)
        process.go_on()


async def pause_client(run: Run, seconds: float, name: str) -> None:
    """The process of a client runs nothing for a while."""
    process = run.client_process(name)
    process.pause()
    await asyncio.sleep(seconds)
    process.go_on()


async def pause_then_kill(run: Run, seconds: float, name: str) -> None:
    """The process of a node stands still, and is killed as it goes on."""
    node = run.node(name)
    process = node.process
    if process is not None:
        process.pause()
        await asyncio.sleep(seconds)
        process.go_on()
    await kill(run, seconds, name)


async def stall(run: Run, seconds: float, name: str) -> None:
    """The process of a node hardly runs: its timers are late."""
    end = run.loop.time() + seconds
    process = run.node(name).process
    while process is not None and process.is_alive and run.loop.time() < end:
        process.pause()
        await asyncio.sleep(run.seeded.uniform(0.005, STALL_S))
        process.go_on()
        await asyncio.sleep(run.seeded.uniform(0, STALL_S / 4))


async def partition(run: Run, seconds: float, first: str, second: str) -> None:
    """Two machines do not reach each other."""
    await _cut(run, seconds, first, second, both=True)


async def one_way(run: Run, seconds: float, first: str, second: str) -> None:
    """What the first sends does not reach the second."""
    await _cut(run, seconds, first, second, both=False)


async def _cut(run: Run, seconds: float, first: str, second: str, *, both: bool) -> None:
    source, target = run.host(first), run.host(second)
    run.network.cut(source, target, both=both)
    await asyncio.sleep(seconds)
    run.network.mend(source, target)


async def late(run: Run, seconds: float, first: str, second: str) -> None:
    """What the first sends to the second over connections of now arrives late, also their end."""
    second_host = run.host(second)
    for transport in list(run.host(first).transports.values()):
        if transport.peer_host is second_host:
            run.network.delay(transport, seconds)
    await asyncio.sleep(seconds)


async def slow_link(run: Run, seconds: float, first: str, second: str) -> None:
    """What two machines send to each other takes long."""
    links = _links(run, first, second)
    for one in links:
        one.delay_s = SLOW_S
    await asyncio.sleep(seconds)
    for one in links:
        one.delay_s = run.network.delay_s


async def narrow_link(run: Run, seconds: float, first: str, second: str) -> None:
    """Between two machines few bytes go through."""
    links = _links(run, first, second)
    for one in links:
        one.bandwidth = NARROW
    await asyncio.sleep(seconds)
    for one in links:
        one.bandwidth = BANDWIDTH


def _links(run: Run, first: str, second: str) -> tuple[Link, Link]:
    one, other = run.host(first), run.host(second)
    return run.network.link(one, other), run.network.link(other, one)


async def no_name(run: Run, seconds: float, name: str) -> None:
    """The name of a machine is unknown."""
    run.network.name(name)
    await asyncio.sleep(seconds)
    run.network.name(name, run.host(name))


async def reset(run: Run, seconds: float, name: str) -> None:
    """All connections of a machine are lost."""
    del seconds
    for transport in list(run.host(name).transports.values()):
        transport.cut_off()


async def slow_disk(run: Run, seconds: float, name: str) -> None:
    """Writes and syncs take long; of a pair those of its store."""
    stores = {one.store.host.name: one.store for one in run.pairs.values()}
    disk = stores[name].disk if name in stores else run.node(name).storage.disk
    before = disk.sync_s
    if before is SLOW_S:
        return  # Another fault has made it so, and mends it.
    disk.sync_s = SLOW_S
    await asyncio.sleep(seconds)
    disk.sync_s = before


async def full_disk(run: Run, seconds: float, name: str) -> None:
    """The disk has no room."""
    disk = run.node(name).storage.disk
    disk.is_full = True
    await asyncio.sleep(seconds)
    disk.is_full = False


async def fail_disk(run: Run, seconds: float, name: str) -> None:
    """The disk fails: the broker ends by itself, and is started again with a disk that works."""
    node = run.node(name)
    process = node.process
    node.storage.disk.fails = True
    await asyncio.sleep(seconds)
    if node.process is process and process is not None:
        node.kill()
    node.storage.disk.fails = False
    await start(run, node)


async def fail_sync(run: Run, seconds: float, name: str) -> None:
    """The disk takes what is written, and cannot sync it; as `fail_disk` else."""
    node = run.node(name)
    process = node.process
    node.storage.disk.fails_to_sync = True
    await asyncio.sleep(seconds)
    if node.process is process and process is not None:
        node.kill()
    node.storage.disk.fails_to_sync = False
    await start(run, node)


async def clock(run: Run, seconds: float, name: str) -> None:
    """The wall clock is an hour wrong, and is set right."""
    host = run.host(name)
    # Of a database: a lease lasts as much longer, where its holder ends meanwhile.
    size = (
        STORE_STEP_MS if any(name == one.store.host.name for one in run.pairs.values()) else STEP_MS
    )
    step = size if run.seeded.random() < 0.5 else -size
    host.clock_offset_ms += step
    await asyncio.sleep(seconds)
    host.clock_offset_ms -= step


async def add(run: Run, seconds: float, name: str) -> None:
    """A node that was not there comes to stay."""
    run.begin_beside(name)
    await asyncio.sleep(seconds)


async def remove(run: Run, seconds: float, name: str) -> None:
    """A node is stopped in good order, and does not come back while the story goes on."""
    run.absent.add(name)
    await stop(run, seconds, name)


async def kill_store(run: Run, seconds: float, name: str) -> None:
    """What serves the store of a pair is killed, and started again."""
    await _end_store(run, seconds, name, is_power=False)


async def power_store(run: Run, seconds: float, name: str) -> None:
    """The machine with the store of a pair loses its power, and gets it back."""
    await _end_store(run, seconds, name, is_power=True)


async def _end_store(run: Run, seconds: float, name: str, *, is_power: bool) -> None:
    store = run.store(name)
    store.kill(is_power=is_power)
    await asyncio.sleep(seconds)
    await store.start()


async def forget_locks(run: Run, seconds: float, name: str) -> None:
    """What keeps the locks of a shared folder is started again, without those it had given."""
    run.store(name).forget_locks()
    await asyncio.sleep(seconds)


FAULTS: dict[str, Callable[..., Awaitable[None]]] = {
    one.__name__: one
    for one in (
        *(kill, power, stop, pause, pause_client, pause_then_kill, stall, clock),
        *(partition, one_way, reset, late, slow_link, narrow_link, no_name),
        *(slow_disk, full_disk, fail_disk, fail_sync),
        *(add, remove, kill_store, power_store, forget_locks),
    )
}
