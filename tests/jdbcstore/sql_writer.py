"""Appends to a table until it is killed, and says on standard output what it does.

    python tests/jdbcstore/sql_writer.py URL LIFE

Lines as those of tests/crash/writer.py, whose steps it takes.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from tests.crash.model import open_and_load
from tests.crash.writer import say, step

# A writer that was killed holds its lease until this is over.
EXPIRATION_MS = 600


def options(url):
    return DatabaseStoreOptions(
        connection_url=url,
        lock_expiration_ms=EXPIRATION_MS,
        lock_renew_period_ms=150,
        lock_acquisition_timeout_ms=60_000,
    )


def main():
    url, run = sys.argv[1], int(sys.argv[2])
    store = SqlStore(options(url))
    view, result = open_and_load(store)
    live = {record for record, is_update, _, _ in view[0] if not is_update}
    for tx in result.prepared:
        store.rollback(tx.tx_id, sync=True)
    # Never an id that a killed process may have used without a trace in the table.
    next_id = (run + 1) * 100_000
    assert next_id > result.max_id
    say("READY")
    rng, number = random.Random(run), 0
    while True:
        number += 1
        next_id = step(store, rng, live, number, next_id)


if __name__ == "__main__":
    main()
