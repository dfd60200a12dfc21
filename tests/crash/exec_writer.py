"""As writer.py, but the journal is kept by a child: `journal exec`, killed with it.

    python tests/crash/exec_writer.py FOLDER TYPE SEED

Every so many steps it has the journal compacted, besides what that does by itself.
"""

import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.crash.model import read_folder_view
from tests.crash.writer import body_of, say

COMPACT_EVERY = 40
OPTIONS = {
    "file-size": 16384,
    "buffer-size": 8192,
    "device-block-size": 512,
    "pool-files": 4,
    "compact-min-files": 4,
    "compact-percentage": 60,
    "lock-timeout": 5000,
}


class Exec:
    """A running `journal exec`."""

    def __init__(self, folder, kind):
        options = [word for name, value in OPTIONS.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "journal.cli.main", "exec", folder, "--type", kind, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, *lines):
        """The answers to these lines, each checked to be no error."""
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self.process.stdin.flush()
        answers = [self.process.stdout.readline().decode() for _ in lines]
        for line, answer in zip(lines, answers, strict=True):
            if answer.split()[:1] not in (["ACK"], ["OK"], ["TX"]):
                raise AssertionError(f"{line[:40]!r} was answered {answer!r}")
        return answers


def main():
    folder, kind, seed = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    rng = random.Random(seed)
    live = set()
    if folder.exists():
        view, _ = read_folder_view(folder)
        live = {record for record, is_update, _, _ in view[0] if not is_update}
    # Never an id that a killed process may have used without a trace on disk.
    next_id = (int(seed) + 1) * 1_000_000
    journal = Exec(folder, kind)
    journal.ask("sync")
    say("READY")
    number = 0
    while True:
        number += 1
        next_id = step(journal, rng, live, number, next_id)
        if number % COMPACT_EVERY == 0:
            journal.ask("compact")


def step(journal, rng, live, number, next_id):
    """One atomic step; the next free id."""
    is_tx = rng.random() < 0.4
    added = [next_id + i for i in range(rng.randrange(2, 6) if is_tx else 1)]
    sizes = [rng.choice((1, 40, 200, 900, 3000)) for _ in added]
    deleted = rng.sample(sorted(live), min(len(live), 3)) if is_tx else []
    if not is_tx and len(live) > 30:
        added, deleted = [], [rng.choice(sorted(live))]
    shown = " ".join(f"+{record}:{size}" for record, size in zip(added, sizes, strict=False))
    say(f"TRY {number} {shown} {' '.join(f'-{record}' for record in deleted)}")
    tx = journal.ask("begin")[0].split()[1] if is_tx else None
    suffix = f" tx={tx}" if is_tx else ""
    journal.ask(
        *(
            f"add 1 {body_of(record, size).hex()} id={record}{suffix}"
            for record, size in zip(added, sizes, strict=False)
        ),
        *(f"delete {record}{suffix}" for record in deleted),
        *([f"prepare {tx} beef"] if is_tx and number % 5 == 0 else []),
        *([f"commit {tx}"] if is_tx else []),
    )
    live.difference_update(deleted)
    live.update(added)
    say(f"ACK {number}")
    return next_id + len(added) + 1


if __name__ == "__main__":
    main()
