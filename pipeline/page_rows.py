"""The messages in the pages of a broker as Arrow record batches: what a task gives.

A message that its address had no memory for is in a page, and nowhere else: no record of the
journal has it. What became of it the journal knows (pipeline.page_facts).
"""

from __future__ import annotations

import errno
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker.model.encoding import BodyReader, RecordFormatError
from broker.model.scheduled_time import SCHEDULED, time_ms
from broker.records.page_records import entries
from broker.records.stored_messages import LargeCoreMessage, read_message
from broker.storage.page_folders import FileFolders
from journal.errors import JournalIOError
from journal.remote import RemotePath
from pipeline.columns import arrow_schema, stored, with_times
from pipeline.errors import DataLoss
from pipeline.live_journal import open_journal, place_of
from pipeline.message_content import content_of
from pipeline.message_rows import TESTED, body_size_of
from pipeline.page_facts import PageFacts, queues_at
from pipeline.raw_rows import BODIES_MAX, ROWS_MAX, fitting
from pipeline.remote_pages import remote_pages
from pipeline.schema import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker.records.page_records import PageEntry
    from pipeline.columns import Column
    from pipeline.filters import Wanted
    from pipeline.place import Place
    from pipeline.remote_pages import ReadablePages

__all__ = ["has_pages", "page_batches"]

# Types of a property that are numbers.
_INTEGERS: Final = ("byte", "short", "int", "long")
_FLOATS: Final = ("float", "double")


@contextmanager
def _open_pages(place: Place) -> Iterator[Mapping[str, ReadablePages]]:
    """The pages of each address; of a bare folder of a journal none are known.

    Raises:
        JournalError: they cannot be listed.
    """
    if place.database is None:
        if isinstance(place.paging, RemotePath):
            yield remote_pages(place.paging)
        else:
            yield {} if place.paging is None else FileFolders(place.paging).view()
        return
    from broker.storage.stored_tables import StoredTables  # Here: files need no SQLAlchemy.
    from jdbcstore.database import Database

    with closing(Database(place.database)) as database:
        yield StoredTables(database).pages()


def has_pages(place: Place, *, is_live: bool) -> bool:
    """Whether anything is paged there.

    Args:
        place: of the message journal.
        is_live: somebody may remove pages meanwhile.

    Raises:
        JournalError: it cannot be looked at.
    """
    with _open_pages(place) as pages:
        return any(_sizes(folder, is_live=is_live) for folder in pages.values())


def _sizes(folder: ReadablePages, *, is_live: bool) -> dict[int, int]:
    """The bytes of each page; of a folder that its broker has removed since it was found, none."""
    try:
        return folder.sizes()
    except JournalIOError as error:
        if is_live and error.errno == errno.ENOENT:
            return {}
        raise


def page_batches(
    place: Place,
    wanted: Wanted,
    *,
    user_version: int,
    is_live: bool,
    fails_on_data_loss: bool,
    as_of_ms: int,
    columns: tuple[Column, ...] = MESSAGES,
) -> Iterator[pa.RecordBatch]:
    """Give the messages in pages, address by address, in the order in which they were sent.

    Memory: a page (page-size-bytes), one batch, and what PageFacts says.

    Args:
        place: of the message journal, all of it.
        wanted: tests of message_id, address and timestamp_ms are made here.
        user_version: of every journal file's header.
        is_live: a page that is gone since it was listed was delivered, and is passed over.
        fails_on_data_loss: raise for what cannot be read, but for a last page's torn end.
        as_of_ms: what has expired and what is scheduled, seen from then; ms since 1970.
        columns: those wanted.

    Raises:
        DataLoss: see above.
        JournalError: the journal, the bindings or the pages cannot be read.
    """
    schema = arrow_schema(stored((*columns, *wanted.tested(MESSAGES, TESTED))))
    constants = {"node": place.node, "journal": place.journal}
    queue_ids = None if place.bindings is None else queues_at(place.bindings, user_version)
    whole = replace(place, ids=None)
    with ExitStack() as stack:
        # The pages first: of what is acknowledged meanwhile the journal knows, then.
        pages = stack.enter_context(_open_pages(place))
        facts = stack.enter_context(PageFacts(queue_ids))
        facts.take(stack.enter_context(open_journal(whole, user_version)))
        rows: list[dict[str, Any]] = []
        size = 0
        for row in _rows(place, pages, facts, as_of_ms, is_live=is_live):
            if row.get("damage") is not None and not row.pop("is_torn", False):
                _refuse(place, row, fails_on_data_loss=fails_on_data_loss)
            rows.append({**constants, **row})
            size += 0 if row.get("is_large") else row.get("body_size") or 0
            if len(rows) >= ROWS_MAX or size >= BODIES_MAX:
                yield from _given(rows, schema, wanted, columns)
                rows, size = [], 0
        if rows:
            yield from _given(rows, schema, wanted, columns)


