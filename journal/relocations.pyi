from typing import Self, final

from journal.buffer import GroupBuffer
from journal.index import RecordIndex

@final
class Relocations:
    def __new__(cls, index: RecordIndex, buffer: GroupBuffer) -> Self: ...
