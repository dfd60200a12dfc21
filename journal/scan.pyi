from typing import final

__all__ = ["FileScan"]

@final
class FileScan:
    def __init__(self, name: str, user_version: int = 0) -> None: ...
    @property
    def name(self) -> str: ...
