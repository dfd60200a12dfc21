"""Parts of a client that are closed at the end of their `with` block.

When the block raises, its error is what the caller sees, not one of closing: a lost connection
makes both.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from broker.client.errors import ClientError
from broker.model.encoding import RecordFormatError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["AsyncBlock", "Block"]


class Block(ABC):
    """For threads."""

    @abstractmethod
    def close(self) -> None:
        """End it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        with contextlib.suppress(ClientError, RecordFormatError):
            self.close()


class AsyncBlock(ABC):
    """For asyncio."""

    @abstractmethod
    async def close(self) -> None:
        """End it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
            return
        with contextlib.suppress(ClientError, RecordFormatError):
            await self.close()
