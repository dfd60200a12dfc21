"""A pair on one store, each a `broker run`, that fails over and back under random clients.

    pair = Pair(folder, options, changes)
    service = PairService(pair, world, server=database.server)
    asyncio.run(service.run_lives(10))

Each life of the service ends in one of: a kill or a stop of who serves, a primary that stands still
past its lease and goes on, a primary that comes back. Meanwhile a life may be disturbed: the owner
of a folder stands still, the database is restarted, the network to it or to the clients is cut, the
clock of one machine is stepped.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
import time
from typing import TYPE_CHECKING

from broker.client.errors import ClientError
from tests.broker.history.checker import problems
from tests.broker.history.moved_clock import MovedClock
from tests.broker.history.test_random_service import Service
from tests.broker.history.world import ORDERED
from tests.interop.our_broker import ROOT, OurBroker
from tests.proxy import Proxy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.history.world import World
    from tests.servers import Server

WAIT_S = 120
LEASE_MS = 1500
SHORT_LEASE = (
    "</database-store>",
    (
        f"<jdbc-lock-expiration>{LEASE_MS}</jdbc-lock-expiration>"
        "<jdbc-lock-renew-period>400</jdbc-lock-renew-period></database-store>"
    ),
)
STANDS_STILL = "SIGSTOP"
# Longer than a lease, and than what a backup on a folder takes to see a free lock.
PAUSE_S = 2.0
DISTURBED = 0.4
# Shorter than the lease, and longer.
CUT_S = (0.2, 4.0)
STEPS_S = (-3600, 3600)


class Node(OurBroker):
    """One of the pair; it may wait for long before it serves.

    Attributes:
        clock: of its machine.
        to_database: the network from there to the database; None of files.
    """

    to_database = None

    def __init__(self, folder, *changes, machine=None, **how):
        self.clock = MovedClock(folder)
        self._machine = machine
        self._relay = None
        how["environment"] = self.clock.environment
        super().__init__(folder, *changes, machine=machine, **how)

    def reach_database_by_relay(self, port, host="127.0.0.1"):
        """Have a network to the database of its own, which can be cut."""
        relay = self._relay = Proxy(port, host=host)
        self.to_database = relay if self._machine is None else self._machine.to_port(relay.port)
        self.change_configuration((f"127.0.0.1:{port}/", f"{host}:{relay.port}/"))

    def network_to_clients(self):
        """The network to its clients, which can be cut, and the address that they reach it by."""
        if self._machine is None:
            relay = Proxy(self.port)
            return relay, f"tcp://127.0.0.1:{relay.port}"
        return self._machine.to_other_ports(self._relay.port if self._relay else 0), self.uri

    def close_networks(self):
        """Also of those that are cut."""
        for one in (self.to_database, self._relay):
            if one is not None:
                one.close()

    def begin(self):
        """Start its process, and wait for nothing."""
        self._before = len(self.log())
        self.process = self._broker("run", self.folder)

    def said(self):
        return self.log()[self._before :]

    def hears_anew(self):
        """Leave out of said() what it has said so far."""
        self._before = len(self.log())

    def await_word(self, *texts):
        """Wait until it has logged one of these since begin()."""
        deadline = time.monotonic() + WAIT_S
        while not any(text in self.said() for text in texts):
            assert time.monotonic() < deadline, f"{texts!r} is not in {self.log()[-3000:]}"
            assert self.process.poll() is None, self.log()[-3000:]
            time.sleep(0.01)

    def serves(self):
        """Whether it has said since begin() that it serves, last of all; with its port."""
        said = self.said()
        serving = f"serving at {self.host}:"
        at = said.rfind(serving)
        if at < 0 or said.find("-> failing-back", at) >= 0:
            return False
        self.port = int(said[at + len(serving) :].split("\n")[0].split(";")[0])
        return True

    def has_ended(self):
        return self.process.poll() is not None


class Pair:
    """What `Service` wants of a broker: starts, ends, and where to find it.

    Args:
        folder: of both instances.
        options: of `broker create`, of both.
        changes: of broker.xml.
        version: see OurBroker.
        machines: of tests/machines.py, one for each and the network between them and this one;
            None has relays.

    Attributes:
        active: the one that serves.
        to_clients: the network between it and its clients; None before they know its address.
        outages_ms: from the end of one until the other one serves, by what the end was.
    """

    USER, PASSWORD = OurBroker.USER, OurBroker.PASSWORD

    def __init__(self, folder: Path, options, changes, *, version: Path = ROOT, machines=None):
        self._version = version
        self._machines = machines
        self.primary, self.backup = (
            self._made(folder / role, role, options, changes, machine)
            for role, machine in zip(("primary", "backup"), machines or (None, None), strict=True)
        )
        self.active = None
        self.to_clients = None
        self.outages_ms: dict[str, list[int]] = {}

    def _made(self, folder, role, options, changes, machine):
        folder.mkdir()
        role_options = ("--shared-store", *(("--backup",) if role == "backup" else ()))
        given = (*role_options, "--failover-on-shutdown", *options)
        how = {"options": given, "starts": False, "version": self._version}
        return Node(folder, *changes, machine=machine, **how)

    def reach_database_by_relay(self, port):
        host = "127.0.0.1" if self._machines is None else self._machines.address
        for node in self.nodes:
            node.reach_database_by_relay(port, host)

    @property
    def nodes(self):
        return self.primary, self.backup

    @property
    def uri(self):
        """Of who serves alone: each run of the history is one node's."""
        if self.to_clients is not None:
            self.to_clients.close()
        self.to_clients, address = self.active.network_to_clients()
        return address

    def log(self):
        return self.primary.log() + self.backup.log()

    def faults(self):
        """What both have logged with a traceback, each with its frames."""
        return re.findall(r"^.*\nTraceback.*\n(?: .*\n)*", self.log(), re.MULTILINE)

    def start(self):
        """Have the primary serve, and the backup wait, if neither does."""
        if self.active is None:
            self.primary.begin()
            self.await_service(self.primary)
            self.start_backup()

    def start_backup(self):
        """Return once it waits."""
        self.backup.begin()
        self.backup.await_word("waiting for the lock", "waiting as")

    def await_service(self, node):
        deadline = time.monotonic() + WAIT_S
        while not node.serves():
            assert time.monotonic() < deadline, node.log()[-3000:]
            assert not node.has_ended(), node.log()[-3000:]
            time.sleep(0.005)
        self.active = node

    def end(self, how):
        """Let who serves end; the other one serves afterwards. The exit status of who ended."""
        if self.active is self.backup:
            return self.come_back(how)
        if how == STANDS_STILL:
            return self._stand_still()
        began_s = time.monotonic()
        status = self.primary.end(how)
        self.await_service(self.backup)
        self.note(signal.Signals(how).name, began_s)
        return status

    def note(self, what, began_s, ended_s=None):
        ended_s = time.monotonic() if ended_s is None else ended_s
        self.outages_ms.setdefault(what, []).append(round((ended_s - began_s) * 1000))

    @property
    def other(self):
        """The one that does not serve."""
        return self.backup if self.active is self.primary else self.primary

    def _stand_still(self):
        """The primary stops past its lease, and goes on when the backup serves."""
        began_s = time.monotonic()
        self.primary.process.send_signal(signal.SIGSTOP)
        self.await_service(self.backup)
        self.note("SIGSTOP", began_s)
        self.primary.process.send_signal(signal.SIGCONT)
        return self.primary.process.wait(WAIT_S)

    def come_back(self, how=signal.SIGTERM):
        """The primary gets its place, from a backup that serves, or that is killed meanwhile."""
        began_s = time.monotonic()
        self.primary.begin()
        status = self.backup.end(how) if how == signal.SIGKILL else 0
        self.await_service(self.primary)
        self.note("failback" if how != signal.SIGKILL else "SIGKILL", began_s)
        if how == signal.SIGKILL:
            self.start_backup()
        else:
            self.backup.await_word("failing-back -> waiting")
            self.backup.hears_anew()
        return status

    def pause(self):
        """Who owns a folder stands still, and keeps it."""
        other = self.other
        self.active.process.send_signal(signal.SIGSTOP)
        time.sleep(PAUSE_S)
        is_taken = not other.has_ended() and other.serves()
        self.active.process.send_signal(signal.SIGCONT)
        assert not is_taken, "two own a folder"

    def ensure_ended(self):
        for node in self.nodes:
            if node.process is not None and not node.has_ended():
                node.process.send_signal(signal.SIGCONT)
            node.ensure_ended()
            node.close_networks()
        if self.to_clients is not None:
            self.to_clients.close()

    def show(self, figures, title):
        """Show the distribution of the outages."""
        for what, found in sorted(self.outages_ms.items()):
            figures(f"{title}, outage after {what}", outage_ms=found)


