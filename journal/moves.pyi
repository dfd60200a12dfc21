from typing import Self, final

from journal.buffer import GroupBuffer
from journal.index import RecordIndex

@final
class IndexMoves:
    def __new__(cls, index: RecordIndex, buffer: GroupBuffer) -> Self: ...
