"""Messages out of the history, sent again: `replay` of the broker and its addresses.

As Artemis's ReplayManager: what was sent to an address is routed again, under new ids and past
duplicate detection. This covers files of the history that were copied between two times, and of
these the messages that a filter takes. Unlike there, what was rolled back is not sent, nor is
anything twice.

Threads: the event loop's alone. The work is a generator, a part of it in each turn; it yields how
many seconds to wait, or None.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.model.encoding import RecordFormatError
from broker.model.large_body import LARGE_COMPRESSED, LARGE_SIZE
from broker.model.message import Message
from broker.model.wire import RecordType
from broker.recovery.loaded_messages import decode_message
from broker.routing.large_copies import LOOK_AGAIN_S, await_body

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import datetime

    from broker.queues.filter import Filter
    from broker.routing.postoffice import PostOffice
    from broker.storage.history import HistoryMessage, MessageHistory
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager

__all__ = ["Replay"]

log = logging.getLogger("broker")

# Artemis waits so long for the copy of the current file (forceBackup).
COPY_TIMEOUT_MS: Final = 60_000
_LOOK_AGAIN_S: Final = 0.02
# Messages of one turn of the loop.
_PART: Final = 100
_LARGE: Final = int(RecordType.ADD_LARGE_MESSAGE)


class Replay:
    """See the module's text.

    Args:
        history: of the message journal; None where none is kept.
        postoffice: where messages go.
        storage: gives ids.
        large: bodies of large messages; None without storage for them.
        clock_ms: wall clock, ms since 1970.
        parse_filter: a selector's text to a Filter.
    """

    def __init__(
        self,
        *,
        history: MessageHistory | None,
        postoffice: PostOffice,
        storage: StorageManager,
        large: LargeBodies | None,
        clock_ms: Callable[[], int],
        parse_filter: Callable[[str], Filter | None],
    ) -> None:
        self._history = history
        self._postoffice = postoffice
        self._storage = storage
        self._large = large
        self._clock_ms = clock_ms
        self._parse_filter = parse_filter

    def send(
        self,
        address: str,
        target: str | None,
        filter: str | None,
        *,
        first: datetime | None = None,
        last: datetime | None = None,
    ) -> Generator[float | None, None, int]:
        """Send again what was sent to an address; how many messages.

        Args:
            address: that they were sent to.
            target: where they go; None or blank: to the same address.
            filter: a selector; None or blank: all.
            first: local time: files copied before are left out.
            last: files copied later are left out.

        Raises:
            BrokerError: no history is kept, it was not copied within a minute, or the filter is
                none.
            JournalError: the history cannot be written or read.
        """
        history = self._history
        if history is None:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                "no history is kept (journal-retention-directory): there is nothing to replay",
            )
        context = self._storage.new_context()
        accepts = self._parse_filter(filter) if filter else None
        yield from self._await_copy(history)
        to = target.strip() if target and target.strip() else address
        count = seen = 0
        for found in history.messages(first, last):
            if found is None:
                yield None
                continue
            seen += 1
            if seen % _PART == 0:
                yield None
            message = _wanted(found, address, accepts)
            if message is None:
                continue
            if not message.is_large:
                message.give_id(self._storage.new_id())
            else:
                message.message_id = self._storage.new_id()
                has_body = yield from self._give_body(history, found.message_id, message)
                if not has_body:
                    log.warning(
                        "the history lacks a part of the body of large message %d",
                        found.message_id,
                    )
                    continue
            if to != address:
                message.address = to
            context.note()
            self._postoffice.route(message, context, rejects_duplicates=False)
            count += 1
        return count

    def _await_copy(self, history: MessageHistory) -> Generator[float | None, None, None]:
        history.copy_now()
        until_ms = self._clock_ms() + COPY_TIMEOUT_MS
        while not history.is_copied():
            if self._clock_ms() > until_ms:
                raise BrokerError(
                    ErrorCode.ILLEGAL_STATE, f"the history was not copied in {COPY_TIMEOUT_MS} ms"
                )
            yield _LOOK_AGAIN_S

    def _give_body(
        self, history: MessageHistory, old_id: int, message: Message
    ) -> Generator[float | None, None, bool]:
        """Give a large message the body that is still there, or the one of the history."""
        assert self._large is not None, "a broker with a history keeps large messages"
        body = self._large.find(old_id)
        if body is not None:
            message.large = yield from await_body(
                body, message.message_id, is_durable=message.durable
            )
            return True
        large = self._large.create(message.message_id, is_durable=message.durable)
        try:
            for part in history.body_parts(old_id):
                if part is None:
                    yield None
                    continue
                large.append(part)
                if message.durable:
                    history.note_body(message.message_id, part)
            is_whole = _is_whole(message, large.size)
            while is_whole and not large.finish(sync=message.durable, callback=lambda: None):
                yield LOOK_AGAIN_S
        except BaseException:
            large.close()
            large.delete()
            raise
        if not is_whole:
            large.close()
            large.delete()
            return False
        message.large = large
        return True


def _wanted(found: HistoryMessage, address: str, accepts: Filter | None) -> Message | None:
    """The message, if it is asked for; those that cannot be read are told of."""
    try:
        if found.user_type == _LARGE:
            message = Message.decode_headers(found.body)
        else:
            plain = decode_message(found.message_id, found.body)
            if plain is None:
                log.warning("message %d has an unknown type", found.message_id)
                return None
            message = plain
    except RecordFormatError as error:
        log.warning("message %d cannot be read: %s", found.message_id, error)
        return None
    if message.address != address:
        return None
    return message if accepts is None or accepts.matches(message) else None


def _is_whole(message: Message, size: int) -> bool:
    """Whether so many bytes are its body; of one that its client compressed, whether any are."""
    expected = message.get(LARGE_SIZE)
    if not isinstance(expected, int) or message.get(LARGE_COMPRESSED) is True:
        return size > 0
    return size == expected
