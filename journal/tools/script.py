"""`journal exec`: operations, one a line, done in order on an open journal.

    add TYPE HEX [id=ID] [tx=X]      update ID TYPE HEX [tx=X]      delete ID [tx=X]
    begin                            prepare X [HEX]                commit X    rollback X
    compact                          reclaim                        sync

Ids that the script does not choose, and transactions, come from one sequence, above all that the
journal has seen, as a broker's do. `-` is an empty body. Empty lines and lines that begin with `#`
are skipped and get no answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from journal.errors import JournalError
from journal.tools.answers import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from journal.tools.answers import Answers
    from journal.tools.stored import Store

__all__ = ["Script"]

ID_MIN: Final = -(2**63)
ID_MAX: Final = 2**63 - 1
NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


class ScriptError(Exception):
    """A line is not a valid operation; the message says why."""


class Script:
    """Runs operations on a journal and answers each.

    Args:
        journal: loaded.
        answers: of this journal.
        last_id: the greatest record or transaction id that the journal has seen.
        is_synced: answer only what is durable; else what is accepted.
    """

    def __init__(
        self, journal: Store, answers: Answers, last_id: int, *, is_synced: bool = True
    ) -> None:
        self._journal = journal
        self._answers = answers
        self._last_id = max(last_id, 0)
        self._is_synced = is_synced
        self._operations: dict[str, Callable[[list[str], dict[str, int]], None]] = {
            "add": self._add,
            "update": self._update,
            "delete": self._delete,
            "begin": self._begin,
            "prepare": self._prepare,
            "commit": self._commit,
            "rollback": self._rollback,
            "compact": self._compact,
            "reclaim": self._reclaim,
            "sync": self._sync,
        }

    def run(self, line: bytes) -> None:
        """Run one line; an error becomes the line's answer."""
        words = line.decode("utf-8", "backslashreplace").split()
        if not words or words[0].startswith("#"):
            return
        operation = self._operations.get(words[0])
        try:
            if operation is None:
                raise ScriptError(f"no operation is called {words[0]!r}")
            operation(*_arguments(words))
        except ScriptError as error:
            self._answers.refuse(str(error))
        except JournalError as error:
            self._answers.refuse(f"{words[0]}: {describe(error)}")

    def next_id(self) -> int:
        """An id that neither a record nor a transaction has had."""
        if self._last_id == ID_MAX:
            raise ScriptError("no id is left above those used")
        return self._last_id + 1

    def _add(self, words: list[str], keys: dict[str, int]) -> None:
        kind, body = _take(words, "add TYPE HEX")
        user_type, data = _user_type(kind), _bytes(body)
        tx = keys.pop("tx", None)
        record_id = keys.pop("id", None)
        _nothing_else(keys)
        if record_id is None:
            record_id = self.next_id()
        if tx is not None:
            self._journal.add(record_id, user_type, data, tx=tx, wait=False)
            self._answers.give(f"OK add {record_id}")
        else:
            self._journal.add(
                record_id, user_type, data, sync=self._is_synced, done=self._done, wait=False
            )
            self._acknowledge(f"ACK add {record_id}")
        self._note(record_id, tx)

    def _update(self, words: list[str], keys: dict[str, int]) -> None:
        number, kind, body = _take(words, "update ID TYPE HEX")
        record_id, user_type, data = _id(number), _user_type(kind), _bytes(body)
        tx = keys.pop("tx", None)
        _nothing_else(keys)
        if tx is not None:
            self._journal.update(record_id, user_type, data, tx=tx, wait=False)
            self._answers.give(f"OK update {record_id}")
        else:
            self._journal.update(
                record_id, user_type, data, sync=self._is_synced, done=self._done, wait=False
            )
            self._acknowledge(f"ACK update {record_id}")
        self._note(0, tx)

    def _delete(self, words: list[str], keys: dict[str, int]) -> None:
        (number,) = _take(words, "delete ID")
        record_id = _id(number)
        tx = keys.pop("tx", None)
        _nothing_else(keys)
        if tx is not None:
            self._journal.delete(record_id, tx=tx, wait=False)
            self._answers.give(f"OK delete {record_id}")
        else:
            self._journal.delete(record_id, sync=self._is_synced, done=self._done, wait=False)
            self._acknowledge(f"ACK delete {record_id}")
        self._note(0, tx)

    def _begin(self, words: list[str], keys: dict[str, int]) -> None:
        _take(words, "begin")
        _nothing_else(keys)
        tx = self.next_id()
        self._note(0, tx)
        self._answers.give(f"TX {tx}")

    def _prepare(self, words: list[str], keys: dict[str, int]) -> None:
        number, extra = _take([*words, "-"] if len(words) == 1 else words, "prepare X HEX")
        tx = _id(number)
        data = _bytes(extra)
        _nothing_else(keys)
        self._journal.prepare(tx, data, sync=self._is_synced, done=self._done, wait=False)
        self._acknowledge(f"ACK prepare {tx}")

    def _commit(self, words: list[str], keys: dict[str, int]) -> None:
        (number,) = _take(words, "commit X")
        tx = _id(number)
        _nothing_else(keys)
        self._journal.commit(tx, sync=self._is_synced, done=self._done, wait=False)
        self._acknowledge(f"ACK commit {tx}")

    def _rollback(self, words: list[str], keys: dict[str, int]) -> None:
        (number,) = _take(words, "rollback X")
        tx = _id(number)
        _nothing_else(keys)
        self._journal.rollback(tx, sync=self._is_synced, done=self._done, wait=False)
        self._acknowledge(f"ACK rollback {tx}")

    def _compact(self, words: list[str], keys: dict[str, int]) -> None:
        _take(words, "compact")
        _nothing_else(keys)
        self._journal.compact()
        self._answers.give("ACK compact")

    def _reclaim(self, words: list[str], keys: dict[str, int]) -> None:
        _take(words, "reclaim")
        _nothing_else(keys)
        self._answers.give(f"ACK reclaim {self._journal.reclaim()}")

    def _sync(self, words: list[str], keys: dict[str, int]) -> None:
        _take(words, "sync")
        _nothing_else(keys)
        self._journal.sync()
        self._answers.give("ACK sync")

    @property
    def _done(self) -> Callable[[Exception | None], object] | None:
        return self._answers.done if self._is_synced else None

    def _acknowledge(self, text: str) -> None:
        if self._is_synced:
            self._answers.promise(text)
        else:
            self._answers.give(text)

    def _note(self, record_id: int, tx: int | None) -> None:
        """Ids that the script chose are never given out again."""
        self._last_id = max(self._last_id, record_id, tx or 0)


