from typing import NamedTuple, Self, final

from journal.files.base import Folder
from journal.scan import FileScan

__all__ = ["OldFile", "OldFiles"]

class OldFile(NamedTuple):
    name: str
    number: int
    file_id: int
    slot: int

@final
class OldFiles:
    def __new__(cls, folder: Folder, files: list[OldFile], user_version: int) -> Self: ...
    @property
    def bytes_read(self) -> int: ...
    def read_ahead(self) -> None: ...
    def read(self, number: int) -> FileScan: ...
    def close(self) -> None: ...
