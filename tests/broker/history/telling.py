"""A history told in a few words, for tests of the checker."""

import zlib

from tests.broker.history.checker import problems
from tests.broker.history.record import History, Return

QUEUE = "q"
ORDERED = frozenset({QUEUE})


class Story(History):
    """A history told in a few words; messages are numbered per producer."""

    run = 1

    def subscribe(self, queue, address="topic", *, outcome="done"):
        """Create the queue of a subscriber."""
        made = self.subscribing(queue, address)
        if outcome == "done":
            self.subscribed(made)

    def sent(self, *keys, queues=(QUEUE,), producer="p", outcome="done", **more):
        """Send messages in one unit."""
        unit = self.unit()
        for key in keys:
            message = self.messages.get(key) or self.message(key, 10, queues, **more)
            number = sum(len(one.sends) for one in self.messages.values())
            self.send(unit, message, producer, number)
        self.ends(unit, outcome)
        return unit

    def got(self, *keys, queue=QUEUE, outcome="done", copy=None, count=1, body=None, unit=None):
        """Take messages in one unit, which acknowledges them."""
        unit = unit or self.unit()
        for key in keys:
            number = copy or zlib.crc32(key.encode())
            whole = body or self.messages[key].body
            self.take(unit, queue, number, count, self.run, whole)
        self.ends(unit, outcome)
        return unit

    def ends(self, unit, outcome):
        if outcome == "prepared":
            self.held(unit)
        elif outcome in ("done", "tried"):
            self.tried(unit)
        if outcome == "done":
            self.done(unit)
        elif outcome == "undone":
            self.undone(unit)
        elif outcome == "rolled back":
            self.undone(unit, Return.ROLLBACK)
        elif outcome == "lost":
            self.undone(unit, Return.LOSS)

    def words(self):
        """The kinds of what is wrong."""
        return sorted({line.partition(":")[0] for line in problems(self, ORDERED)})
