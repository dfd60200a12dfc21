"""Brokers' journals, and their histories, as an audit's tests want them."""

import struct

from broker.bridges.jms.duplicate_ids import duplicate_id
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.records.binding_records import QueueBinding, QueueStatus, QueueStatusRecord
from broker.records.message_records import DuplicateId, PageTransaction
from broker.records.records import encode_record
from broker.records.stored_messages import CoreMessage, MessageHeaders
from broker.routing.duplicates import BRIDGE_PREFIX
from broker.storage.node_lock import NodeLock
from journal import Journal, JournalOptions

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
ORDERS, BILLS, LINE, PAUSED, IDLE, FORWARDS = 5, 6, 7, 8, 9, 20
QUEUES = {ORDERS: "orders", BILLS: "bills", LINE: "line", PAUSED: "paused", IDLE: "idle"}
QUEUE, STATUS, TRANSACTION = 21, 22, 35
MESSAGE, REF, ACK, COUNT, SCHEDULED, DUPLICATE = 45, 32, 33, 34, 36, 37


class Node:
    """A broker's two journals, in the making."""

    def __init__(self, folder, *, keeps_history=False):
        self.folder = folder
        lock = NodeLock(folder / "journal")
        lock.acquire()
        lock.release()
        self.node_id = lock.node_id
        self.bindings = self.open("bindings", "activemq-bindings", "bindings")
        for queue_id, name in QUEUES.items():
            self.bind(queue_id, name, exclusive=queue_id == LINE)
        self.bindings.add(
            1000, STATUS, encode_record(QueueStatusRecord(PAUSED, QueueStatus.PAUSED))
        )
        for number, status in enumerate((QueueStatus.PAUSED, QueueStatus.RUNNING)):
            self.bindings.add(1001 + number, STATUS, encode_record(QueueStatusRecord(IDLE, status)))
        history = {}
        if keeps_history:
            history = {"retention_directory": folder / "retention", "retention_period_ms": 10**9}
        self.journal = self.open("journal", "activemq-data", "amq", **history)
        self.next_id = 10_000

    def open(self, part, prefix, extension, **options):
        journal = Journal(
            JournalOptions(
                directory=self.folder / part,
                prefix=prefix,
                extension=extension,
                file_size=1 << 16,
                **options,
            )
        )
        journal.open()
        journal.load()
        return journal

    def bind(self, queue_id, name, *, exclusive=False):
        binding = QueueBinding(
            name, name, None, "", False, routing_type=RoutingType.ANYCAST, exclusive=exclusive
        )
        self.bindings.add(queue_id, QUEUE, encode_record(binding))

    def forward_to(self, nodes):
        """Bind a forwarding queue to each of the others; their ids are FORWARDS and on."""
        self.forwards = {}
        for number, other in enumerate(nodes):
            if other is not self:
                self.forwards[other] = FORWARDS + number
                name = f"$.artemis.internal.sf.my-cluster.{other.node_id}"
                self.bind(FORWARDS + number, name)

    def send(
        self,
        *queue_ids,
        address="orders",
        age_ms=1000,
        left_ms=0,
        duplicate="",
        user="",
        priority=4,
        properties=None,
        tx=None,
        is_paged=False,
        message_id=None,
    ):
        """A message in queues; its id.

        Args:
            left_ms: until it expires.
            is_paged: it went into a page, of which the history has events.
            message_id: an earlier one.
            age_ms, and so on: of the message.
        """
        if message_id is None:
            message_id = self.new_id()
        texts = dict(properties or {})
        if duplicate:
            texts["_AMQ_DUPL_ID"] = duplicate
        headers = MessageHeaders(
            message_id=message_id,
            address=address,
            user_id=user.encode().rjust(16, b"0") if user else None,
            type=4,
            durable=True,
            expiration=NOW_MS + left_ms if left_ms else 0,
            timestamp=NOW_MS - age_ms,
            priority=priority,
            properties=tuple(
                Property(name, PropertyType.STRING, value) for name, value in texts.items()
            ),
        )
        body = encode_record(CoreMessage(message_id, address, b"body", headers))
        if is_paged:
            self._note(message_id, body, queue_ids, tx)
            return message_id
        self.journal.add(message_id, MESSAGE, body, tx=tx, sync=False)
        for queue_id in queue_ids:
            self.update(message_id, REF, queue_id, tx=tx)
        return message_id

    def _note(self, message_id, body, queue_ids, tx):
        if tx is not None:
            told = encode_record(PageTransaction(tx, 1))
            self.journal.event(message_id, TRANSACTION, told, sync=False)
        self.journal.event(message_id, MESSAGE, body, sync=False)
        for queue_id in queue_ids:
            self.journal.event(message_id, REF, queue_id.to_bytes(8, "big"), sync=False)

    def commit_paged(self, tx):
        """Commit a transaction that put a message into a page."""
        told = encode_record(PageTransaction(tx, 1))
        self.journal.add(self.new_id(), TRANSACTION, told, tx=tx, sync=False)
        self.journal.commit(tx, sync=False)

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def update(self, message_id, kind, *values, tx=None):
        body = struct.pack(f">{len(values)}q", *values)
        self.journal.update(message_id, kind, body, tx=tx, sync=False)

    def count(self, message_id, count, queue_id=ORDERS):
        self.journal.update(message_id, COUNT, struct.pack(">qi", queue_id, count))

    def done(self, message_id, *queue_ids):
        """Acknowledged by all its queues, and deleted."""
        for queue_id in queue_ids:
            self.update(message_id, ACK, queue_id)
        self.journal.delete(message_id, sync=False)

    def forward(self, message_id, target):
        """The bridge has sent it, and was told that the target has it."""
        self.done(message_id, self.forwards[target])

    def accept(self, source, message_id, *queue_ids, within=None, **given):
        """What the bridge of another node brings; its id here.

        Args:
            source: the other node.
            message_id: its id there.
            queue_ids: that get it.
            within: a transaction whose commit is yet to come.
            given: of the message.
        """
        tx = self.journal.begin() if within is None else within
        given_id = bytes.fromhex(source.node_id.replace("-", "")) + struct.pack(">q", message_id)
        record = DuplicateId(BRIDGE_PREFIX + given.get("address", "orders"), given_id)
        self.journal.add(self.new_id(), DUPLICATE, encode_record(record), tx=tx)
        brought = self.send(*queue_ids, tx=tx, **given)
        if within is None:
            self.journal.commit(tx, sync=False)
        return brought

    def bring(self, source, message_id, queue, *queue_ids, as_text=False, is_undone=False):
        """What a JMS bridge brings from a queue of another node by duplicate ids; its id here.

        Args:
            as_text: by another protocol than Core.
            is_undone: its transaction is rolled back.
        """
        position = queue.encode() + b"\0" + struct.pack(">q", message_id)
        given_id = duplicate_id(source.node_id, position)
        if as_text:
            given_id = given_id.hex().encode("utf-16-le")
        tx = self.journal.begin()
        self.next_id += 1
        record = encode_record(DuplicateId("orders", given_id))
        self.journal.add(self.next_id, DUPLICATE, record, tx=tx)
        brought = self.send(*queue_ids, tx=tx)
        (self.journal.rollback if is_undone else self.journal.commit)(tx, sync=False)
        return brought

    def close(self):
        self.journal.close()
        self.bindings.close()
