"""What several threads did to one journal, and whether a load agrees with it.

An operation is "acked" (known to be durable), "refused" (nothing may be there of it) or "tried"
(outcome unknown: there or not, but whole).
"""

import threading
from dataclasses import dataclass, field

from journal.errors import JournalClosed, JournalIOError, TransactionFailed, WrongUse


@dataclass
class Step:
    """One atomic change: records added and records deleted, all or none."""

    added: dict = field(default_factory=dict)
    deleted: tuple = ()
    state: str = "tried"


class History:
    """All steps of all threads. Safe to use from many."""

    def __init__(self):
        self.steps = []
        self.errors = []
        self.lock = threading.Lock()

    def step(self, added=None, deleted=()):
        with self.lock:
            self.steps.append(Step(dict(added or {}), tuple(deleted)))
            return self.steps[-1]

    def do(self, step, call, *arguments, **keywords):
        """Make the call that the step stands for; the error that it ended with, or None."""
        try:
            call(*arguments, **keywords)
        except (JournalClosed, TransactionFailed, WrongUse) as error:
            step.state = "refused"
            return self.failed(error)
        except JournalIOError as error:
            return self.failed(error)
        if keywords.get("sync"):
            step.state = "acked"
        return None

    def failed(self, error):
        with self.lock:
            self.errors.append(error)
        return error

    def done(self, step):
        """A callback for the step."""

        def done(error):
            if error is None:
                step.state = "acked"
            else:
                self.failed(error)

        return done

    def check(self, live):
        """Compare with {id: body} of a load.

        Raises:
            AssertionError: lost, resurrected, phantom, changed or in part.
        """
        removers = {record: step for step in self.steps for record in step.deleted}
        known = {}
        for step in self.steps:
            there = []
            for record, body in step.added.items():
                known[record] = body
                remover = removers.get(record)
                if record in live:
                    assert step.state != "refused", f"{record}: was refused, is there"
                    assert live[record] == body, f"{record}: changed"
                    assert remover is None or remover.state != "acked", f"{record}: came back"
                elif step.state == "acked":
                    assert remover is not None, f"{record}: lost"
                    assert remover.state != "refused", f"{record}: lost, its delete was refused"
                if remover is None:
                    there.append(record in live)
            assert len(set(there)) <= 1, f"{sorted(step.added)}: a part of a transaction"
        assert set(live) <= set(known), f"never tried: {sorted(set(live) - set(known))}"