class PairService(Service):
    """A service of two; each life ends with another one that serves.

    Args:
        pair: of the two.
        world: of the clients.
        server: of the database, where a primary that stands still loses its place; None of files.
        is_paused: who serves stands still now and then, and keeps its place.
        has_one_clock: both are on one machine, as with SQLite, which takes the time from there.
    """

    def __init__(
        self,
        pair: Pair,
        world: World,
        *,
        server: Server | None = None,
        is_paused: bool = False,
        has_one_clock: bool = False,
    ):
        super().__init__(pair, world, is_kept=True)
        self._server = server
        self._has_one_clock = has_one_clock
        disturbances = [self._cut_off_clients, self._step_clock]
        counted = ["client_cuts", "clock_steps"]
        if is_paused:
            disturbances.append(self._pause)
            counted.append("pauses")
        if server is not None:
            disturbances += [self._restart_database, self._cut_off_database]
            counted += ["database_restarts", "database_cuts"]
        self.runs |= dict.fromkeys(counted, 0)
        world.seeded.shuffle(disturbances)
        # In turn: of few lives, chance alone would leave some out.
        self._disturbances = itertools.cycle(disturbances)

    async def end(self, how):
        world, pair = self.world, self.broker
        if world.chance(DISTURBED) and await self.disturb():
            return
        world.is_over = how != signal.SIGKILL
        expected = -how
        if pair.active is pair.backup:
            expected = -how if how == signal.SIGKILL else 0
        elif how == signal.SIGTERM:
            expected = 0
            if self._server is not None and world.chance(0.5):
                # Found out by itself: its storage has failed.
                how, expected = STANDS_STILL, 1
        self.runs["kills" if how == signal.SIGKILL else "stops"] += 1
        self.ended(await asyncio.to_thread(pair.end, how), expected)

    def ended(self, status, expected):
        self.world.is_over = True
        if status != expected:
            self.world.history.problems.append(f"ended: with status {status}, not {expected}")

    async def disturb(self):
        """Let something happen that the service survives; whether the life is over with it."""
        return await next(self._disturbances)()

    async def _pause(self):
        self.runs["pauses"] += 1
        await asyncio.to_thread(self.broker.pause)
        return False

    async def _cut_off_clients(self):
        """No byte comes or goes for a while; connections are reset, or outlast it."""
        self.runs["client_cuts"] += 1
        await self._cut_off(self.broker.to_clients)
        return False

    async def _cut_off(self, relay):
        seeded = self.world.seeded
        (relay.cut if seeded.random() < 0.5 else relay.stall)()
        await asyncio.sleep(seeded.uniform(*CUT_S))
        relay.resume()

    async def _step_clock(self):
        """The clock of a machine is wrong by an hour from now on, or right again."""
        pair, seeded = self.broker, self.world.seeded
        self.runs["clock_steps"] += 1
        stepped = pair.nodes if self._has_one_clock else (seeded.choice(pair.nodes),)
        seconds = 0 if stepped[0].clock.moved_by_s else seeded.choice(STEPS_S)
        for node in stepped:
            node.clock.step_to(seconds)
        # Longer than a lease: who serves keeps its place.
        await asyncio.sleep(PAUSE_S)
        if pair.active.has_ended():
            self.world.history.problems.append("ended: after a step of a clock")
        await self._await_answer()
        return self.world.is_over

    async def _restart_database(self):
        """Under load; who serves goes on, or the other one does, where the lease has expired."""
        server = self._server
        self.runs["database_restarts"] += 1

        async def restart():
            await asyncio.to_thread(server.kill9 if self.world.chance(0.5) else server.stop)
            await asyncio.to_thread(server.start)

        return await self._without_database("database restart", restart)

    async def _cut_off_database(self):
        """Who serves does not reach it, and the other one does."""
        self.runs["database_cuts"] += 1
        relay = self.broker.active.to_database
        return await self._without_database("database cut", lambda: self._cut_off(relay))

    async def _without_database(self, what, outage):
        """What clients miss ends when the other one serves, or else when this one answers again."""
        world, pair = self.world, self.broker
        world.may_refuse = True
        began_s = time.monotonic()
        waits = pair.other.process is not None and not pair.other.has_ended()
        taking_over = asyncio.ensure_future(_served_s(pair.other))
        await outage()
        await self._await_answer()
        if waits and taking_over.done():
            pair.note(f"{what}, taken over", began_s, taking_over.result())
        else:
            taking_over.cancel()
            pair.note(f"{what}, {'not taken over' if waits else 'with no other one'}", began_s)
        world.may_refuse = False
        return world.is_over

    async def _await_answer(self):
        async with asyncio.timeout(WAIT_S):
            while not await self._is_answered():  # noqa: ASYNC110 -- no event.
                await asyncio.sleep(0.05)

    async def _is_answered(self):
        """Whether something was recorded, by who serves or by who took over meanwhile."""
        world, pair = self.world, self.broker
        if pair.active.has_ended():
            world.is_over = True
            await self._taken_over()
            return True
        try:
            async with asyncio.timeout(WAIT_S / 10), world.client() as client:
                session = await client.session()
                name = world.name("probe")
                await session.create_queue(name)
                await session.delete_queue(name)
        except (ClientError, OSError, TimeoutError):
            return False
        return True

    async def _taken_over(self):
        """The lease had expired: who served has ended, as a failure of its storage."""
        pair = self.broker
        self.ended(pair.active.process.returncode, 1)
        if pair.active is pair.primary:
            await asyncio.to_thread(pair.await_service, pair.backup)
            return
        await asyncio.to_thread(pair.primary.begin)
        await asyncio.to_thread(pair.await_service, pair.primary)
        await asyncio.to_thread(pair.start_backup)

    async def run_lives(self, lives):
        """So many lives under load, then what is left is taken; what was wrong."""
        for _ in range(lives):
            await self.live(is_whole=False)
        return await self.finish()

    async def finish(self):
        """Take what is left, without load; what was wrong in all."""
        await self.start()
        await self.empty()
        return problems(self.world.history, ORDERED)


async def _served_s(node):
    """When it serves, by time.monotonic()."""
    while node.process is None or node.has_ended() or not node.serves():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return time.monotonic()
