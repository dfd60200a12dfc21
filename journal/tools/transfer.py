"""Records as JSON lines, and back into a journal: the whole of what a load gives, nothing else.

    {"record":"add"|"update","id":I,"user_type":T,"body":"HEX"}
    {"record":"prepared","tx_id":X,"extra":"HEX","adds":[{"id":I,"user_type":T,"update":false,
     "body":"HEX"}...],"deletes":[I...],"delete_bodies":["HEX"...]}

The same lines as `print-data --format jsonl` writes, whose further keys are ignored; the position
of a record in its file is left out. `delete_bodies` is there only where one is not empty.
Failed transactions, which would not apply, are not exported.

Import writes in one transaction (or, asked to, one for so many lines). Its commit is the last
record and makes all of them count, so neither a bad line nor a kill leaves half of it behind.
Prepared transactions are written before that commit. Only a kill between their prepare records and
the commit leaves them alone; they are then seen as prepared, and importing again says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from journal.errors import JournalError, RecordTooLarge, WrongUse
from journal.tools.answers import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.api import Progress
    from journal.loaded import PreparedTransaction
    from journal.tools.stored import Store, StoredRecords

__all__ = ["BadLine", "ImportReport", "Importer", "TransferTarget", "export_lines"]

ID_MIN: Final = -(2**63)
ID_MAX: Final = 2**63 - 1
# An import uses transaction ids of its own: the ids in the lines are kept as they are.
FIRST_TX: Final = ID_MIN
TX_RECORD_SIZE: Final = 32  # of the largest record in a transaction, its body left out


# --- export ---------------------------------------------------------------------------------------


def export_lines(records: StoredRecords, progress: Progress) -> Iterator[str]:
    """The live records in load order, then the prepared transactions."""
    for record in records.records(progress):
        yield json.dumps(
            {
                "record": "update" if record.is_update else "add",
                "id": record.record_id,
                "user_type": record.user_type,
                "body": bytes(record.body).hex(),
            }
        )
    for prepared in records.prepared:
        yield json.dumps(_prepared_object(prepared))


def _prepared_object(prepared: PreparedTransaction) -> dict[str, Any]:
    line: dict[str, Any] = {
        "record": "prepared",
        "tx_id": prepared.tx_id,
        "extra": prepared.extra.hex(),
        "adds": [
            {
                "id": record.record_id,
                "user_type": record.user_type,
                "update": record.is_update,
                "body": bytes(record.body).hex(),
            }
            for record in prepared.records
        ],
        "deletes": [delete.record_id for delete in prepared.deletes],
    }
    if any(delete.body for delete in prepared.deletes):
        line["delete_bodies"] = [delete.body.hex() for delete in prepared.deletes]
    return line


# --- import ---------------------------------------------------------------------------------------


class BadLine(WrongUse):
    """A line of the input cannot be imported; the message has its number."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An add or update, of a transaction or not."""

    record_id: int
    user_type: int
    body: bytes
    is_update: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared transaction."""

    tx_id: int
    extra: bytes
    operations: tuple[Operation, ...]
    deletes: tuple[tuple[int, bytes], ...]


@dataclass(slots=True)
class ImportReport:
    """What an import has written.

    Attributes:
        adds: add records.
        updates: update records.
        lone_updates: those of them whose record is neither in the input nor in the journal.
        doubled_adds: adds of an id that the input has added before, as journals of careless
            writers hold them.
        prepared: prepared transactions.
        failed: failed transactions in the input, passed over.
    """

    adds: int = 0
    updates: int = 0
    lone_updates: int = 0
    doubled_adds: int = 0
    prepared: int = 0
    failed: int = 0


class TransferTarget:
    """Writes records into a journal in transactions of its own.

    Args:
        journal: loaded.
        open_transactions: ids of the transactions that are prepared in it.
        batch: commit after so many records; 0 is only at the end.

    Threads: one.
    """

    def __init__(self, journal: Store, open_transactions: Iterable[int], *, batch: int) -> None:
        self.journal = journal
        self.report = ImportReport()
        self._batch = batch
        self._known = set(open_transactions)
        self._added: set[int] = set()
        self._tx = FIRST_TX
        self._buffered = 0
        self._prepared: list[Prepared] = []

    def holds(self, record_id: int) -> bool:
        """Whether the id is live in the journal, or was written here."""
        return record_id in self._added or record_id in self.journal

    def write(self, operation: Operation) -> bool:
        """Write an add or update; whether everything so far is committed now.

        Raises:
            WrongUse: an add of an id that was there before, or a body that is too large.
            JournalIOError: the disk fails.
        """
        record_id = operation.record_id
        self._check_size(operation.body)
        if not operation.is_update:
            if record_id in self._added:
                self.report.doubled_adds += 1
            elif record_id in self.journal:
                raise WrongUse(f"record {record_id} is there already")
            self._write(operation, self._tx)
            self._added.add(record_id)
            self.report.adds += 1
        else:
            self._write(operation, self._tx)
            self.report.lone_updates += not self.holds(record_id)
            self.report.updates += 1
        self._buffered += 1
        if self._buffered == self._batch:
            self.commit()
            return True
        return False

    def keep(self, prepared: Prepared) -> None:
        """Write a prepared transaction, at the end.

        Raises:
            WrongUse: its id is in use, one of its adds is, or something in it is too large.
        """
        if prepared.tx_id in self._known or prepared.tx_id <= self._tx:
            raise WrongUse(f"transaction {prepared.tx_id} is there already")
        for body in (prepared.extra, *(body for _, body in prepared.deletes)):
            self._check_size(body)
        for operation in prepared.operations:
            self._check_size(operation.body)
            if not operation.is_update and self.holds(operation.record_id):
                raise WrongUse(f"record {operation.record_id} is there already")
        self._known.add(prepared.tx_id)
        self._prepared.append(prepared)

    def commit(self) -> None:
        """Make all that was written since the last commit count, durably."""
        if self._buffered:
            self.journal.commit(self._tx, sync=True)
            self._tx += 1
            self._buffered = 0

    def finish(self) -> ImportReport:
        """Write the prepared transactions, then commit; when this returns, all is durable."""
        for prepared in self._prepared:
            for operation in prepared.operations:
                self._write(operation, prepared.tx_id)
            for record_id, body in prepared.deletes:
                self.journal.delete(record_id, body, tx=prepared.tx_id, wait=False)
            self.journal.prepare(prepared.tx_id, prepared.extra, sync=False, wait=False)
        self.commit()
        self.journal.sync()
        self.report.prepared = len(self._prepared)
        return self.report

    def give_up(self) -> None:
        """Let nothing count that was written since the last commit."""
        if self._buffered:
            self.journal.rollback(self._tx, sync=False, wait=False)
            self._buffered = 0

    def _check_size(self, body: bytes) -> None:
        """Refuse what does not fit before the engine does: that would end the transaction."""
        room = self.journal.record_size_max - TX_RECORD_SIZE
        if len(body) > room:
            raise RecordTooLarge(
                f"a body of {len(body)} bytes; at most {room} fit --file-size and --buffer-size"
            )

    def _write(self, operation: Operation, tx: int) -> None:
        write = self.journal.update if operation.is_update else self.journal.add
        write(operation.record_id, operation.user_type, operation.body, tx=tx, wait=False)


@dataclass(slots=True)
class Importer:
    """Reads lines into a journal, whole or not at all.

    Attributes:
        target: where to.
        last_line: number of the last line that counts after an error.
    """

    target: TransferTarget
    last_line: int = field(default=0, init=False)

    def run(self, lines: Iterable[bytes]) -> ImportReport:
        """Import every line.

        Raises:
            BadLine: a line is wrong; what counts are the lines to `last_line`.
            JournalIOError: the disk fails.
        """
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                self._take(line, number)
            report = self.target.finish()
        except (WrongUse, ValueError) as error:
            self.target.give_up()
            imported = (
                f"lines 1 to {self.last_line} are imported"
                if self.last_line
                else "nothing is imported"
            )
            reason = describe(error) if isinstance(error, JournalError) else str(error)
            raise BadLine(f"line {number}: {reason}; {imported}") from error
        self.last_line = number
        return report

    def _take(self, line: bytes, number: int) -> None:
        parsed = parse_line(line)
        if parsed is None:
            self.target.report.failed += 1
        elif isinstance(parsed, Prepared):
            self.target.keep(parsed)
        elif self.target.write(parsed):
            self.last_line = number


def parse_line(line: bytes) -> Operation | Prepared | None:
    r"""What a line says; None for a failed transaction.

    Raises:
        ValueError: it is no such line; the message says why.

    >>> parse_line(b'{"record":"add","id":7,"user_type":1,"body":"cafe"}').body
    b'\xca\xfe'
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    kind = value.get("record")
    if kind in ("add", "update"):
        return _operation(value, is_update=kind == "update")
    if kind == "failed":
        return None
    if kind != "prepared":
        raise ValueError(f"record is {kind!r}; it is add, update, prepared or failed")
    return _prepared(value)


