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
from typing import NamedTuple

from broker.options import BrokerOptions
from broker.server import composition
from broker.server.server import Broker
from broker.storage.large_files import LargeFiles
from broker.storage.open import Stores
from broker.storage.page_folders import FileFolder, FileFolders
from journal.errors import JournalError
from tests.broker.memory_store import MemoryStore


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
        self.bindings = MemoryStore(crash.bindings if crash else ())
        self.messages = MemoryStore(crash.messages if crash else ())
        self.works = []
        self._synced = {
            str(file.relative_to(self.folder)): file.stat().st_size
            for file in self.folder.glob("paging/*/*.page")
        }
        # Names of folders decide which is loaded first.
        monkeypatch.setattr(uuid, "uuid1", lambda: uuid.UUID(int=chance.getrandbits(128)))
        monkeypatch.setattr(composition, "ThreadWork", self._work)
        for name in ("keep_room", "append", "sync", "delete", "destroy"):
            monkeypatch.setattr(FileFolder, name, self._watched(getattr(FileFolder, name)))
        self.broker = Broker(
            BrokerOptions(store=object(), acceptors=(), **options), open_stores=self._open
        )

    async def _open(self, options, **how):
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
