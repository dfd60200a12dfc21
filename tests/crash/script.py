"""A fixed workload that passes every way to append and to wait, for faults at each of its calls."""

import asyncio
import threading

from journal.errors import JournalClosed, JournalError
from tests.crash.history import Step

WAIT_S = 20


def run_script(journal, history):
    """Open, load, append from three sides, close. Errors end up in the history.

    Whatever happens this returns: every wait in it ends, or a test's timeout says so.
    """
    try:
        journal.open()
        journal.load()
    except JournalError as error:
        history.failed(error)
    else:
        threads = [
            threading.Thread(target=wait_for_each, args=(journal, history, first), daemon=True)
            for first in (1000, 2000)
        ]
        for thread in threads:
            thread.start()
        append_all_ways(journal, history)
        asyncio.run(append_futures(journal, history))
        for thread in threads:
            thread.join(WAIT_S)
            assert not thread.is_alive(), "a waiter hangs"
    close(journal, history)


def close(journal, history):
    """Close twice: the first may tell of a failure, the second has nothing left to say."""
    try:
        journal.close()
    except JournalError as error:
        history.failed(error)
    journal.close()


def wait_for_each(journal, history, first):
    for i in range(6):
        body = bytes([i + 1]) * 150
        step = history.step({first + i: body})
        if history.do(step, journal.add, first + i, 1, body, sync=True) is not None:
            break
    for i in range(3):
        step = history.step(deleted=[first + i])
        history.do(step, journal.delete, first + i, sync=True)


def append_all_ways(journal, history):
    called = []
    expected = 0
    for i in range(1, 13):
        body = bytes([i]) * (40 * i)
        step = history.step({i: body})
        if i % 3 == 0:
            history.do(step, journal.add, i, 1, body, sync=True)
        elif i % 3 == 1:
            done = history.done(step)
            error = history.do(
                step,
                journal.add,
                i,
                1,
                body,
                sync=True,
                done=lambda error, done=done: (called.append(error), done(error)),
            )
            # The ack is the callback's to give.
            if error is None:
                step.state = "tried" if not called or called[-1] is not None else step.state
                expected += 1
        else:
            history.do(step, journal.add, i, 1, body, sync=False)
    transactions(journal, history)
    # Each record of a batch stands alone.
    steps = [history.step({40 + i: b"many"}) for i in range(5)]
    batch = Step()
    history.do(batch, journal.add_many, range(40, 45), 1, [b"many"] * 5, sync=True)
    for step in steps:
        step.state = "acked" if batch.state == "acked" else "tried"
    try:
        journal.sync()
    except JournalError as error:
        history.failed(error)
    journal.reap()
    assert len(called) == expected, "a callback was never called"


def transactions(journal, history):
    for tx, ending in ((20, "commit"), (24, "rollback"), (28, "prepare")):
        bodies = {tx + i: bytes([tx + i]) * 300 for i in range(3)}
        step = history.step(bodies if ending == "commit" else {})
        errors = [
            history.do(step, journal.add, record, 1, body, tx=tx) for record, body in bodies.items()
        ]
        if any(errors):
            # The commit is never tried.
            step.state = "refused"
            continue
        step.state = "tried"
        history.do(step, getattr(journal, ending), tx, sync=True)


async def append_futures(journal, history):
    steps = []
    futures = []
    for i in range(60, 66):
        step = history.step({i: b"future"})
        try:
            ticket = journal.add(i, 1, b"future", sync=True, wait=False)
        except JournalError as error:
            history.failed(error)
            step.state = "refused" if isinstance(error, JournalClosed) else "tried"
            continue
        steps.append(step)
        futures.append(asyncio.wait_for(journal.durable(ticket), WAIT_S))
    for step, result in zip(
        steps, await asyncio.gather(*futures, return_exceptions=True), strict=True
    ):
        if result is None:
            step.state = "acked"
        else:
            assert not isinstance(result, TimeoutError), "a future hangs"
            history.failed(result)
    journal.detach_loop()
