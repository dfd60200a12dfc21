from typing import NamedTuple, Self, final

from journal.buffer import GroupBuffer
from journal.errors import JournalError
from journal.files.base import Folder
from journal.files.chunks import ChunkWriter
from journal.index import RecordIndex
from journal.old_files import OldFile
from journal.options import JournalOptions
from journal.pool import FilePool

__all__ = ["CompactionStopped", "NewFiles", "NothingGained", "OutputFile"]

class OutputFile(NamedTuple):
    name: str
    number: int
    file_id: int
    slot: int

class NothingGained(JournalError): ...
class CompactionStopped(JournalError): ...

@final
class NewFiles:
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
    ) -> Self: ...
    @property
    def outputs(self) -> list[OutputFile]: ...
    @property
    def stopping(self) -> bool: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def records_copied(self) -> int: ...
    def stop(self) -> None: ...
    def check_stop(self) -> None: ...
    def open(self) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...
    def remove(self) -> None: ...
    def sync_output(self, fd: int, name: str, size: int) -> None: ...
    def await_syncs(self, left: int) -> None: ...
