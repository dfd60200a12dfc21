"""A broker without threads, whose journals and pages go on when the test says so, by a seed.

Each turn some appends become durable, a piece of work on pages is done, or nothing happens: who
waits for what, and in which order it comes, is the seed's. A crash is a copy of the folder between
two turns, or between two calls of a page folder. The journals are cut anywhere behind what is
durable. A power failure takes what was not synced from the ends of the pages too.
"""

import asyncio
import random
import shutil
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from broker.options import BrokerOptions
from broker.server import composition, loading
from broker.server.server import Broker
from broker.storage.large_files import LargeFiles
from broker.storage.open import Stores
from broker.storage.page_folders import FileFolder, FileFolders
from journal.errors import JournalError


class Op(NamedTuple):
    kind: str
    record_id: int
    user_type: int
    body: bytes
    tx: int | None


class Item(NamedTuple):
    record_id: int
    user_type: int
    is_update: bool
    body: bytes


def replay(ops):
    """What a load of these gives: live records in order, prepared transactions."""
    live, open_ones, prepared = {}, {}, {}

    def apply(op):
        if op.kind == "delete":
            del live[op.record_id]
        elif op.kind == "add":
            live[op.record_id] = [op]
        elif op.record_id in live:
            live[op.record_id].append(op)

    for op in ops:
        match op.kind:
            case "prepare":
                prepared[op.tx] = op.body
            case "commit":
                for part in open_ones.pop(op.tx):
                    apply(part)
                prepared.pop(op.tx, None)
            case "rollback":
                del open_ones[op.tx]
                prepared.pop(op.tx, None)
            case _ if op.tx is not None:
                open_ones.setdefault(op.tx, []).append(op)
            case _:
                apply(op)
    return live, {tx: (extra, open_ones[tx]) for tx, extra in prepared.items()}


def item_of(op):
    return Item(op.record_id, op.user_type, op.kind == "update", op.body)


class SimulatedStore:
    """A RecordStore in memory. Durable is what `step` or a wait has made so."""

    def __init__(self, ops=()):
        self.ops = list(ops)
        self.durable = len(self.ops)
        self._waiting = []

    def _append(self, op, sync, done, wait):
        self.ops.append(op)
        if done is not None:
            self._waiting.append((len(self.ops), done))
        if wait and sync is not False:
            self.sync()
        return len(self.ops)

    def add(
        self,
        record_id,
        user_type,
        body,
        *,
        tx=None,
        sync=None,
        done=None,
        wait=True,
        flush_now=True,
        makes_room=False,
    ):
        return self._append(Op("add", record_id, user_type, bytes(body), tx), sync, done, wait)

    def update(
        self,
        record_id,
        user_type,
        body,
        *,
        tx=None,
        sync=None,
        done=None,
        wait=True,
        flush_now=True,
        makes_room=False,
    ):
        return self._append(Op("update", record_id, user_type, bytes(body), tx), sync, done, wait)

    def delete(self, record_id, body=b"", *, tx=None, sync=None, done=None, wait=True):
        return self._append(Op("delete", record_id, 0, bytes(body), tx), sync, done, wait)

    def prepare(self, tx, extra=b"", *, sync=None, done=None, wait=True):
        return self._append(Op("prepare", 0, 0, bytes(extra), tx), sync, done, wait)

    def commit(self, tx, *, sync=None, done=None, wait=True):
        return self._append(Op("commit", 0, 0, b"", tx), sync, done, wait)

    def rollback(self, tx, *, sync=None, done=None, wait=True):
        return self._append(Op("rollback", 0, 0, b"", tx), sync, done, wait)

    def load(self, on_batch=None, *, progress=None):
        live, prepared = replay(self.ops)
        on_batch([item_of(op) for ops in live.values() for op in ops])
        max_id = max((op.record_id for op in self.ops), default=-1)
        found = [
            SimpleNamespace(
                tx_id=tx, extra=extra, records=[item_of(op) for op in ops if op.kind != "delete"]
            )
            for tx, (extra, ops) in prepared.items()
        ]
        return SimpleNamespace(max_id=max_id, prepared=found)

    def step(self, count):
        self.durable = min(len(self.ops), self.durable + count)
        self.reap()

    def sync(self):
        self.durable = len(self.ops)

    def flush_now(self):
        pass  # When a record is durable is for the test to say.

    def expect(self):
        pass

    def reserve_ends(self, count):
        return True

    def reap(self):
        while self._waiting and self._waiting[0][0] <= self.durable:
            self._waiting.pop(0)[1](None)

    def attach_loop(self, loop):
        pass

    def detach_loop(self):
        pass

    def close(self):
        pass

    def __len__(self):
        return len(replay(self.ops)[0])


class SimulatedJob:
    def __init__(self, owner, work, done):
        self._owner = owner
        self._work = work
        self._done = done
        self._result = (None, None)

    def work(self):
        work, self._work = self._work, None
        if work is not None:
            try:
                self._result = (work(), None)
            except JournalError as error:
                self._result = (None, error)

    def finish(self):
        while self in self._owner.jobs:
            self._owner.step()

    def wait(self):
        for job in self._owner.jobs[: self._owner.jobs.index(self) + 1]:
            job.work()
        return self._result[1] is None

    def tell(self):
        self._done(*self._result)


