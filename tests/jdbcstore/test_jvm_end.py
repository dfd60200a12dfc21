"""A process that spoke JDBC ends when it is done, whichever thread began."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import sys, threading
from jdbcstore import Database, DatabaseStoreOptions, Lease

def work():
    database = Database(DatabaseStoreOptions(connection_url=sys.argv[1]))
    lease = Lease(database)
    lease.create_table()
    print(lease.try_acquire())
    lease.release()
    database.close()

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("database", ["derby"], indirect=True)
def test_a_jvm_that_was_started_by_a_thread_does_not_keep_the_process(database):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, database.url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