def _arguments(words: list[str]) -> tuple[list[str], dict[str, int]]:
    """The words behind the operation's name, and the `key=number` among them."""
    plain = []
    keys: dict[str, int] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals:
            plain.append(word)
        elif key in keys:
            raise ScriptError(f"{key}= is given twice")
        else:
            keys[key] = _id(value)
    return plain, keys


def _take(words: list[str], form: str) -> list[str]:
    """The words, if there are as many as in `form`."""
    if len(words) != len(form.split()) - 1:
        raise ScriptError(f"write: {form}")
    return words


def _nothing_else(keys: dict[str, int]) -> None:
    for key in keys:
        raise ScriptError(f"{key}= does not belong here")


def _id(text: str) -> int:
    if NUMBER.fullmatch(text) and ID_MIN <= int(text) <= ID_MAX:
        return int(text)
    raise ScriptError(f"{text!r} is not an id: a whole number of 64 bits")


def _user_type(text: str) -> int:
    if NUMBER.fullmatch(text) and -128 <= int(text) <= 255:
        return int(text) & 0xFF
    raise ScriptError(f"{text!r} is not a user type: 0 to 255")


def _bytes(text: str) -> bytes:
    if text == "-":
        return b""
    try:
        return bytes.fromhex(text)
    except ValueError:
        pass  # Said below, with the beginning of the text.
    shown = text if len(text) <= 20 else f"{text[:20]}..."
    raise ScriptError(f"{shown!r} is not a body: pairs of hexadecimal digits, or - for none")
