"""Random work on a journal, in a form that both journals can do: ids are used once."""

import random

from tests.interop.layout import Record


class Work:
    """Makes records, and remembers what is live and which transactions are open or prepared.

    A record that a transaction touches is used by no other until the transaction ends: Artemis
    lets two of them change one record, and then its compaction disagrees with its load.
    """

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.records = []
        self.live = []
        self.open = {}
        self.prepared = {}
        self.next_id = 1
        self.next_tx = 10_000_000

    def turn(self, count):
        """About `count` more records; transactions neither ended nor prepared are lost after it."""
        done = []
        for _ in range(count):
            record = self.step()
            if record is not None:
                done.append(record)
        self.records += done
        for parts in self.open.values():
            self.roll_back(parts)
        self.open.clear()
        return done

    def step(self):
        """One more record, or None where the dice ask for what is not there."""
        kinds = {"add": 8, "update": 4, "delete": 3, "event": 1, "tx": 8, "end": 2, "prepare": 1}
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        body = self.chance.randbytes(self.chance.choice([0, 5, 50, 500, 2000]))
        user_type = self.chance.randrange(256)
        if kind == "add":
            self.live.append(self.next_id)
            return Record("add", self.take_id(), user_type, body)
        if kind == "update" and self.live:
            return Record("update", self.chance.choice(self.live), user_type, body)
        if kind == "delete" and self.live:
            return Record("delete", self.take_live())
        if kind == "event":
            return Record("event", self.next_id, user_type, body)
        if kind == "tx":
            return self.step_in_transaction(user_type, body)
        if kind == "prepare" and self.open:
            tx = self.chance.choice(list(self.open))
            self.prepared[tx] = self.open.pop(tx)
            return Record("prepare", body=body[:40], tx=tx)
        if kind == "end" and (self.open or self.prepared):
            tx = self.chance.choice([*self.open, *self.prepared])
            parts = self.open.pop(tx) if tx in self.open else self.prepared.pop(tx)
            if self.chance.random() < 0.7:
                self.live += {part.id for part in parts if part.kind != "delete_tx"}
                return Record("commit", tx=tx)
            self.roll_back(parts)
            return Record("rollback", tx=tx)
        return None

    def roll_back(self, parts):
        """What these parts of a transaction did not add is live again."""
        added = {part.id for part in parts if part.kind == "add_tx"}
        self.live += {part.id for part in parts} - added

    def step_in_transaction(self, user_type, body):
        """A record of an open transaction, or of a new one."""
        tx = self.chance.choice([*self.open, None])
        if tx is None or len(self.open) < 2:
            tx, self.next_tx = self.next_tx, self.next_tx + 1
            self.open[tx] = []
        if self.live and self.chance.random() < 0.3:
            part = Record("delete_tx", self.take_live(), body=body[:20], tx=tx)
        elif self.live and self.chance.random() < 0.2:
            part = Record("update_tx", self.take_live(), user_type, body, tx=tx)
        else:
            part = Record("add_tx", self.take_id(), user_type, body, tx=tx)
        self.open[tx].append(part)
        return part

    def take_id(self):
        """A fresh record id."""
        self.next_id += 1
        return self.next_id - 1

    def take_live(self):
        """A live id, for one record alone."""
        return self.live.pop(self.chance.randrange(len(self.live)))


WORDS = {
    "add": "add",
    "update": "upd",
    "delete": "del",
    "event": "event",
    "add_tx": "txadd",
    "update_tx": "txupd",
    "delete_tx": "txdel",
    "prepare": "prepare",
    "commit": "commit",
    "rollback": "rollback",
}


def script(records, *, crash=False, between=()):
    """The ops script (tests/golden/README.md) that makes Artemis write these records."""
    lines = ["open"]
    for record in records:
        body = f"x{record.body.hex()}" if record.body else "-"
        user_type = (record.user_type + 128) % 256 - 128
        words = [WORDS[record.kind]]
        if record.tx:
            words.append(record.tx)
        if record.kind not in ("prepare", "commit", "rollback"):
            words.append(record.id)
        if record.kind in ("add", "update", "event", "add_tx", "update_tx"):
            words.append(user_type)
        if record.kind not in ("delete", "commit", "rollback"):
            words.append(body)
        lines.append(" ".join(map(str, words)))
    return "\n".join([*lines, *between, "crash" if crash else "stop"]) + "\n"


def append(journal, record, *, sync=False):
    """The call that makes our journal write that record."""
    tx = record.tx or None
    match record.kind:
        case "add" | "add_tx":
            journal.add(record.id, record.user_type, record.body, tx=tx, sync=sync)
        case "update" | "update_tx":
            journal.update(record.id, record.user_type, record.body, tx=tx, sync=sync)
        case "delete" | "delete_tx":
            journal.delete(record.id, record.body, tx=tx, sync=sync)
        case "event":
            journal.event(record.id, record.user_type, record.body, sync=sync)
        case "prepare":
            journal.prepare(record.tx, record.body, sync=sync)
        case "commit":
            journal.commit(record.tx, sync=sync)
        case "rollback":
            journal.rollback(record.tx, sync=sync)
