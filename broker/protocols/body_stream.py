"""A large message on its way to a client: counted where its size is not known, then written.

    body ─▶ counted once, if it is a text or compressed ─▶ head ─▶ pieces ─▶ tail

What is not what its message says is found out while it is counted, and then sent as the bytes that
are stored. Nothing else is delivered on the connection before its end, and no consumer is waited
for: the frame that was begun has to be completed, or the connection ends.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.model.encoding import RecordFormatError
from broker.protocols.large_content import LargeContent
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.large_body import LargeBody
    from broker.protocols.output import Output
    from broker.protocols.peer import Peer

__all__ = ["BodyStream"]

log = logging.getLogger("broker")


class BodyStream:
    """See the module's text.

    Args:
        peer: the socket, which may pause it.
        output: takes the frame.
        body: of the message.
        make_head: gives what stands before the body, for its size and whether it is a text; None
            where a body of that size is not to be written at all.
        on_end: called once it is written, or is known not to be.
        is_text: the body is a text, as Core's clients write one.
        is_compressed: it is a zlib stream.
        tail: what stands behind the body.
    """

    def __init__(
        self,
        peer: Peer,
        output: Output,
        body: LargeBody,
        make_head: Callable[[int, bool], bytes | None],
        on_end: Callable[[], object],
        *,
        is_text: bool,
        is_compressed: bool,
        tail: bytes = b"",
    ) -> None:
        self._peer = peer
        self._output = output
        self._body = body
        self._make_head = make_head
        self._on_end = on_end
        self._is_text = is_text
        self._is_compressed = is_compressed
        self._tail = tail
        # While it is counted.
        self._counted: LargeContent | None = None
        self._size = 0
        # While it is written.
        self._content: LargeContent | None = None
        self._is_going_on = False
        self._is_held = False
        self._is_ended = False
        output.begin()
        try:
            # A consumer may have it for good before it is written: that deletes it.
            body.hold()
            self._is_held = True
        except JournalIOError:
            log.debug("a large message cannot be opened: the first read says so", exc_info=True)

    def go_on(self) -> None:
        """Read and write what can be now."""
        if self._is_going_on or self._is_ended:
            return
        self._is_going_on = True
        try:
            if self._content is None and not self._count():
                return
            if not self._is_ended:
                self._write()
        except (JournalIOError, RecordFormatError) as error:
            log.error(
                "a large message for %s cannot be read, the connection is closed: %s",
                self._peer.remote,
                error,
            )
            self.close()
            self._peer.abort()
        except Exception:
            # What it holds cannot be told in this protocol; that must not end the broker.
            log.exception("a large message for %s: the connection is closed", self._peer.remote)
            self.close()
            self._peer.abort()
        finally:
            self._is_going_on = False

    def _count(self) -> bool:
        """Find out the size of what is written; whether that is known now.

        Raises:
            JournalIOError: the body cannot be read.
        """
        if not (self._is_text or self._is_compressed):
            self._begin(self._body.size)
            return True
        if self._counted is None:
            self._counted = self._new_content()
        content = self._counted
        try:
            while not content.is_at_end:
                if not content.is_ready(self.go_on):
                    return False
                self._size += len(content.next())
        except RecordFormatError as error:
            log.warning("a large message for %s is sent as it is: %s", self._peer.remote, error)
            self._is_text = self._is_compressed = False
            self._begin(self._body.size)
            return True
        self._begin(self._size)
        return True

    def _new_content(self) -> LargeContent:
        return LargeContent(self._body, is_text=self._is_text, is_compressed=self._is_compressed)

    def _begin(self, size: int) -> None:
        self._counted = None
        head = self._make_head(size, self._is_text)
        if head is None:
            self._end()
            return
        self._content = self._new_content()
        self._output.part(head)

    def _write(self) -> None:
        content = self._content
        assert content is not None, "its size is known"
        while not content.is_at_end:
            if self._peer.is_paused or not self._peer.is_open or not content.is_ready(self.go_on):
                return
            piece = content.next()
            if piece:
                self._output.part(piece)
        self._output.part(self._tail)
        self._end()

    def _end(self) -> None:
        self.close()
        self._output.end()
        self._on_end()

    def close(self) -> None:
        """Read no more, and release the body. Idempotent."""
        self._is_ended = True
        if self._is_held:
            self._is_held = False
            self._body.release()