class SimulatedWork:
    """PageWork that is done, and told, when somebody says so."""

    def __init__(self):
        self.jobs = []

    def run(self, work, done):
        self.jobs.append(SimulatedJob(self, work, done))
        return self.jobs[-1]

    def step(self):
        self.jobs[0].work()
        self.jobs.pop(0).tell()

    def close(self):
        for job in self.jobs:
            job.work()
        self.jobs.clear()


class Crash(NamedTuple):
    folder: Path
    bindings: list
    messages: list
    expected: object


class World:
    """One life of a broker on a folder.

    Args:
        folder: of pages and large messages.
        chance: decides about everything.
        monkeypatch: a context of it, undone after the life.
        crash: what an earlier life left.
        options: of the broker.
    """

    def __init__(self, folder, chance, monkeypatch, crash=None, **options):
        self.folder = Path(folder)
        self.chance = chance
        self.crashes = []
        # What is to be remembered with a crash; None where no crash is wanted.
        self.expect = None
        self.crash_chance = 0.0
        self.bindings = SimulatedStore(crash.bindings if crash else ())
        self.messages = SimulatedStore(crash.messages if crash else ())
        self.works = []
        self._synced = {
            str(file.relative_to(self.folder)): file.stat().st_size
            for file in self.folder.glob("paging/*/*.page")
        }
        # Names of folders decide which is loaded first.
        monkeypatch.setattr(uuid, "uuid1", lambda: uuid.UUID(int=chance.getrandbits(128)))
        monkeypatch.setattr(loading, "open_stores", self._open)
        monkeypatch.setattr(composition, "ThreadWork", self._work)
        for name in ("keep_room", "append", "sync", "delete", "destroy"):
            monkeypatch.setattr(FileFolder, name, self._watched(getattr(FileFolder, name)))
        self.broker = Broker(BrokerOptions(store=object(), acceptors=(), **options))

    def _open(self, options, **how):
        return Stores(
            bindings=self.bindings,
            messages=self.messages,
            node_id="00000000-0000-0000-0000-000000000000",
            is_shared=False,
            large=LargeFiles(self.folder / "largemessages"),
            pages=self._folders(),
            history=None,
            folders=(),
            spill_folder=self.folder,
            page_size_max=None,
            sync_transactional=True,
            sync_non_transactional=True,
            _activated=lambda: None,
            _paused=lambda: None,
            _closers=[],
        )

    def _folders(self):
        """Where pages are."""
        return FileFolders(self.folder / "paging")

    def pages_left(self):
        """Names of the pages that are there."""
        return [file.name for file in self.folder.glob("paging/*/*.page")]

    def _work(self, loop, executor):
        self.works.append(SimulatedWork())
        return self.works[-1]

    def _watched(self, real):
        def call(folder, *arguments, **how):
            self.maybe_crash()
            result = real(folder, *arguments, **how)
            if real.__name__ == "sync":
                file = folder._file(arguments[0])
                self._synced[str(file.relative_to(self.folder))] = file.stat().st_size
            self.maybe_crash()
            return result

        call.__name__ = real.__name__
        return call

    # --- turns --------------------------------------------------------------------------------

    async def turn(self):
        """Let the loop turn once, and something be done by the disk, perhaps."""
        await asyncio.sleep(0)
        self.maybe_crash()
        for store in (self.bindings, self.messages):
            if self.chance.random() < 0.4:
                store.step(self.chance.choice([1, 2, 5, 1000]))
                self.maybe_crash()
        for work in self.works:
            if work.jobs and self.chance.random() < 0.4:
                work.step()
                self.maybe_crash()

    async def until(self, is_so, turns=3000):
        """Run everything until a condition holds."""
        for _ in range(turns):
            if is_so():
                return
            for _ in range(3):
                await asyncio.sleep(0)
            self.bindings.step(1000)
            self.messages.step(1000)
            for work in self.works:
                while work.jobs:
                    work.step()
        raise AssertionError("it never came")

    # --- crashes ------------------------------------------------------------------------------

    def maybe_crash(self):
        if self.expect is not None and self.chance.random() < self.crash_chance:
            self.crashes.append(self._crash())

    def _crash(self):
        target = self.folder.with_name(f"{self.folder.name}-{len(self.crashes)}")
        target.mkdir()
        for name in ("paging", "largemessages"):
            if (self.folder / name).exists():
                shutil.copytree(self.folder / name, target / name)
        if self.chance.random() < 0.5:
            self._lose_power(target)
        return Crash(target, self._cut(self.bindings), self._cut(self.messages), self.expect())

    def _cut(self, store):
        least, most = store.durable, len(store.ops)
        return store.ops[: self.chance.choice([least, most, self.chance.randint(least, most)])]

    def _lose_power(self, target):
        for file in sorted(target.glob("paging/*/*.page")):
            kept = self._synced.get(str(file.relative_to(target)), 0)
            size = file.stat().st_size
            if size > kept:
                with file.open("r+b") as opened:
                    opened.truncate(self.chance.choice([kept, self.chance.randint(kept, size)]))


def chance_of(seed):
    return random.Random(seed)
