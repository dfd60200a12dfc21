from collections.abc import Callable, Iterator

from typing_extensions import disjoint_base

from journal.folder import JournalFile
from journal.scan import FileScan
from journal.window import FileWindow

__all__ = ["ScanAhead", "scan_window"]

@disjoint_base
class ScanAhead:
    def __init__(
        self,
        files: list[JournalFile],
        user_version: int,
        readahead: int,
        step_size: int,
        progress: Callable[[int, int, int, int], object] | None,
    ) -> None: ...
    def __iter__(self) -> Iterator[tuple[JournalFile, FileScan]]: ...

def scan_window(file: JournalFile, user_version: int, window: FileWindow) -> FileScan: ...