def _given(
    rows: list[dict[str, Any]], schema: pa.Schema, wanted: Wanted, columns: tuple[Column, ...]
) -> Iterator[pa.RecordBatch]:
    """The wanted ones of some rows, and the columns of them."""
    for batch in fitting(pa.RecordBatch.from_pylist(rows, schema=schema), wanted, TESTED):
        yield with_times(batch, columns)


def _refuse(place: Place, row: dict[str, Any], *, fails_on_data_loss: bool) -> None:
    if fails_on_data_loss:
        what = f"{row['file']}:{row['offset']}: message {row['message_id']}: {row['damage']}"
        raise DataLoss(place.journal, [what])


def _rows(
    place: Place,
    pages: Mapping[str, ReadablePages],
    facts: PageFacts,
    as_of_ms: int,
    *,
    is_live: bool,
) -> Iterator[dict[str, Any]]:
    for record, reason in facts.broken:
        damage = f"record of type {record.user_type}: {reason}"
        yield {"message_id": record.record_id, **place_of(record), "damage": damage}
    for address, folder in pages.items():
        sizes = _sizes(folder, is_live=is_live)
        parent = address if folder.place is None else folder.place.name
        for page, size in sizes.items():
            try:
                data = folder.read(page, 0, size)
            except JournalIOError as error:
                if is_live and error.errno == errno.ENOENT:
                    continue
                raise
            file = f"{parent}/{page:09d}.page"
            at = 0
            found = list(entries(data, 0, 0))
            for entry, states in zip(found, facts.states(page, found), strict=True):
                if facts.counts(entry):
                    row = _row(place, entry, data, is_prepared=facts.waits(entry))
                    yield {"file": file, "offset": at, **row, **_fate(row, states, as_of_ms)}
                at = entry.end
            if at < len(data):
                yield {
                    "message_id": None,
                    "address": address,
                    "file": file,
                    "offset": at,
                    "damage": f"{len(data) - at} bytes that are not a whole message",
                    "is_torn": page == max(sizes),
                }


def _row(place: Place, entry: PageEntry, data: bytes, *, is_prepared: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"message_id": entry.message_id(data)}
    if is_prepared:
        row["state"] = "prepared"
    reader = BodyReader(memoryview(data)[entry.message_at : entry.message_at + entry.message_size])
    try:
        row |= content_of(
            LargeCoreMessage.read(reader) if entry.is_large_core else read_message(reader)
        )
    except RecordFormatError as error:
        row["damage"] = str(error)
    if row.get("is_large"):
        row["body_size"] = body_size_of(place, row["message_id"])
    return row


def _scheduled_ms(row: dict[str, Any]) -> int:
    """When a message is due, as a broker reads it: of any number, and of nothing else."""
    kind = dict(row.get("property_types") or ()).get(SCHEDULED)
    text = dict(row.get("properties") or ()).get(SCHEDULED) or "0"
    if kind in _INTEGERS:
        return time_ms(int(text))
    return time_ms(float(text)) if kind in _FLOATS else 0


def _fate(row: dict[str, Any], states: list[tuple[int, str]], as_of_ms: int) -> dict[str, Any]:
    """The columns `state` and `references`, as MessageStates gives them of a journal's messages."""
    scheduled_ms = _scheduled_ms(row)
    waits = scheduled_ms > as_of_ms
    words = ["scheduled" if waits and word == "live" else word for _, word in states]
    is_open = any(word != "acknowledged" for word in words)
    state = row.get("state")
    if state is None:
        if not words:
            state = "unreferenced"
        elif not is_open:
            state = "acknowledged"
        elif 0 < row.get("expiration_ms", 0) <= as_of_ms:
            state = "expired"
        elif all(word in ("scheduled", "acknowledged") for word in words):
            state = "scheduled"
        else:
            state = "live"
    references = [
        {"queue_id": queue_id, "state": word, "delivery_count": 0, "scheduled_ms": scheduled_ms}
        for (queue_id, _), word in zip(states, words, strict=True)
    ]
    return {"state": state, "references": references}
