"""One run of a journal on a small disk: `python -m tests.crash.full_disk_run FOLDER KIND WORK`.

Prints a line for everything that is durable, and is killed by the test that started it. Commands,
line by line on its standard input:

    fill        add messages until they are refused: `added N` each, `refused N` at the end
    drain STEP  acknowledge and delete every STEP-th of what is live: `gone N` each, `drained`
    live        `live N ...`
    add N       add this one, a new number, as soon as there is room: `added N`
    close       close it, and end
"""

import sys
import time
from pathlib import Path

from journal.errors import JournalFull
from journal.journal import Journal
from journal.options import JournalOptions

FILE_SIZE = 256 << 10
BODY = b"x" * 4000
MESSAGE, REFERENCE, ACKNOWLEDGE = 45, 32, 33
QUEUE = bytes(8)


class JournalRun:
    """An open journal, and which messages are in it."""

    def __init__(self, folder, kind):
        self.journal = Journal(
            JournalOptions(directory=Path(folder), journal_type=kind, file_size=FILE_SIZE)
        )
        self.journal.open()
        self.last = 0
        acknowledged, found = set(), []

        def take(batch):
            for record in batch:
                self.last = max(self.last, record.record_id)
                if record.user_type == ACKNOWLEDGE:
                    acknowledged.add(record.record_id)
                elif record.user_type == REFERENCE:
                    found.append(record.record_id)

        self.journal.load(take)
        self.acknowledged = acknowledged
        self.messages = [one for one in found if one not in acknowledged]
        for record_id in acknowledged:
            self.journal.delete(record_id, sync=False)

    def add(self):
        """Add one message, durably.

        Raises:
            JournalFull: nothing of it is there.
        """
        record_id = self.last + 1
        self.journal.add(record_id, MESSAGE, BODY, sync=False, wait=False)
        try:
            self.journal.update(record_id, REFERENCE, QUEUE, sync=True)
        except JournalFull:
            self.journal.delete(record_id, sync=False)
            raise
        finally:
            self.last = record_id
        self.messages.append(record_id)
        say("added", record_id)

    def fill(self):
        """Add until it is refused."""
        try:
            while True:
                self.add()
        except JournalFull:
            say("refused", self.last)

    def drain(self, step):
        """Acknowledge one at a time, each synced, and delete as a broker does."""
        for record_id in self.messages[::step]:
            self.journal.update(record_id, ACKNOWLEDGE, QUEUE, sync=True, makes_room=True)
            say("gone", record_id)
            self.journal.delete(record_id, sync=False)
        del self.messages[::step]
        say("drained")

    def add_when_possible(self):
        """Add one once room came back by itself."""
        while True:
            try:
                return self.add()
            except JournalFull:
                time.sleep(0.01)


def say(*words):
    """Print a line at once: the next moment may not come."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main():
    run = JournalRun(*sys.argv[1:])
    say("open", run.journal.type_used)
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "fill":
            run.fill()
        elif verb == "drain":
            run.drain(int(words[0]))
        elif verb == "live":
            say("live", *run.messages)
        elif verb == "add":
            run.last = int(words[0]) - 1
            run.add_when_possible()
        elif verb == "close":
            run.journal.close()
            say("closed")
            return


if __name__ == "__main__":
    main()
