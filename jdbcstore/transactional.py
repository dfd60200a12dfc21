"""Appends in transactions; prepare, commit and rollback.

An operation stays in memory until its transaction ends (transactions.py says up to which size), or
is staged: its row goes to the table, and does not count yet.

Threads: any; a lock is held from the look at a transaction until what follows from it is accepted.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jdbcstore.appends import ID_MAX, Appends, check_id
from jdbcstore.rows import PREPARE_RECORD
from jdbcstore.transactions import OpenTransaction, Operation
from journal.errors import TransactionFailed, UnknownTransaction, WrongUse

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from journal.api import Done

__all__ = ["TransactionalAppends"]


class TransactionalAppends(Appends):
    """Appends, with transactions. Arguments as for Appends."""

    def __init__(
        self, *, sync_transactional: bool = True, sync_non_transactional: bool = True
    ) -> None:
        super().__init__(
            sync_transactional=sync_transactional, sync_non_transactional=sync_non_transactional
        )
        self._tx_lock = threading.Lock()
        self._open_txs: dict[int, OpenTransaction] = {}
        self._next_tx_id = 0

    def begin(self) -> int:
        """An unused transaction id: 1 or above, and above all that load() found.

        The id of any transaction that is not open will do, too, 0 among them.

        Raises:
            WrongUse: the highest 64-bit number was given out.
        """
        self.ensure_usable()
        while self._next_tx_id < ID_MAX:
            self._next_tx_id += 1
            if self._next_tx_id not in self._open_txs:
                return self._next_tx_id
        raise WrongUse(f"no transaction id is left above {ID_MAX}: choose an unused one")

    def prepare(
        self,
        tx: int,
        extra: Buffer = b"",
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Make the transaction survive as prepared, with `extra` data for its owner; a ticket."""
        extra = self.checked(extra)
        check_id(tx)
        if sync is None:
            sync = self.sync_transactional
        with self._tx_lock:
            one = self._open_txs.get(tx)
            if one is None:
                one = self._open_txs[tx] = OpenTransaction(tx)
            refuse_failed(one)
            self._stage_all(one)
            ticket, seq = self.stage(
                tx,
                0,
                PREPARE_RECORD,
                0xFF,
                b"",
                extra,
                is_wanted=sync,
                is_blocking=wait and done is None,
            )
            one.note_staged(PREPARE_RECORD, 0, seq)
            one.is_prepared = True
        return self.finish_append(ticket, sync, done, wait)

    def commit(
        self,
        tx: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
        flush_now: bool = True,
    ) -> int:
        """Make all of the transaction count; a ticket. `flush_now` is as for add().

        Raises:
            UnknownTransaction: it has no record, or has ended.
            TransactionFailed: an operation of it was refused: roll it back.
        """
        self.ensure_usable()
        if sync is None:
            sync = self.sync_transactional
        is_blocking = wait and done is None
        with self._tx_lock:
            one = self._known(tx)
            refuse_failed(one)
            del self._open_txs[tx]
            if one.is_staged:
                ticket = self.end_staged(one, True, sync, is_blocking)
            else:
                ticket = self.put_operations(one.operations, sync, is_blocking, flush_now)
        return self.finish_append(ticket, sync, done, wait)

    def rollback(
        self,
        tx: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Make none of the transaction count; a ticket.

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        self.ensure_usable()
        if sync is None:
            sync = self.sync_transactional
        with self._tx_lock:
            one = self._known(tx)
            del self._open_txs[tx]
            if one.is_staged:
                ticket = self.end_staged(one, False, sync, wait and done is None)
            else:
                # Nothing of it is in the table: rolled back by being forgotten.
                return self.finish_unwritten(sync, done, wait)
        return self.finish_append(ticket, sync, done, wait)

    def append_tx(
        self,
        record_type: int,
        record_id: int,
        user_type: int,
        body: Buffer,
        tx: int,
        done: Done | None,
    ) -> int:
        """Keep one operation of a transaction, or stage it; never waits for the database."""
        self.ensure_usable()
        with self._tx_lock:
            one = self._open_txs.get(tx)
            if one is None:
                check_id(tx)
                one = self._open_txs[tx] = OpenTransaction(tx)
            refuse_failed(one)
            try:
                body = self.checked(body)
                check_id(record_id)
            except WrongUse:
                one.is_failed = True
                raise
            operation = Operation(record_type, record_id, user_type & 0xFF, body)
            # In memory it has nothing to write: what counts is the ticket of its commit.
            ticket = self.last_ticket()
            if one.is_staged:
                ticket = self._stage(one, operation)
            else:
                one.take(operation)
                if one.is_large:
                    ticket = self._stage_all(one)
        return self.finish_append(ticket, False, done, False)

    def fail_transaction(self, tx: int) -> None:
        """An operation of it was refused: only a rollback is left."""
        check_id(tx)
        with self._tx_lock:
            self._open_txs.setdefault(tx, OpenTransaction(tx)).is_failed = True

    def stage_open(self) -> None:
        """What is open at the end goes to the table, so that the next load reports it as failed."""
        with self._tx_lock:
            for one in self._open_txs.values():
                if one.operations and not one.is_failed:
                    self._stage_all(one)

    # --- inner steps --------------------------------------------------------------------------

    def _known(self, tx: int) -> OpenTransaction:
        check_id(tx)
        one = self._open_txs.get(tx)
        if one is None:
            raise UnknownTransaction(f"Cannot find tx with id {tx}")
        return one

    def _stage_all(self, one: OpenTransaction) -> int:
        """Move a transaction's operations from memory to the table; the last one's ticket."""
        ticket = self.last_ticket()
        for operation in one.operations:
            ticket = self._stage(one, operation)
        one.operations.clear()
        one.is_staged = True
        return ticket

    def _stage(self, one: OpenTransaction, operation: Operation) -> int:
        record_type, record_id, user_type, body = operation
        ticket, seq = self.stage(one.tx_id, record_id, record_type, user_type, body, b"")
        one.note_staged(record_type, record_id, seq)
        return ticket


def refuse_failed(one: OpenTransaction) -> None:
    """Refuse to go on with a transaction that can only be rolled back.

    Raises:
        TransactionFailed: it is one.
    """
    if one.is_failed:
        raise TransactionFailed(
            f"transaction {one.tx_id} lost an operation to an earlier error: roll it back"
        )
