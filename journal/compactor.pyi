from typing import Self, final

from journal.api import Progress
from journal.buffer import GroupBuffer
from journal.files.base import Folder
from journal.files.chunks import ChunkWriter
from journal.index import RecordIndex
from journal.new_files import NewFiles
from journal.old_files import OldFile
from journal.options import JournalOptions
from journal.pool import FilePool

__all__ = ["Compactor"]

@final
class Compactor:
    def __new__(
        cls,
        folder: Folder,
        pool: FilePool,
        index: RecordIndex,
        buffer: GroupBuffer,
        writer: ChunkWriter,
        old_files: list[OldFile],
        options: JournalOptions,
        file_size: int,
        file_id_end: int,
        validates_first: bool,
    ) -> Self: ...
    @property
    def old_files(self) -> list[OldFile]: ...
    @property
    def target(self) -> NewFiles: ...
    def stop(self) -> None: ...
    def copy(self, progress: Progress | None = None) -> None: ...
    def abandon(self) -> None: ...
    def end_watch(self) -> None: ...
    def publish(self) -> None: ...
