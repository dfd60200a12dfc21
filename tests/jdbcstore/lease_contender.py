"""A process that wants the lease, writes while it has it, and notes what it believed and did.

    python -m tests.jdbcstore.lease_contender URL LOG SEED CLOCK FENCE

CLOCK is `honest`, or `stepping`: then the lease is given clocks that jump by hours. FENCE is
`fenced`, or `unfenced`: a planted bug, which the test has to notice. It runs until standard input
ends. Times in the log are the real boot clock's seconds, the same for all processes.
"""

import contextlib
import json
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy

from jdbcstore.clocks import boot_clock
from jdbcstore.database import Database
from jdbcstore.environment import Environment
from jdbcstore.errors import Fault, LeaseLost, classify
from jdbcstore.lease import Lease
from jdbcstore.options import DatabaseStoreOptions
from journal.errors import JournalError, JournalIOError

EXPIRATION_MS = 1500
OPTIONS = {
    "lock_expiration_ms": EXPIRATION_MS,
    "lock_renew_period_ms": 300,
    "network_timeout_ms": 1000,
    "ride_out_ms": 2000,
}
# A row's number is one more than the last one's: two that write at once give one number twice.
# Separate words, so that somebody else may come in between where nothing keeps him out.
LAST = "SELECT COALESCE(MAX(n), 0) FROM written"
WRITE = "INSERT INTO written (n, token) VALUES (:n, :token)"


class SteppingClock:
    """Seconds of another clock, off by up to ten hours, and every now and then by as much anew."""

    def __init__(self, real, dice):
        self._real = real
        self._dice = dice
        self._offset = 0.0

    def __call__(self):
        if self._dice.random() < 0.05:
            self._offset = self._dice.uniform(-36_000, 36_000)
        return self._real() + self._offset


class Contender:
    def __init__(self, url, log, seed, *, is_stepping, is_fenced):
        self.dice = random.Random(seed)
        self.log = log
        self.is_fenced = is_fenced
        clocks = {}
        if is_stepping:
            clocks = {
                "clock": SteppingClock(boot_clock, self.dice),
                "wall_clock": SteppingClock(time.time, self.dice),
            }
        self.database = Database(
            DatabaseStoreOptions(connection_url=url, **OPTIONS), environment=Environment(**clocks)
        )
        self.lease = Lease(self.database)
        self.stopping = threading.Event()
        self.claimed_at = None
        self.writes = 0
        self.failures = 0

    def note(self, event, **values):
        self.log.write(json.dumps({"event": event, "at": boot_clock(), **values}) + "\n")
        self.log.flush()

    def run(self):
        while not self.stopping.is_set():
            with contextlib.suppress(JournalIOError):
                self.lease.look()  # A JVM, where one is needed, takes its time to start.
                break
        self.note("ready")
        while not self.stopping.is_set():
            try:
                self.lease.acquire(200)
            except JournalError:
                continue
            self.note("acquired", token=self.lease.holder_id)
            self.claimed_at = None
            self.hold()
        self.lease.release()
        self.note(
            "end",
            writes=self.writes,
            fenced=self.lease.fenced_writes,
            failures=self.failures,
            renewals=self.lease.renewals,
        )

    def hold(self):
        """Write until the lease is lost, or enough was written."""
        turns = self.dice.randrange(20, 2000)
        while turns and not self.stopping.is_set():
            turns -= 1
            self.claim()
            try:
                self.write()
                self.writes += 1
            except LeaseLost:
                if not self.may_go_on():
                    self.note("lost", token=self.lease.holder_id)
                    return
            except JournalError:
                return  # The renewing thread knows already.
            except Exception as error:
                # The driver's own too: bound_idle_transactions() lets them through.
                if classify(error, self.database.dialect) is Fault.FATAL:
                    raise
                self.failures += 1
                time.sleep(0.05)
        self.note("released", token=self.lease.holder_id)
        self.lease.release()

    def may_go_on(self):
        """After the fence refused: whether no other process had the lease meanwhile."""
        while not self.stopping.is_set():
            try:
                return self.lease.renew()
            except JournalIOError:
                time.sleep(0.05)
        return False

    def claim(self):
        """Note until when the lease is ours for certain, as far as this process knows."""
        renewed_at = self.lease._renewed_at
        if renewed_at != self.claimed_at:
            self.claimed_at = renewed_at
            self.note("claim", token=self.lease.holder_id, since=renewed_at)

    def write(self):
        token = self.lease.holder_id
        with self.database.connect() as connection:
            self.database.bound_idle_transactions(connection)
            if self.is_fenced:
                self.lease.fence(connection)
            elif not self.lease.is_certain:  # The bug: a look, and then a write.
                raise LeaseLost("by our own clock")
            n = connection.execute(sqlalchemy.text(LAST)).scalar_one() + 1
            if self.dice.random() < 0.02:
                time.sleep(self.dice.random() * 0.02)
            connection.execute(sqlalchemy.text(WRITE), {"n": n, "token": token})
            connection.commit()


def main():
    url, log, seed, clock, fence = sys.argv[1:]
    with open(log, "w") as file:
        contender = Contender(
            url, file, seed, is_stepping=clock == "stepping", is_fenced=fence == "fenced"
        )
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(contender.run)
            with contextlib.suppress(KeyboardInterrupt):
                sys.stdin.read()
            contender.stopping.set()
            running.result()  # Raises what ended it: the test sees the exit code.


if __name__ == "__main__":
    main()
