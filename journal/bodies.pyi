from collections.abc import Sequence
from types import TracebackType
from typing import Self, final

from journal.errors import JournalIOError
from journal.loaded import LoadedFile

__all__ = ["BodyReader"]

@final
class BodyReader:
    def __init__(self, loaded: Sequence[LoadedFile]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def close(self) -> None: ...
    def changed(self, file: int) -> JournalIOError: ...
