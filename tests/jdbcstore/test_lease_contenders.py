"""Two processes want one lease while they are stopped, cut off, and lied to by their clocks.

What must hold, whatever happens: the writes of one holder lie together. Once somebody else has
written, nothing more comes from the one before. And where the clocks are honest: no process gets
the lease while another one knows for certain that it has it.

A contender that only looks at its lease before it writes (a planted bug) is caught.
"""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jdbcstore.clocks import boot_clock
from jdbcstore.url import sqlalchemy_url
from tests.jdbcstore.lease_contender import EXPIRATION_MS
from tests.jdbcstore.leases import KINDS
from tests.proxy import Proxy

ROOT = Path(__file__).resolve().parents[2]
FULL_S = 600


class Contest:
    """Two contenders over one database, and all that is done to them."""

    def __init__(self, brokers, database, folder, *, clock, fence, seed):
        self.dice = random.Random(seed)
        self.database = database
        self.brokers = brokers
        self.counts = {"stops": 0, "stalls": 0, "cuts": 0, "resets": 0}
        self.proxies = []
        brokers.lease()  # Makes the table.
        with brokers.database().connect() as connection:
            connection.exec_driver_sql(
                "CREATE TABLE written (n BIGINT NOT NULL, token VARCHAR(128) NOT NULL)"
            )
            connection.exec_driver_sql("CREATE INDEX written_n ON written (n)")
            connection.commit()
        self.logs = [folder / f"contender{i}" for i in range(2)]
        self.processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.jdbcstore.lease_contender"),
                    *(self.url(), str(log), str(seed + i), clock, fence),
                ],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                text=True,
            )
            for i, log in enumerate(self.logs)
        ]

    def url(self):
        """The database's address, by a relay of its own where there is a known network."""
        if not self.database.port:
            return self.database.url
        proxy = Proxy(self.database.port, self.database.host)
        self.proxies.append(proxy)
        url = sqlalchemy_url(self.database.url).set(host="127.0.0.1", port=proxy.port)
        return url.render_as_string(hide_password=False)

    def torment(self, seconds):
        """Stop, cut, stall and reset one or the other, for so long."""
        while not all(log.exists() and log.read_text() for log in self.logs):
            time.sleep(0.05)
        end = boot_clock() + seconds
        doings = [self.stop, self.stop, self.let_be]
        if self.proxies:
            doings += [self.stall, self.cut, self.reset]
        while boot_clock() < end:
            self.dice.choice(doings)(self.dice.randrange(2))
            time.sleep(self.dice.uniform(0, 0.3))

    def pause_s(self):
        """From a tenth of a lease to two and a half of them."""
        return self.dice.uniform(0.1, 2.5) * EXPIRATION_MS / 1000

    def let_be(self, _):
        time.sleep(self.pause_s())

    def stop(self, who):
        self.counts["stops"] += 1
        self.processes[who].send_signal(signal.SIGSTOP)
        time.sleep(self.pause_s())
        self.processes[who].send_signal(signal.SIGCONT)

    def stall(self, who):
        self.counts["stalls"] += 1
        self.proxies[who].stall()
        time.sleep(self.pause_s())
        self.proxies[who].resume()

    def cut(self, who):
        self.counts["cuts"] += 1
        self.proxies[who].cut()
        time.sleep(self.pause_s())
        self.proxies[who].resume()

    def reset(self, who):
        self.counts["resets"] += 1
        self.proxies[who].reset()

    def end(self):
        """Let both end; what they noted, by contender."""
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()
        for process in self.processes:
            assert process.wait(120) == 0
        for proxy in self.proxies:
            proxy.close()
        return [[json.loads(line) for line in log.read_text().splitlines()] for log in self.logs]

    def written(self):
        """(number, token) of all writes, in the order of their numbers."""
        with self.brokers.database().connect() as connection:
            rows = connection.exec_driver_sql("SELECT n, token FROM written ORDER BY n, token")
            return [tuple(row) for row in rows]

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()


def violations_of_writes(written):
    """What two holders at once, or one after his end, would leave behind."""
    found = [
        f"number {n} was given twice, to {token} and to {other}"
        for (m, token), (n, other) in itertools.pairwise(written)
        if m == n
    ]
    turns = [token for token, _ in itertools.groupby(token for _, token in written)]
    found += [
        f"{token} wrote in {turns.count(token)} turns"
        for token in dict.fromkeys(turns)
        if turns.count(token) > 1
    ]
    return found


def violations_of_claims(notes):
    """Acquisitions that fell into a time in which another one had the lease for certain."""
    events = [note for one in notes for note in one]
    ends = {n["token"]: n["at"] for n in events if n["event"] in ("released", "lost")}
    acquired = [(n["token"], n["at"]) for n in events if n["event"] == "acquired"]
    found = []
    for claim in (note for note in events if note["event"] == "claim"):
        end = min(claim["since"] + EXPIRATION_MS / 1000, ends.get(claim["token"], float("inf")))
        found += [
            f"{token} acquired at {at} what {claim['token']} had from {claim['since']} to {end}"
            for token, at in acquired
            if token != claim["token"] and claim["since"] < at < end
        ]
    return found


def held_contest(brokers, database, folder, seconds, **how):
    contest = Contest(brokers, database, folder, **how)
    try:
        contest.torment(seconds)
        notes = contest.end()
    finally:
        contest.kill()
    ends = [one[-1] for one in notes]
    figures = contest.counts | {
        "seconds": seconds,
        "acquisitions": sum(n["event"] == "acquired" for one in notes for n in one),
        "losses": sum(n["event"] == "lost" for one in notes for n in one),
        **{key: sum(end[key] for end in ends) for key in ("writes", "fenced", "failures")},
    }
    print(f"\n{database.name} {how}: {figures}")
    return notes, contest.written(), figures


@pytest.mark.slow
@pytest.mark.parametrize("database", KINDS, indirect=True)
@pytest.mark.parametrize("clock", ["honest", "stepping"])
def test_never_two_holders(brokers, database, tmp_path, effort, clock):
    seconds = effort(FULL_S // 2, least=6)  # Both clocks together: the full length.

    notes, written, figures = held_contest(
        brokers, database, tmp_path, seconds, clock=clock, fence="fenced", seed=seconds
    )

    assert violations_of_writes(written) == []
    if clock == "honest":
        assert violations_of_claims(notes) == []
    assert len(written) >= figures["writes"] > 0
    assert figures["acquisitions"] > 0
    if seconds >= 60:
        assert figures["fenced"] > 0
        assert figures["losses"] > 0
        assert all(any(n["event"] == "acquired" for n in one) for one in notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "database", ["postgresql", pytest.param("mariadb", marks=pytest.mark.soak)], indirect=True
)
def test_a_holder_that_only_looks_is_caught(brokers, database, tmp_path):
    """The planted bug: without the fence the same torment leaves what the checks look for."""
    for seed in range(10):
        with brokers.database().connect() as connection:
            connection.exec_driver_sql("DROP TABLE IF EXISTS written")
            connection.commit()
        _, written, _ = held_contest(
            brokers, database, tmp_path, 15, clock="stepping", fence="unfenced", seed=seed
        )
        if violations_of_writes(written):
            return

    pytest.fail("ten times fifteen seconds without a fence, and nothing was noticed")
