"""Faults that are planted, to see that a simulation finds them: each a subclass, or a patch.

They are in the types below and nowhere else: no switch of the broker.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

from broker.client.errors import ClientError
from broker.model.wire import RecordType
from broker.routing.addresses import Addresses
from broker.server import composition
from broker.server.server import Broker
from broker.transactions import xa
from broker.transactions.transaction import Transaction
from jdbcstore.errors import LeaseLost
from jdbcstore.lease import LeaseState
from tests.sim.folder_lock import FolderLock
from tests.sim.run import Planted
from tests.sim.sql_pair import SqlStorage, SqlTable
from tests.sim.store import MemoryStore
from tests.sim.workloads import SimWorld

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.broker.history.record import Message, Unit
    from tests.sim.sql_server import SqlConnection

_ACKNOWLEDGE = int(RecordType.ACKNOWLEDGE_REF)


class AnswersBeforeTheSync(MemoryStore):
    """What is written is called durable."""

    def _write(self, position: int) -> None:
        super()._write(position)
        self.reap()

    def _is_due(self, position: int, is_synced: bool) -> bool:
        return super()._is_due(position, is_synced=False)


class LosesAcknowledgements(MemoryStore):
    """One acknowledgement in ten is never written."""

    _count = 0

    def update(self, record_id: int, user_type: int, body: Any, **how: Any) -> int:
        if user_type == _ACKNOWLEDGE:
            self._count += 1
            if self._count % 10 == 0:
                return super().update(record_id, 0, b"", **how)
        return super().update(record_id, user_type, body, **how)


class CommitsInPart(MemoryStore):
    """The first record of a transaction counts by itself."""

    def _record(self, kind: int, record_id: int, *args: Any, **how: Any) -> int:
        tx = how.get("tx")
        if tx is not None and tx not in self._open:
            self._open[tx] = []
            how["tx"] = None
        return super()._record(kind, record_id, *args, **how)


class CountsRecordByRecord(MemoryStore):
    """A send to several queues, or an acknowledgement of several messages, counts in part."""

    def commit(self, tx: int, **how: Any) -> int:
        if "flush_now" in how:
            # Such a transaction alone says so; it stands at the end of the log.
            entries = self.log.entries
            for place, entry in enumerate(entries):
                if entry.tx == tx:
                    entries[place] = entry._replace(tx=None)
        return super().commit(tx, **how)


class AppliesAcknowledgementsTwice(Transaction):
    """A commit acknowledges everything two times."""

    __slots__ = ()

    def _committed(self, error: Any, done: Any, arguments: Any) -> None:
        if error is None:
            for reference in self.acknowledged:
                reference.queue.acknowledged(reference)
        super()._committed(error, done, arguments)


class StarvesAQueue(Broker):
    """A timer that makes a queue wait, and comes again before it is over."""

    async def start(self) -> None:
        await super().start()
        self._starve()

    def _starve(self) -> None:
        queue = self.parts.postoffice.addresses.queues.get("single")
        if queue is not None:
            queue.pause()
            self._loop.call_later(9, queue.resume)
        self._loop.call_later(1, self._starve)


class KeepsStaleRoutes(Addresses):
    """Whatever changes, routes that were found before are used again."""

    version = property(lambda _: 0, lambda _self, _value: None)


class SendsAgain(SimWorld):
    """A client that has lost its connection sends its last message again, confirmed or not."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._last: Message | None = None

    async def count(self, unit: Unit, call: Callable[[], Awaitable[object]]) -> bool:
        try:
            is_done = await super().count(unit, call)
        except ClientError:
            await self._send_again()
            raise
        if is_done and unit.sends:
            self._last = unit.sends[-1].message
        return is_done

    async def _send_again(self) -> None:
        message, self._last = self._last, None
        if message is None or message.has_duplicate_id:
            return
        async with self.client(initial_connect_attempts=20) as client:
            session = await client.session()
            await session.producer(message.address).send(message.body)


class TrustsItsMemory(SqlTable):
    """A lease that was held is held: no transaction proves it, and a pause is not noticed."""

    def hold_fence(self, raw: SqlConnection) -> None:
        if self.lease.state is not LeaseState.HELD:
            raise LeaseLost("the lease is lost")
        raw.execute("SELECT 1")


class KeepsItsLease(SqlStorage):
    """Of a pair whose fence is the memory of its brokers."""

    table_type = TrustsItsMemory


class NeverLooks(FolderLock):
    """Who has got the lock has it: nothing looks whether another has it since."""

    def check(self) -> None:
        """Nothing."""

    def _look_once(self) -> None:
        """Nothing."""


class AnswersUnseen(FolderLock):
    """The lock is looked after, twice a second, and not before an answer."""

    def check(self) -> None:
        """Nothing."""


_STALE = (partial(mock.patch.object, composition, "Addresses", KeepsStaleRoutes),)
_TWICE = (partial(mock.patch.object, xa, "Transaction", AppliesAcknowledgementsTwice),)

# What it is: the story that it is looked for in, the types with the fault.
PLANTED = {
    "an answer before the sync": ("crashes", Planted(store=AnswersBeforeTheSync)),
    "a lost acknowledgement": ("crashes", Planted(store=LosesAcknowledgements)),
    "an acknowledgement applied twice": ("calm", Planted(patches=_TWICE)),
    "a transaction applied in part": ("crashes", Planted(store=CommitsInPart)),
    "a send or an acknowledgement in part": ("crashes", Planted(store=CountsRecordByRecord)),
    "a timer that starves a queue": ("calm", Planted(broker=StarvesAQueue)),
    "a stale cached route": ("calm", Planted(patches=_STALE)),
    "a client that sends again": ("reconnects", Planted(world=SendsAgain)),
    "a lease kept in memory across a pause": ("pairs", Planted(pair_storage=KeepsItsLease)),
    "a file lock that is not looked after": ("pairs", Planted(pair_lock=NeverLooks)),
    "an answer without a look at the lock": ("pairs", Planted(pair_lock=AnswersUnseen)),
}
