"""Brokers whose histories are made by chance: the same ones each time, of each number."""

import random

from broker.model.xid import Xid
from broker.records.records import encode_prepared
from tests.pipeline.planted import (
    ACK,
    BILLS,
    HOUR_MS,
    IDLE,
    LINE,
    MESSAGE,
    NOW_MS,
    ORDERS,
    PAUSED,
    REF,
    SCHEDULED,
    Node,
)

NAMES = ("left", "middle", "right")
STEPS = 220


class Chance:
    """Brokers of one number, and what happens to them.

    Args:
        root: folder of the nodes.
        number: says what happens.
        has_faults: whether anything happens that an audit finds.
    """

    def __init__(self, root, number, *, has_faults):
        self.random = random.Random(number)
        self.has_faults = has_faults
        self.address = f"a{number}"
        self.number = number
        names = NAMES[: self.random.randint(2, 3)]
        self.nodes = [Node(root / f"c{number:02}{name}", keeps_history=True) for name in names]
        for node in self.nodes:
            node.forward_to(self.nodes)
        # (node, message id, queue id) of what waits; and what is in an open transaction.
        self.waiting = []
        self.labels = 0
        self.open = []

    def fault(self, share):
        return self.has_faults and self.random.random() < share

    def label(self):
        if self.labels and self.fault(0.06):
            return f"{self.number}-{self.random.randrange(self.labels)}"
        self.labels += 1
        return f"{self.number}-{self.labels}"

    def ids(self):
        found = {"address": self.address, "priority": self.random.choice((4, 4, 4, 9))}
        if self.random.random() < 0.7:
            found["user"] = self.label()
        if self.random.random() < 0.3:
            found["duplicate"] = self.label()
        return found

    def run(self):
        deeds = [(self.keep, 40), (self.forward, 25), (self.acknowledge, 45), (self.pair, 6)]
        deeds += [(self.transaction, 12), (self.end, 10), (self.move, 5), (self.page, 8)]
        deeds += [(self.tidy, 2), (self.wrong, 12 if self.has_faults else 0)]
        for _ in range(STEPS):
            (deed,) = self.random.choices([one for one, _ in deeds], [much for _, much in deeds])
            deed(self.random.choice(self.nodes))
        while self.open:
            if self.has_faults and len(self.open) < 2:
                break
            self.end(None)
        for node in self.nodes:
            if self.random.random() < 0.8:
                node.journal.compact()
            node.close()
            # The id of this node is unknown.
            if self.has_faults and self.number % 4 == 3 and node is self.nodes[0]:
                (node.folder / "journal" / "server.lock").unlink()

    def queue(self):
        return self.random.choice((ORDERS, ORDERS, BILLS, IDLE))

    def keep(self, node):
        given = self.ids()
        queues = {self.queue() for _ in range(self.random.randint(1, 2))}
        if self.has_faults:
            if self.random.random() < 0.3:
                given["age_ms"] = self.random.randrange(3 * HOUR_MS)
            if self.random.random() < 0.3:
                given["properties"] = {"_AMQ_GROUP_ID": self.random.choice("ab")}
            if self.random.random() < 0.2:
                queues = {LINE}
            if self.random.random() < 0.05:
                queues.add(PAUSED)
        sent = node.send(*queues, **given)
        self.waiting += [(node, sent, queue) for queue in sorted(queues)]

    def pair(self, node):
        """Two, one after the other, in a line: taken as they came."""
        pair = [node.send(LINE, address=self.address) for _ in range(2)]
        if self.fault(0.4):
            pair.reverse()
        for one in pair:
            node.done(one, LINE)

    def acknowledge(self, _):
        if not self.waiting:
            return
        node, sent, queue = self.waiting.pop(self.random.randrange(len(self.waiting)))
        if self.fault(0.04):
            node.journal.delete(sent, sync=False)
            self.waiting = [one for one in self.waiting if one[:2] != (node, sent)]
            return
        tx = node.journal.begin() if self.random.random() < 0.2 else None
        node.update(sent, ACK, queue, tx=tx)
        is_last = all(one[:2] != (node, sent) for one in self.waiting)
        if is_last:
            node.journal.delete(sent, tx=tx, sync=False)
        if tx is not None:
            node.journal.commit(tx, sync=False)

    def forward(self, node):
        others = [one for one in self.nodes if one is not node]
        targets = self.random.sample(others, self.random.randint(1, len(others)))
        ids = self.ids()
        ways = [node.forwards[one] for one in targets]
        kept = [ORDERS] if self.random.random() < 0.3 else []
        sent = node.send(*ways, *kept, **ids)
        self.waiting += [(node, sent, one) for one in kept]
        for target in targets:
            if self.fault(0.08):
                continue
            for _ in range(2 if self.fault(0.05) else 1):
                brought = target.accept(node, sent, ORDERS, **ids)
                self.waiting.append((target, brought, ORDERS))
        for way in ways:
            if not self.fault(0.05):
                node.update(sent, ACK, way)
        if not kept:
            node.journal.delete(sent, sync=False)

    def transaction(self, node):
        tx = node.journal.begin()
        queue = self.queue()
        sent = [node.send(queue, tx=tx, **self.ids()) for _ in range(self.random.randint(1, 3))]
        self.open.append((node, tx, queue, sent))

    def end(self, _):
        if not self.open:
            return
        node, tx, queue, sent = self.open.pop(self.random.randrange(len(self.open)))
        if self.fault(0.15):
            node.journal.prepare(tx, encode_prepared(Xid(1, b"branch", b"%d" % tx)))
        elif self.random.random() < 0.3:
            node.journal.rollback(tx)
        else:
            node.journal.commit(tx, sync=False)
            self.waiting += [(node, one, queue) for one in sent]

    def move(self, node):
        """To another address, out of a forwarding queue or one of its own."""
        other = next(one for one in self.nodes if one is not node)
        is_forwarded = self.random.random() < 0.5
        queue = node.forwards[other] if is_forwarded else ORDERS
        name = f"$.artemis.internal.sf.my-cluster.{other.node_id}" if is_forwarded else "orders"
        user = self.label()
        sent = node.send(queue, user=user, address=self.address)
        origin = {"_AMQ_ORIG_MESSAGE_ID": str(sent), "_AMQ_ORIG_QUEUE": name}
        if self.fault(0.2):
            origin.pop("_AMQ_ORIG_QUEUE")
        if self.fault(0.3):
            origin["_AMQ_ACTUAL_EXPIRY"] = str(NOW_MS - 5)
        again = node.send(BILLS, user=user, properties=origin, address=self.address)
        node.done(sent, queue)
        self.waiting.append((node, again, BILLS))

    def page(self, node):
        """What went into a page is an event, with one for each queue."""
        ids = self.ids()
        is_forwarded = self.random.random() < 0.3
        other = next(one for one in self.nodes if one is not node)
        queue = node.forwards[other] if is_forwarded else ORDERS
        tx = None
        # Nothing is forwarded before it was committed, unless that is a fault.
        if self.random.random() < 0.4 and (self.has_faults or not is_forwarded):
            tx = node.journal.begin()
            self.labels += 1
            node.send(BILLS, address=self.address, tx=tx)
        for _ in range(self.random.randint(1, 3)):
            user = ids.pop("user", "")
            sent = node.send(queue, address=self.address, user=user, tx=tx, is_paged=True)
            if is_forwarded and not self.fault(0.2):
                other.done(other.accept(node, sent, ORDERS, address=self.address), ORDERS)
        if tx is not None:
            self.open.append((node, tx, BILLS, []))

    def tidy(self, node):
        node.journal.compact()

    def wrong(self, node):
        deed = self.random.randrange(8)
        old = {"age_ms": 2 * HOUR_MS, "address": self.address}
        if deed == 0:
            node.send(address=self.address)
        elif deed == 1:
            node.send(999, address=self.address)
        elif deed == 2:
            node.next_id += 1
            node.journal.add(node.next_id, MESSAGE, b"\x09nonsense")
            node.update(node.next_id, REF, ORDERS)
        elif deed == 3:
            node.count(node.send(ORDERS, address=self.address), self.random.randint(2, 4))
        elif deed == 4:
            late = node.send(ORDERS, **old)
            node.update(late, SCHEDULED, ORDERS, NOW_MS + self.random.randrange(3 * HOUR_MS))
        elif deed == 5:
            node.send(ORDERS, left_ms=self.random.choice((-5000, 5000)), address=self.address)
        elif deed == 6:
            # Nothing was sent with that id.
            other = next(one for one in self.nodes if one is not node)
            other.accept(node, 7_000_000 + node.next_id, ORDERS, address=self.address)
        else:
            node.send(PAUSED, **old)


def make_clusters(root, numbers, *, has_faults):
    """Write clusters by number; by the id of each node its name."""
    names = {}
    for number in numbers:
        chance = Chance(root, number, has_faults=has_faults)
        chance.run()
        names |= {node.node_id: node.folder.name for node in chance.nodes}
    return names
