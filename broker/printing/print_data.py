"""The text of Artemis's `data print` over a broker's records, line by line.

The wording is the journal's (journal.data_print); here stand what bodies mean, and what the broker
counts while it prints.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, Protocol

from broker.printing.print_counts import MessageCounts, PageCounters
from journal.data_print import (
    PREPARED,
    SURVIVING,
    failed_lines,
    file_line,
    file_record_line,
    live_record_line,
    path_line,
    prepared_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.model.encoding import Body
    from journal.data_print import LiveRecord, RecordFile, Transaction

_FRAME: Final = "*" * 44
_UPDATES: Final = ("update", "update_tx")


class Decoder(Protocol):
    """What these lines need to know of a body; `records.JournalDecoder` is one."""

    def describe(
        self, user_type: int, body: Body, *, record_id: int, is_update: bool, safe: bool = False
    ) -> str:
        """Give the text of the object in a body."""
        ...

    def describe_prepared(self, extra: Body) -> str:
        """Give the text of a prepare record's extra data."""
        ...


class _Texts:
    """A decoder as a journal.data_print.Describer.

    Args:
        decoder: describes the bodies.
        safe: leave out users' data.
    """

    def __init__(self, decoder: Decoder, *, safe: bool) -> None:
        self._decoder = decoder
        self._safe = safe

    def describe(self, user_type: int, body: Body, *, record_id: int, is_update: bool) -> str:
        return self._decoder.describe(
            user_type, body, record_id=record_id, is_update=is_update, safe=self._safe
        )

    def describe_prepared(self, extra: Body) -> str:
        encoded = base64.urlsafe_b64encode(extra).decode("ascii")
        return f"{encoded}, xid={self._decoder.describe_prepared(extra)}"


def section_lines(title: str) -> Iterator[str]:
    """Give the frame that stands before a section, such as `M E S S A G E S   J O U R N A L`."""
    yield from ("", _FRAME, title, _FRAME)


def file_lines(
    path: str, files: Iterable[RecordFile], decoder: Decoder, *, safe: bool = False
) -> Iterator[str]:
    """Give the lines of a whole journal in file order.

    Args:
        path: the folder, as the user wrote it.
        files: in the order of their file ids.
        decoder: describes the bodies.
        safe: leave out users' data.
    """
    texts = _Texts(decoder, safe=safe)
    counters = PageCounters()
    yield path_line(path)
    for file in files:
        yield file_line(file)
        for record in file:
            yield file_record_line(record, texts)
            if record.kind in _UPDATES:
                yield from counters.update_lines(record.user_type or 0, record.body or b"")
    yield ""
    if counters:
        yield "#Counters during initial load:"
        yield from counters.lines()


def surviving_lines(
    committed: Iterable[LiveRecord],
    prepared: Iterable[Transaction],
    failed: Iterable[Transaction],
    decoder: Decoder,
    *,
    safe: bool = False,
) -> Iterator[str]:
    """Give the lines of what a load gives: live records, transactions, message counts.

    Args:
        committed: in load order; walked once.
        prepared: in load order.
        failed: transactions left open, which will not apply.
        decoder: describes the bodies.
        safe: leave out users' data.
    """
    texts = _Texts(decoder, safe=safe)
    counts = MessageCounts()
    counters = PageCounters()
    yield SURVIVING
    for record in committed:
        counts.add(record.user_type, record.body)
        yield live_record_line(record, texts)
        yield from counters.surviving_lines(record.user_type, record.body)
    if counters:
        yield "### Page Counters"
        yield from counters.lines()
    yield ""
    yield PREPARED
    for transaction in prepared:
        for record in transaction.records:
            counts.add_prepared(record.user_type, record.body)
        yield from prepared_lines(transaction, texts)
    yield from failed_lines(failed, texts)
    yield ""
    yield from counts.lines()
