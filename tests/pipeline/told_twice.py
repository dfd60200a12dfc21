"""A broker with faults, told twice: what its clients saw, and what it stored.

The first is a history for tests/broker/history/checker.py, the second a folder for an audit.
"""

import itertools

from tests.broker.history.record import History, Return
from tests.pipeline.planted import ACK, LINE, ORDERS, QUEUES, Node

# Of the queue, the order of whose deliveries is that of its messages.
ORDERED = frozenset({QUEUES[LINE]})
GROUPS = ("red", "green")
EVENTS = 60
SHARE_OF_FAULTS = 0.08


class TwiceTold:
    """One broker; every method is an event of its life.

    Args:
        folder: where it stores.
        chance: decides what happens.
        has_faults: whether anything wrong happens.
    """

    def __init__(self, folder, chance, *, has_faults):
        self.node = Node(folder, keeps_history=True)
        self.history = History()
        self.chance = chance
        self.has_faults = has_faults
        # What waits in each queue, in order: (key, message id, deliveries so far).
        self.waiting = {ORDERS: [], LINE: []}
        self.keys = {}
        self.numbers = itertools.count(1)

    def live(self):
        """Some events, then everything is delivered."""
        events = (self.send, self.send, self.send_twice, self.transaction, self.give_back)
        for _ in range(EVENTS):
            self.chance.choice((*events, self.deliver, self.deliver, self.deliver))()
        while any(self.waiting.values()):
            self.deliver()
        self.node.close()

    def is_wrong(self):
        return self.has_faults and self.chance.random() < SHARE_OF_FAULTS

    # --- events -------------------------------------------------------------------------------

    def new_message(self, *, has_duplicate_id=False):
        """A message, and the queues that it goes to."""
        queues, group = (ORDERS,), None
        # Of what was sent twice, the checker knows no place in its queue.
        if not has_duplicate_id:
            queues = self.chance.choice(((ORDERS,), (LINE,), (ORDERS, LINE)))
            group = self.chance.choice((None, *GROUPS)) if queues == (ORDERS,) else None
        # An audit sees the ids of all brokers together.
        key = f"{self.node.folder.name}m{next(self.numbers)}"
        names = tuple(QUEUES[one] for one in queues)
        made = self.history.message(
            key, 4, names, group=group, has_duplicate_id=has_duplicate_id, address="orders"
        )
        return made, queues

    def store(self, message, queues, tx=None):
        properties = {"_AMQ_GROUP_ID": message.group} if message.group else None
        duplicate = message.key if message.has_duplicate_id else ""
        sent = self.node.send(*queues, duplicate=duplicate, properties=properties, tx=tx)
        self.keys[sent] = message.key
        return sent

    def put(self, message, queues, sent):
        for queue in queues:
            self.waiting[queue].append((message.key, sent, 0))

    def note(self, unit, message):
        self.history.send(unit, message, "p", next(self.numbers))

    def send(self, message=None, queues=()):
        unit = self.history.unit()
        if message is None:
            message, queues = self.new_message()
        self.note(unit, message)
        self.history.tried(unit)
        sent = self.store(message, queues)
        self.history.done(unit)
        if self.is_wrong():
            # Its record is deleted, and no queue has acknowledged it.
            self.node.journal.delete(sent, sync=False)
        else:
            self.put(message, queues, sent)

    def send_twice(self):
        """The first answer is lost; the duplicate id says that it is there already."""
        message, queues = self.new_message(has_duplicate_id=True)
        first, second = self.history.unit(), self.history.unit()
        for unit in (first, second):
            self.note(unit, message)
            self.history.tried(unit)
        self.put(message, queues, self.store(message, queues))
        if self.is_wrong():
            self.put(message, queues, self.store(message, queues))
            self.history.done(second)
        else:
            self.history.undone(second)
            self.history.done(first)

    def transaction(self):
        unit = self.history.unit()
        tx = self.node.journal.begin()
        stored = []
        for _ in range(self.chance.randrange(1, 4)):
            message, queues = self.new_message()
            self.note(unit, message)
            stored.append((message, queues, self.store(message, queues, tx)))
        if self.chance.random() < 0.3:
            self.history.undone(unit)
            self.node.journal.rollback(tx)
            return
        self.history.tried(unit)
        self.node.journal.commit(tx, sync=False)
        self.history.done(unit)
        for one in stored:
            self.put(*one)

    def take(self, queue, index):
        key, sent, count = self.waiting[queue].pop(index)
        unit = self.history.unit()
        body = self.history.messages[key].body
        self.history.take(unit, QUEUES[queue], sent, count + 1, 1, body)
        return unit, key, sent, count + 1

    def give_back(self):
        """It is delivered, and rolled back."""
        queue = self.chance.choice(list(self.waiting))
        if self.waiting[queue]:
            unit, key, sent, count = self.take(queue, 0)
            self.history.undone(unit, Return.ROLLBACK)
            self.node.count(sent, count, queue)
            self.waiting[queue].insert(0, (key, sent, count))

    def deliver(self):
        queue = self.chance.choice(list(self.waiting))
        waiting = self.waiting[queue]
        if not waiting:
            return
        # One that was delivered before has kept its place, for the checker.
        index = 1 if len(waiting) > 1 and waiting[0][2] == 0 and self.is_wrong() else 0
        unit, _, sent, _ = self.take(queue, index)
        self.history.tried(unit)
        self.node.update(sent, ACK, queue)
        self.history.done(unit)
        if all(sent != one[1] for waiting in self.waiting.values() for one in waiting):
            self.node.journal.delete(sent, sync=False)
