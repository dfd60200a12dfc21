"""Reads the pages of an address in order, some hundred KiB at a time, for one queue or browser.

    next() ─▶ an entry of the bytes at hand, or None ─▶ read_on() ─▶ (thread) ─▶ on_read ─▶ next()

It never goes beyond what is written, and passes over pages in which its queue has nothing left.
What is asked for again, since its transaction was still open, is read before everything else.

Threads: the event loop's alone; reading is done by `PageWork`.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from broker.records.page_records import PageEntries, entry_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.paging.page import Page
    from broker.records.page_records import PageEntry

__all__ = ["Cursor", "Found", "LateRange", "PageSource"]

log = logging.getLogger("broker")

# One read, and what a queue holds of its pages beside its messages: large enough that the handover
# to a thread costs nothing a message, small enough for thousands of queues.
READ_SIZE: Final = 512 * 1024


class PageSource(Protocol):
    """Where a cursor reads; `broker.paging.store` is one."""

    @property
    def address(self) -> str:
        """Whose pages these are."""

    def page_behind(self, number: int) -> Page | None:
        """Give the first page behind this number."""

    def read(self, page: Page, offset: int, size: int, done: Callable[[bytes], object]) -> None:
        """Read some bytes of a page beside the event loop; none where the page has gone."""


class LateRange:
    """Messages to be read again: of the bytes from an offset on, those of some numbers.

    Attributes:
        page: where they are.
        offset: where a record begins in it.
        number: of that record.
        size: bytes to be read.
        numbers: wanted.
        is_dropped: they were removed by an operator before they were read.
    """

    __slots__ = ("is_dropped", "number", "numbers", "offset", "page", "size")

    def __init__(self, page: Page, offset: int, number: int, size: int) -> None:
        self.page = page
        self.offset = offset
        self.number = number
        self.size = size
        self.numbers: set[int] = set()
        self.is_dropped = False


class Found:
    """What a cursor came to.

    Attributes:
        page: where it is.
        entry: the record.
        data: the bytes that it stands in.
        offset: where these begin in the page.
        number: of their first record.
        late: where it was put off before; None for what comes in order.
    """

    __slots__ = ("data", "entry", "late", "number", "offset", "page")

    def fill(
        self,
        page: Page,
        entry: PageEntry,
        data: bytes,
        offset: int,
        number: int,
        late: LateRange | None,
    ) -> None:
        """Say what it is. In place of __init__, which costs more."""
        self.page = page
        self.entry = entry
        self.data = data
        self.offset = offset
        self.number = number
        self.late = late


class Cursor:
    """See the module's text.

    Args:
        store: of the address.
        queue_id: whose messages are looked for; the caller passes over others.
        on_read: called when there may be more to take.
        read_size: bytes read at once.
    """

    __slots__ = (
        "_after_read",
        "_data",
        "_data_at",
        "_data_number",
        "_entries",
        "_late",
        "_late_now",
        "_number",
        "_offset",
        "_on_read",
        "_page",
        "_queue_id",
        "_read_size",
        "_store",
        "is_reading",
    )

    def __init__(
        self,
        store: PageSource,
        queue_id: int,
        on_read: Callable[[], object],
        read_size: int = READ_SIZE,
    ) -> None:
        self._store = store
        self._queue_id = queue_id
        self._on_read = on_read
        self._read_size = read_size
        self._page: Page | None = None
        # Of the next record that is not at hand.
        self._offset = 0
        self._number = 0
        self._data = b""
        self._data_at = 0
        self._data_number = 0
        self._entries: PageEntries | None = None
        self._late: deque[LateRange] = deque()
        self._late_now: LateRange | None = None
        self._after_read: list[Callable[[], object]] = []
        self.is_reading = False

    @property
    def position(self) -> tuple[int, int]:
        """Page and number of the next record that is not at hand; (0, 0) before the first."""
        if self._page is None:
            return (0, 0)
        return (self._page.number, self._number)

    def start_at(self, other: Cursor) -> None:
        """Stand where another one reads next."""
        self._page, self._offset, self._number = other._page, other._offset, other._number

    def after_read(self, callback: Callable[[], object]) -> bool:
        """Call it once what is being read has come; false where nothing is: it is not called."""
        if self.is_reading:
            self._after_read.append(callback)
        return self.is_reading

    def read_again(self, late: LateRange) -> None:
        """Read this before everything else, also before what is at hand: it is older."""
        self._late.append(late)
        if self._late_now is None:
            self._entries = None
            self._data = b""

    def drop_late(self) -> None:
        """What is to be read again by now is dropped as it comes."""
        for late in self._late:
            late.is_dropped = True
        if self._late_now is not None:
            self._late_now.is_dropped = True

    @property
    def has_late(self) -> bool:
        """Whether something waits to be read again."""
        return bool(self._late)

    @property
    def has_dropped(self) -> bool:
        """Whether something of that is still to come."""
        late = self._late_now
        return (late is not None and late.is_dropped) or any(one.is_dropped for one in self._late)

    def next(self) -> Found | None:
        """Give the next record at hand; None when there is none, see read_on()."""
        entries = self._entries
        if entries is None:
            return None
        late = self._late_now
        entry = entries.next()
        if late is not None:
            while entry is not None and entry.number not in late.numbers:
                entry = entries.next()
        if entry is None:
            self._entries = None
            self._late_now = None
            self._data = b""
            return None
        found = Found.__new__(Found)
        if late is not None:
            found.fill(late.page, entry, self._data, late.offset, late.number, late)
            return found
        self._number = entry.number + 1
        self._offset = self._data_at + entry.end
        assert self._page is not None, "the bytes are of one"
        found.fill(self._page, entry, self._data, self._data_at, self._data_number, None)
        return found

    def read_on(self) -> bool:
        """Read on unless that is under way; false when there is nothing to be read now."""
        if self.is_reading:
            return True
        assert self._entries is None, "what is at hand is taken first"
        if self._late:
            late = self._late_now = self._late.popleft()
            self._read(late.page, late.offset, late.size)
            return True
        page = self._find_page()
        if page is None:
            return False
        self._read(page, self._offset, min(self._read_size, page.written_size - self._offset))
        return True

    def _find_page(self) -> Page | None:
        """Give the page to read in, from `_offset` on; None when nothing is there yet."""
        while True:
            page = self._page
            if page is not None and not page.is_gone and self._is_wanted(page):
                if self._offset < page.written_size:
                    return page
                if not page.is_read_up:
                    return None
            following = self._store.page_behind(0 if page is None else page.number)
            if following is None:
                return None
            if following.remaining is None:
                # It is being counted, and who waits is told.
                return None
            self._page = following
            self._offset = self._number = 0

    def _is_wanted(self, page: Page) -> bool:
        """Whether the queue may have something in a page, now or later."""
        if not page.is_closed:
            return True
        assert page.remaining is not None, "it was counted before"
        return page.remaining.get(self._queue_id, 0) > 0

    def _read(self, page: Page, offset: int, size: int) -> None:
        self.is_reading = True
        self._store.read(page, offset, size, lambda data: self._take(page, offset, data))

    def _take(self, page: Page, offset: int, data: bytes) -> None:
        """What was read has come."""
        if self._late_now is None and data:
            wanted = entry_size(data, 0)
            if wanted > len(data) and offset + wanted <= page.written_size:
                # Not even one record: the next one is larger than what is read at once.
                self._read(page, offset, wanted)
                return
        self.is_reading = False
        late = self._late_now
        if late is None and not page.is_gone and PageEntries(data, 0, 0).next() is None:
            # Damage that came after the page was counted: what is behind it cannot be found.
            log.error(
                "AMQ222033: page %d of %s has no record at position %d, number %d",
                page.number,
                self._store.address,
                offset,
                self._number,
            )
            page.is_invalid = True
            self._offset = page.written_size
        if late is not None or not self._late:
            self._data, self._data_at = data, offset
            self._data_number = self._number if late is None else late.number
            self._entries = PageEntries(data, 0, self._data_number)
        # Else something older has to be read meanwhile, and this once more behind it.
        callbacks, self._after_read = self._after_read, []
        self._on_read()
        for callback in callbacks:
            callback()