def _operation(value: Any, *, is_update: bool) -> Operation:  # noqa: ANN401 - parsed JSON.
    record_id = _id(value.get("id"), "id")
    user_type = value.get("user_type")
    if type(user_type) is not int or not -128 <= user_type <= 255:
        raise ValueError(f"user_type is {user_type!r}; it is a number from 0 to 255")
    return Operation(record_id, user_type & 0xFF, _body(value.get("body"), "body"), is_update)


def _prepared(value: Any) -> Prepared:  # noqa: ANN401 - parsed JSON.
    adds = _list(value, "adds")
    deletes = _list(value, "deletes")
    bodies = _list(value, "delete_bodies") or [""] * len(deletes)
    if len(bodies) != len(deletes):
        raise ValueError(f"{len(deletes)} deletes and {len(bodies)} delete_bodies")
    if any(not isinstance(add, dict) or type(add.get("update", False)) is not bool for add in adds):
        raise ValueError("an entry of adds is not an add or update")
    return Prepared(
        _id(value.get("tx_id"), "tx_id"),
        _body(value.get("extra"), "extra"),
        tuple(_operation(add, is_update=add.get("update", False)) for add in adds),
        tuple(
            (_id(record_id, "a delete"), _body(body, "a delete's body"))
            for record_id, body in zip(deletes, bodies, strict=True)
        ),
    )


def _list(value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name, [])
    if not isinstance(found, list):
        raise ValueError(f"{name} is not a list")
    return found


def _id(value: object, name: str) -> int:
    if type(value) is int and ID_MIN <= value <= ID_MAX:
        return value
    raise ValueError(f"{name} is {value!r}; it is a whole number of 64 bits")


def _body(value: object, name: str) -> bytes:
    if isinstance(value, str):
        try:
            body = bytes.fromhex(value)
        except ValueError:
            body = None
        if body is not None and len(value) == 2 * len(body):  # fromhex() passes over spaces.
            return body
    raise ValueError(f"{name} is not a string of hexadecimal digits, two a byte")
