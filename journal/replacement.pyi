from collections.abc import Sequence

from journal.control import ControlList
from journal.files.base import Folder
from journal.new_files import OutputFile
from journal.old_files import OldFile
from journal.options import JournalOptions
from journal.pool import FilePool

__all__ = ["Replacement", "control_file"]

class Replacement:
    def __init__(
        self,
        folder: Folder,
        pool: FilePool,
        old_files: Sequence[OldFile],
        options: JournalOptions,
    ) -> None: ...
    def prepare(self, outputs: Sequence[OutputFile]) -> None: ...
    def control_name(self) -> str: ...
    def discard(self) -> None: ...
    def commit(self) -> None: ...
    def revoke(self) -> None: ...
    def install(self) -> None: ...

def control_file(control: ControlList, user_version: int, leader: bool) -> bytes: ...
