"""What an ERROR frame says. Texts begin with Artemis's message id where it has one."""

from __future__ import annotations

__all__ = ["StompError"]


class StompError(Exception):
    """A frame that is refused: its sender is answered with an ERROR frame.

    Attributes:
        text: of the frame's header `message`; one line.
        closes: the connection ends, whatever the version; it always does in version 1.2.
        details: the frame's body; None is `text`.
        headers: of the frame beside `message`, by name.
    """

    def __init__(
        self,
        text: str,
        *,
        closes: bool = False,
        details: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.closes = closes
        self.details = text if details is None else details
        self.headers = headers or {}
