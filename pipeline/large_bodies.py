"""The bodies of large messages, where a query asks for them: files, or rows of a table."""

from __future__ import annotations

import errno
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from broker.storage.large_files import LargeFile
from journal.errors import JournalIOError
from journal.remote import RemotePath
from pipeline.raw_rows import BODIES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.model.large_body import ReadableBody
    from journal.remote import AnyPath
    from pipeline.place import Place

__all__ = ["LOOKED_AT", "body_pieces", "body_size", "open_bodies", "with_large_bodies"]

# Columns that with_large_bodies() needs.
LOOKED_AT: Final = ("message_id", "is_large", "body", "body_size")
# Of one read: a server answers with all of it at once.
PIECE_SIZE: Final = 1 << 20


def with_large_bodies(
    batches: Iterable[pa.RecordBatch], place: Place, size_max: int
) -> Iterator[pa.RecordBatch]:
    """Give rows of `messages` with the bodies of large messages up to a limit.

    Memory: a batch is cut so that what is added to it is 8 MiB, or a single body; twice, as bytes
    and as a column.

    Args:
        batches: of `messages`, without them.
        place: of the message journal.
        size_max: bytes of a body; larger ones stay null. 0: none is read.

    Raises:
        JournalIOError: one cannot be read.
    """
    if not size_max:
        yield from batches
        return
    with open_bodies(place) as find:
        for batch in batches:
            yield from _filled(batch, find, size_max)


@contextmanager
def open_bodies(place: Place) -> Iterator[Callable[[int], ReadableBody | None]]:
    """What finds a body by its message's id, None where there is none; nothing is written.

    Args:
        place: of the message journal; of a table no lease is asked for.

    Raises:
        JournalIOError: here or by what is given: it cannot be looked at.
    """
    with ExitStack() as stack:
        folder = place.large_messages
        if place.database is not None:
            from broker.storage.stored_tables import StoredTables  # Here: files need no SQLAlchemy.
            from jdbcstore.database import Database

            database = stack.enter_context(closing(Database(place.database)))
            yield StoredTables(database).find_large
        else:
            yield lambda message_id: None if folder is None else _body_in(folder, message_id)


class RemoteBody:
    """A body in an object store; what is there stays."""

    def __init__(self, path: RemotePath, size: int) -> None:
        self._path = path
        self.size = size

    def read(self, offset: int, size: int) -> bytes:
        """See ReadableBody."""
        return self._path.read(offset, max(0, min(size, self.size - offset)))

    def hold(self) -> None:
        """See ReadableBody."""

    def release(self) -> None:
        """See ReadableBody."""


def _body_in(folder: AnyPath, message_id: int) -> ReadableBody | None:
    path = folder / f"{message_id}.msg"
    size = body_size(folder, message_id)
    if size is None:
        return None
    if isinstance(path, RemotePath):
        return RemoteBody(path, size)
    return LargeFile(path, is_durable=True, size=size)


def body_size(folder: AnyPath, message_id: int) -> int | None:
    """Bytes of a large message's file; None: it is not there, as after the last acknowledgement.

    Raises:
        JournalIOError: it cannot be looked at.
    """
    path = folder / f"{message_id}.msg"
    try:
        return path.size() if isinstance(path, RemotePath) else path.stat().st_size
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        if isinstance(error, JournalIOError):
            raise
        raise JournalIOError(error.errno or 0, "cannot look at", str(path)) from error


def _filled(
    batch: pa.RecordBatch, find: Callable[[int], ReadableBody | None], size_max: int
) -> Iterator[pa.RecordBatch]:
    is_large = batch.column("is_large").to_pylist()
    if not any(is_large):
        yield batch
        return
    ids = batch.column("message_id").to_pylist()
    found: dict[int, bytearray] = {}
    sizes: dict[int, int] = {}
    first = held = 0
    for row, message_id in enumerate(ids):
        body = find(message_id) if is_large[row] else None
        if body is None:
            continue
        is_read = body.size <= size_max
        if is_read and held and held + body.size > BODIES_MAX:
            yield _part(batch, first, row, found, sizes)
            first, held = row, 0
            found.clear()
        if is_read:
            whole = _whole(body)
            if whole is None:
                # As if it had been gone when it was looked for.
                continue
            found[row] = whole
            held += body.size
        sizes[row] = body.size
    yield _part(batch, first, len(ids), found, sizes)


def _whole(body: ReadableBody) -> bytearray | None:
    """All of a body; None where it was deleted meanwhile."""
    whole = bytearray()
    for piece in body_pieces(body):
        whole += piece
    return whole if len(whole) == body.size else None


def body_pieces(body: ReadableBody) -> Iterator[bytes]:
    """Give a body in pieces; they end before its size where rows of it were deleted meanwhile.

    Raises:
        JournalIOError: it cannot be read.
    """
    body.hold()
    try:
        for offset in range(0, body.size, PIECE_SIZE):
            size = min(PIECE_SIZE, body.size - offset)
            piece = body.read(offset, size)
            yield piece
            if len(piece) < size:
                return
    finally:
        body.release()


def _part(
    batch: pa.RecordBatch, first: int, end: int, found: dict[int, bytearray], sizes: dict[int, int]
) -> pa.RecordBatch:
    """Rows from `first` to `end` with what was found of them."""
    part = batch.slice(first, end - first)
    for name, values in (("body", found), ("body_size", sizes)):
        column = part.column(name).to_pylist()
        for row in range(first, end):
            if row in values:
                column[row - first] = values[row]
        index = part.schema.get_field_index(name)
        field = part.schema.field(index)
        part = part.set_column(index, field, pa.array(column, field.type))
    return part
