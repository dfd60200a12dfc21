"""What a client is told of its frames: RECEIPT and ERROR."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.frames import encode_frame
from broker.protocols.stomp.versions import Version

if TYPE_CHECKING:
    from broker.protocols.output import Output
    from broker.protocols.peer import Peer

__all__ = ["Answers"]

log = logging.getLogger("broker")


class Answers:
    """See the module's text.

    Args:
        peer: the socket, for the log.
        output: takes frames.

    Attributes:
        version: of the frames.
    """

    __slots__ = ("_output", "_peer", "version")

    def __init__(self, peer: Peer, output: Output) -> None:
        self._peer = peer
        self._output = output
        self.version = Version.V1_0

    def done(self, error: Exception | None, receipt: str | None) -> None:
        """What a frame asked for is durable: send its receipt, if it wants one.

        Args:
            error: what ended the storage; the client is told, and the connection closed.
            receipt: the frame's header of that name.
        """
        if receipt is None:
            return
        if error is None:
            self._output.write(encode_frame("RECEIPT", [("receipt-id", receipt)], self.version))
        else:
            failure = StompError(f"the storage has failed: {error}", closes=True)
            self.send_error(None, *self.error(failure, receipt))

    def error(self, error: StompError, receipt: str | None) -> tuple[bytes, bool]:
        """Give an ERROR frame, and whether the connection ends behind it.

        Args:
            error: what it says.
            receipt: of the frame that is refused; None without one.
        """
        log.info("%s: ERROR %s", self._peer.remote, error.text)
        body = error.details.encode("utf-8", "replace")
        headers = [("message", error.text), *error.headers.items()]
        headers.append(("content-type", "text/plain"))
        if receipt is not None:
            headers.append(("receipt-id", receipt))
        if self.version is not Version.V1_0:
            headers.append(("content-length", str(len(body))))
        frame = encode_frame("ERROR", headers, self.version, body)
        return frame, error.closes or self.version is Version.V1_2

    def send_error(self, _: Exception | None, frame: bytes, closes: bool) -> None:
        """Send an ERROR frame, and close the connection where it ends: the `done` of requests."""
        self._output.write(frame)
        if closes:
            self._output.close()
