"""A store in memory that a real broker runs on: without a thread, durable when a test says so."""

from types import SimpleNamespace
from typing import NamedTuple


class Op(NamedTuple):
    kind: str
    record_id: int
    user_type: int
    body: bytes
    tx: int | None


class Item(NamedTuple):
    record_id: int
    user_type: int
    is_update: bool
    body: bytes


def replay(ops):
    """What a load of these gives: live records in order, prepared transactions."""
    live, open_ones, prepared = {}, {}, {}

    def apply(op):
        if op.kind == "delete":
            del live[op.record_id]
        elif op.kind == "add":
            live[op.record_id] = [op]
        elif op.record_id in live:
            live[op.record_id].append(op)

    for op in ops:
        match op.kind:
            case "prepare":
                prepared[op.tx] = op.body
            case "commit":
                for part in open_ones.pop(op.tx):
                    apply(part)
                prepared.pop(op.tx, None)
            case "rollback":
                del open_ones[op.tx]
                prepared.pop(op.tx, None)
            case _ if op.tx is not None:
                open_ones.setdefault(op.tx, []).append(op)
            case _:
                apply(op)
    return live, {tx: (extra, open_ones[tx]) for tx, extra in prepared.items()}


def item_of(op):
    return Item(op.record_id, op.user_type, op.kind == "update", op.body)


class MemoryStore:
    """A `LoopStore` without a thread and a descriptor: what is durable is said by who has it.

    Args:
        ops: what an earlier one kept.
        is_prompt: what is appended is durable in the next turn of the loop, else by `step()` or a
            wait.

    Attributes:
        durable: how many of `ops` are.
    """

    def __init__(self, ops=(), *, is_prompt=False):
        self.ops = list(ops)
        self.durable = len(self.ops)
        self._is_prompt = is_prompt
        self._loop = None
        self._after_reap = lambda: None
        self._waiting = []

    def _append(self, op, sync, done, wait):
        self.ops.append(op)
        if done is not None:
            self._waiting.append((len(self.ops), done))
        if wait and sync is not False:
            self.sync()
        elif self._is_prompt and self._loop is not None:
            self._loop.call_soon(self.step, len(self.ops))
        return len(self.ops)

    def add(
        self,
        record_id,
        user_type,
        body,
        *,
        tx=None,
        sync=None,
        done=None,
        wait=True,
        flush_now=True,
        makes_room=False,
    ):
        return self._append(Op("add", record_id, user_type, bytes(body), tx), sync, done, wait)

    def update(
        self,
        record_id,
        user_type,
        body,
        *,
        tx=None,
        sync=None,
        done=None,
        wait=True,
        flush_now=True,
        makes_room=False,
    ):
        return self._append(Op("update", record_id, user_type, bytes(body), tx), sync, done, wait)

    def delete(self, record_id, body=b"", *, tx=None, sync=None, done=None, wait=True):
        return self._append(Op("delete", record_id, 0, bytes(body), tx), sync, done, wait)

    def prepare(self, tx, extra=b"", *, sync=None, done=None, wait=True):
        return self._append(Op("prepare", 0, 0, bytes(extra), tx), sync, done, wait)

    def commit(self, tx, *, sync=None, done=None, wait=True, flush_now=True):
        return self._append(Op("commit", 0, 0, b"", tx), sync, done, wait)

    def rollback(self, tx, *, sync=None, done=None, wait=True):
        return self._append(Op("rollback", 0, 0, b"", tx), sync, done, wait)

    def load(self, on_batch=None, *, progress=None):
        live, prepared = replay(self.ops)
        on_batch([item_of(op) for ops in live.values() for op in ops])
        max_id = max((op.record_id for op in self.ops), default=-1)
        found = [
            SimpleNamespace(
                tx_id=tx, extra=extra, records=[item_of(op) for op in ops if op.kind != "delete"]
            )
            for tx, (extra, ops) in prepared.items()
        ]
        return SimpleNamespace(max_id=max_id, prepared=found)

    def step(self, count):
        self.durable = min(len(self.ops), self.durable + count)
        self.reap()

    def sync(self):
        self.durable = len(self.ops)

    def flush_now(self):
        pass  # When a record is durable is for the test to say.

    def prewarm(self):
        pass

    def reserve_ends(self, count):
        return True

    def reap(self):
        while self._waiting and self._waiting[0][0] <= self.durable:
            self._waiting.pop(0)[1](None)
        self._after_reap()

    def attach_loop(self, loop, after_reap=None):
        self._loop = loop
        self._after_reap = after_reap or self._after_reap

    def detach_loop(self):
        self._loop = None

    def close(self):
        pass

    def __len__(self):
        return len(replay(self.ops)[0])
