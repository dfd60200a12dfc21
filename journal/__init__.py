"""The file journal: records on disk in the format of Apache Artemis, checksummed.

    from journal import Journal, JournalOptions

    with Journal(JournalOptions(directory="data/journal")) as journal:
        journal.load(lambda batch: print([record.record_id for record in batch]))
        journal.add(1, 45, b"body")  # durable when it returns

`journal.api` is the door that other stores implement too.
"""

try:
    import journal.format  # noqa: F401 - the lowest extension: is the tree built at all?
except ModuleNotFoundError as missing:
    if missing.name != "journal.format":
        raise
    raise ImportError(
        "Quiver's extension modules are not built: type `make build`, or `pip install .`."
    ) from None

from journal.api import Done, RecordDecoder, RecordId, RecordStore, Ticket, TxId
from journal.completion import Completion
from journal.delivery import LiveRecord
from journal.errors import (
    Damage,
    DuplicateRecord,
    JournalClosed,
    JournalDamaged,
    JournalError,
    JournalFull,
    JournalIOError,
    JournalLocked,
    OptionError,
    RecordTooLarge,
    TransactionFailed,
    UnknownRecord,
    UnknownTransaction,
    UnsupportedFormat,
    WrongState,
    WrongUse,
)
from journal.journal import Journal
from journal.loaded import (
    DeletedRecord,
    FailedTransaction,
    LoadedFile,
    LoadResult,
    PreparedTransaction,
)
from journal.options import JournalOptions, JournalType
from journal.transaction import Transaction
from journal.version import __version__

__all__ = [
    "Completion",
    "Damage",
    "DeletedRecord",
    "Done",
    "DuplicateRecord",
    "FailedTransaction",
    "Journal",
    "JournalClosed",
    "JournalDamaged",
    "JournalError",
    "JournalFull",
    "JournalIOError",
    "JournalLocked",
    "JournalOptions",
    "JournalType",
    "LiveRecord",
    "LoadResult",
    "LoadedFile",
    "OptionError",
    "PreparedTransaction",
    "RecordDecoder",
    "RecordId",
    "RecordStore",
    "RecordTooLarge",
    "Ticket",
    "Transaction",
    "TransactionFailed",
    "TxId",
    "UnknownRecord",
    "UnknownTransaction",
    "UnsupportedFormat",
    "WrongState",
    "WrongUse",
    "__version__",
]
