from collections.abc import Iterable
from typing import final

from journal.index import RecordIndex

__all__ = ["Replay"]

@final
class Replay:
    def __init__(
        self, index: RecordIndex, replaceable: Iterable[int], prune_count: int
    ) -> None: ...
    def finish(self) -> None: ...
