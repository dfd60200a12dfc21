"""Brokers with small memory and small pages, one run after the other on one folder."""

import asyncio
import os

from broker.options import BrokerOptions
from broker.settings.policies import AddressFullPolicy
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from tests.broker import test_recovery
from tests.broker.bench import message
from tests.broker.test_recovery import durable
from tests.live_copy import copy_live

WAIT_S = 60
SMALL = {
    "max_size_messages": 10,
    "page_size_bytes": 4096,
    "max_delivery_attempts": -1,
    "address_full_policy": AddressFullPolicy.PAGE,
}


class BrokerRun(test_recovery.BrokerRun):
    """One run of a broker whose addresses page behind ten messages."""

    def __init__(self, folder, settings=None, **changes):
        repository = SettingsRepository()
        repository.add("#", AddressSettings(**{**SMALL, **(settings or {})}))
        super().__init__(folder, settings=repository, **changes)

    @property
    def paging(self):
        return self.broker.parts.paging

    def queue_of(self, name="q"):
        return self.broker.parts.postoffice.addresses.queues[name]

    def pages(self, address="q"):
        """Numbers of the page files that are there."""
        return [
            page
            for file in self.folder.glob("paging/*/address.txt")
            if text_of(file) == f"{address}\n"
            for page in entries_of(file.parent)
            if page.endswith(".page")
        ]

    async def send_numbers(self, numbers, address="q", session=None, **properties):
        """Send a message for each number, all at once, and wait until the last is durable."""
        session = session or self.session()
        sent = [
            durable(session.send, message(str(number), address=address, **properties))
            for number in numbers
        ]
        await asyncio.gather(*sent)

    async def acknowledge(self, sink, message_id, **how):
        """Acknowledge, and wait until that is durable."""
        await durable(lambda done: sink.session.acknowledge(0, message_id, done, **how))

    async def acknowledge_of(self, session, message_id):
        """The same, for a session alone."""
        await durable(lambda done: session.acknowledge(0, message_id, done))

    def look_for_expired(self):
        """As the broker does from time to time."""
        self.scan_expired()

    def is_quiet(self):
        """Whether nothing is under way on the disk."""
        paging = self.paging
        return (
            self.broker.parts.storage.completions.is_idle
            and not paging._writing._jobs
            and not paging._reading._jobs
            and not paging._doomed_records
        )

    async def until(self, is_so):
        """Let the loop turn until something is so."""
        async with asyncio.timeout(WAIT_S):
            while not is_so():  # noqa: ASYNC110 -- anything at all may be waited for
                await asyncio.sleep(0.001)

    async def drain(self, count, name="q", session=None):
        """Take and acknowledge so many; their bodies in order."""
        sink = self.consume(name, session)
        known = []
        while len(known) < count:
            await self.until(lambda: len(sink.got) > len(known))
            known[:] = sink.ids
            await self.acknowledge(sink, known[-1])
        assert len(sink.got) == count
        sink.session.close(has_failed=False)
        return [int(body) for body in sink.bodies]


def runs(tmp_path, *parts, how="stop", **changes):
    """Run each part in a run of its own, the next on what the one before left."""

    async def all_runs():
        folder = tmp_path / "data"
        for number, part in enumerate(parts):
            async with BrokerRun(folder, **changes) as run:
                await part(run)
                if how == "crash":
                    # A copy takes time; a crash does not.
                    await run.until(run.is_quiet)
                    folder = copy_of(folder, tmp_path / f"copy{number}")

    asyncio.run(all_runs())


def entries_of(folder):
    """Names of what is in the folder; none if the broker removed it since it was listed."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def text_of(file):
    """What is in the file; nothing if the broker removed it since it was listed."""
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def copy_of(folder, target):
    return copy_live(folder, target)


__all__ = ["SMALL", "BrokerOptions", "BrokerRun", "durable", "runs"]
