import os
from collections.abc import Callable
from typing import TypeVar, final

__all__ = ["STEP_SIZE", "FileWindow"]

STEP_SIZE: int

_T = TypeVar("_T")

@final
class FileWindow:
    def __init__(self, step_size: int = ...) -> None: ...
    def read(self, path: str | os.PathLike[str], look: Callable[[FileWindow], _T]) -> _T: ...
    @property
    def size(self) -> int: ...
