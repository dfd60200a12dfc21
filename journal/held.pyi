from typing import Self, final

__all__ = ["HeldRecords"]

@final
class HeldRecords:
    def __new__(cls) -> Self: ...
