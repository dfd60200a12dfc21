"""Appends to a journal until it is killed, and says on standard output what it does.

    python tests/crash/writer.py FOLDER TYPE SEED

Lines: `TRY <step>` before and `ACK <number>` after a step is durable, where a step is
`<number> <ids added, +size each> <ids deleted>`. Everything else about the step follows from its
number, so that the reader can check bodies too.
"""

import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from journal.journal import Journal
from tests.crash.model import open_and_load
from tests.crash.workload import small_options


def body_of(record_id, size):
    """Bytes that only this record has."""
    return (f"{record_id}." * (size // 2 + 1)).encode()[:size]


def say(text):
    os.write(1, f"{text}\n".encode())


def main():
    folder, kind, seed = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    rng = random.Random(seed)
    options = small_options(
        folder,
        kind,
        file_size=16384,
        buffer_size=8192,
        pool_files=4,
        compact_min_files=4,
        compact_percentage=60,
        lock_acquisition_timeout_ms=5000,
    )
    journal = Journal(options)
    view, result = open_and_load(journal)
    live = {record for record, is_update, _, _ in view[0] if not is_update}
    for tx in result.prepared:
        journal.rollback(tx.tx_id, sync=True)
    # Never an id that a killed process may have used without a trace on disk.
    next_id = (int(seed) + 1) * 100_000
    assert next_id > result.max_id
    say("READY")
    number = 0
    while True:
        number += 1
        next_id = step(journal, rng, live, number, next_id)


def step(journal, rng, live, number, next_id):
    """One atomic step; the next free id."""
    choice = rng.random()
    added = [next_id + i for i in range(rng.randrange(2, 6) if choice < 0.3 else 1)]
    sizes = [rng.choice((1, 40, 200, 900, 3000)) for _ in added]
    deleted = rng.sample(sorted(live), min(len(live), 3)) if choice < 0.3 or len(live) > 40 else []
    if choice >= 0.3 and deleted:
        added, deleted = [], deleted[:1]
    shown = " ".join(f"+{record}:{size}" for record, size in zip(added, sizes, strict=False))
    say(f"TRY {number} {shown} {' '.join(f'-{record}' for record in deleted)}")
    if choice < 0.3:
        for record, size in zip(added, sizes, strict=True):
            journal.add(record, 1, body_of(record, size), tx=next_id)
        for record in deleted:
            journal.delete(record, tx=next_id)
        if choice < 0.1:
            journal.prepare(next_id, b"extra", sync=True)
        journal.commit(next_id, sync=True)
    elif deleted:
        journal.delete(deleted[0], sync=True)
    else:
        journal.add(added[0], 1, body_of(added[0], sizes[0]), sync=True)
    live.difference_update(deleted)
    live.update(added)
    say(f"ACK {number}")
    return added[-1] + 1 if added else next_id


if __name__ == "__main__":
    main()
