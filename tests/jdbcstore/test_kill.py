"""kill -9 of the writer, and of the database server, in the middle of commits.

An outside record says what was acknowledged; what the table holds afterwards is compared with it:
nothing lost, nothing doubled, no transaction in part.
"""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from tests.crash.history import History, Step
from tests.crash.model import open_and_load
from tests.crash.test_kill import Killer, kill
from tests.crash.writer import body_of
from tests.jdbcstore.reading import read_table_view

SERVERS = ["postgresql", "mariadb"]
ROUND_S = 120


class TableKiller(Killer):
    """The killer of tests/crash, for writers to a table."""

    def __init__(self, url, rng, complaints):
        super().__init__("writer", None, None, rng, complaints)
        self.url = url

    def round(self, number):
        writer = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("sql_writer.py")), self.url, str(number)],
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            start_new_session=True,
        )
        with writer.stdout:
            try:
                self.follow(writer)
            finally:
                kill(writer)
                writer.wait(ROUND_S)
            for line in writer.stdout.read().split(b"\n")[:-1]:
                self.take(line.decode().split())
        assert writer.returncode == -signal.SIGKILL

    def follow(self, writer):
        acks = self.rng.randrange(1, 120)
        for line in writer.stdout:
            self.take(line.decode().split())
            acks -= line.startswith(b"ACK")
            if acks == 0:
                return

    def check(self):
        live = live_once(read_table_view(self.url))
        self.history.check(live)
        known = {record for one in self.history.steps for record in one.added}
        self.history.steps = [Step({record: body}, (), "acked") for record, body in live.items()]
        self.history.steps += [Step({dead: b""}, (), "refused") for dead in known - set(live)]


def live_once(view):
    """{id: body} of the adds, each of which may be there once."""
    counts = Counter(record for record, is_update, _, _ in view[0] if not is_update)
    assert [record for record, count in counts.items() if count > 1] == [], "doubled"
    return {record: body for record, is_update, _, body in view[0] if not is_update}


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", *SERVERS], indirect=True)
def test_a_killed_writer_loses_nothing_acknowledged(database, tmp_path, effort):
    rounds = effort(200, least=4)

    with (tmp_path / "complaints").open("w+b") as complaints:
        killer = TableKiller(database.url, random.Random(7), complaints)
        for number in range(rounds):
            killer.round(number)
            # The server may still be at what the dead writer sent; the next writer waits for
            # that, by the row of the lease. So does who looks.
            wait_for_lease(database.url)
            killer.check()

    assert killer.acks > rounds
    print(f"{rounds} kills, {killer.acks} acknowledgements")


def wait_for_lease(url):
    """Take the lease, and give it up."""
    store = SqlStore(DatabaseStoreOptions(connection_url=url, lock_acquisition_timeout_ms=60_000))
    store.open()
    store.close()


class Producers:
    """Threads that append through whatever happens, and a history of what they were told."""

    def __init__(self, store, count):
        self.store = store
        self.history = History()
        self.stopping = threading.Event()
        self.threads = [
            threading.Thread(target=self.work, args=((n + 1) * 10_000_000,), daemon=True)
            for n in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def work(self, next_id):
        rng = random.Random(next_id)
        mine = []
        while not self.stopping.is_set():
            ids = [next_id + i for i in range(rng.randrange(1, 4))]
            next_id += len(ids)
            deleted = mine[:2] if len(mine) > 20 else []
            bodies = {record: body_of(record, rng.choice((10, 1000, 9000))) for record in ids}
            one = self.history.step(bodies, deleted)
            if rng.random() < 0.5 and not deleted and len(ids) == 1:
                error = self.history.do(one, self.store.add, ids[0], 1, bodies[ids[0]], sync=True)
            else:
                for record in ids:
                    self.store.add(record, 1, bodies[record], tx=ids[0])
                for record in deleted:
                    self.store.delete(record, tx=ids[0])
                if rng.random() < 0.2:
                    self.store.prepare(ids[0], b"extra", sync=True)
                error = self.history.do(one, self.store.commit, ids[0], sync=True)
            if error is not None:
                return
            mine = mine[len(deleted) :] + ids

    def acked(self):
        return sum(step.state == "acked" for step in self.history.steps)

    def wait_for(self, acked):
        """Until so many steps are acknowledged."""
        deadline = time.monotonic() + ROUND_S
        while self.acked() < acked:
            assert time.monotonic() < deadline
            assert self.history.errors == []
            time.sleep(0.01)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(ROUND_S)
            assert not thread.is_alive()


@pytest.mark.own_server
@pytest.mark.slow
@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_a_killed_server_is_ridden_out(database, effort):
    rounds = effort(200, least=3)
    rng = random.Random(11)
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    open_and_load(store)

    producers = Producers(store, count=6)
    try:
        for _ in range(rounds):
            # In the middle of whatever it is doing.
            time.sleep(rng.random() * 0.3)
            database.server.kill9()
            database.server.start()
            producers.wait_for(producers.acked() + 20)
    finally:
        producers.stop()
    outages, read_back = store.stats()["outages"], store.stats()["read_back"]
    store.close()

    assert producers.history.errors == []
    assert all(step.state == "acked" for step in producers.history.steps)
    producers.history.check(live_once(read_table_view(database.url)))
    assert outages
    print(
        f"{rounds} kills of the server, {len(producers.history.steps)} steps, {outages} outages,"
        f" {read_back} commits found out by reading back"
    )


@pytest.mark.own_server
@pytest.mark.slow
@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_what_a_stalled_server_does_late_is_not_done_twice(database, effort):
    """The server stands still with our statements unread, longer than anybody waits for it.

    When it goes on it may run what the dead session had sent, after the batch was sent again.
    """
    rounds = effort(100, least=2)
    rng = random.Random(13)
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url, network_timeout_ms=1000))
    open_and_load(store)

    producers = Producers(store, count=6)
    try:
        for _ in range(rounds):
            time.sleep(0.2 + rng.random() * 0.2)
            acked = producers.acked()
            database.server.pause()
            time.sleep(1.5 + rng.random())
            database.server.resume()
            producers.wait_for(acked + 30)
    finally:
        database.server.ensure_running()
        producers.stop()
    outages, read_back = store.stats()["outages"], store.stats()["read_back"]
    store.close()

    assert all(step.state == "acked" for step in producers.history.steps)
    producers.history.check(live_once(read_table_view(database.url)))
    assert outages
    print(f"{rounds} stalls, {outages} outages, {read_back} commits found out by reading back")
