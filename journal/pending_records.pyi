from typing import Self, final

__all__ = ["PendingRecords"]

@final
class PendingRecords:
    def __new__(cls) -> Self: ...
