"""Tasks that read files one by one: what `journal`, raw, and `retention` share, and streams.

A task of Spark's costs tens of milliseconds of a core before it reads anything, whatever the source
(benchmarks.bench_pipeline prints it), more than a file of Artemis's default size takes to be
read. So a task reads files of one folder that follow one another, of about an option's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql.datasource import InputPartition

from pipeline.raw_rows import file_batches
from pipeline.sources.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from pipeline.place import Place
    from pipeline.raw_rows import FileToRead

__all__ = ["FileReader", "SomeFiles", "shares"]

T = TypeVar("T")


@dataclass
class SomeFiles(InputPartition):
    """A task that reads files of one folder, one after the other.

    Attributes:
        place: of their journal or history.
        files: in the order of their ids, or copies; at least one.
    """

    place: Place
    files: tuple[FileToRead, ...]


class FileReader(Reader):
    """Plans tasks of files, and reads them; memory is that of one file."""

    def file_tasks(self, place: Place, files: Iterable[FileToRead]) -> Iterator[SomeFiles]:
        """The wanted ones of a folder's files, in tasks of bytes_per_task at most, or about it.

        All tasks of a folder have about the same bytes, so that none is waited for alone.
        """
        found = [file for file in files if self.wanted.fits(file=file.name, copied=file.copied)]
        sizes = [file.size for file in found]
        for some in shares(found, sizes, self.options.bytes_per_task):
            yield SomeFiles(place, some)

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a task's files."""
        assert isinstance(part, SomeFiles)
        for file in part.files:
            yield from file_batches(
                file,
                self.columns,
                self.wanted,
                user_version=self.options.user_version,
                fails_on_data_loss=self.options.fails_on_data_loss,
            )


def shares(items: Sequence[T], sizes: Sequence[int], size_max: int) -> Iterator[tuple[T, ...]]:
    """Items that follow one another, in even shares of about so many bytes.

    >>> list(shares("abcde", [4, 4, 4, 4, 4], 12))
    [('a', 'b', 'c'), ('d', 'e')]
    """
    whole = sum(sizes)
    count = -(-whole // size_max)
    starts = accumulate(sizes, initial=0)
    numbers = [start * count // max(1, whole) for start in starts][: len(items)]
    for _, share in groupby(zip(numbers, items, strict=True), key=itemgetter(0)):
        yield tuple(item for _, item in share)
