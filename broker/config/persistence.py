"""Where a broker keeps its data: journals in folders, tables of a database, or nowhere.

Folders may be relative: to the instance. What the engines take is made by `journal_options`,
`bindings_options` and `database_options`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from broker.config.errors import ConfigError
from broker.config.xml_fields import (
    Context,
    attribute,
    check_names,
    content,
    custom,
    element,
    line,
    nested,
    optional,
    optional_attribute,
)
from broker.settings.value_types import (
    BOOLEAN,
    INT,
    INT_MAX,
    LONG,
    SIZE,
    TEXT,
    ValueType,
    at_least,
    between,
    choice,
    minus_one_or_more_than,
)
from broker.storage.layout import MESSAGES_FILES
from journal.errors import OptionError
from journal.extras import extra_of_url, missing_package
from journal.options import JournalOptions, JournalType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker.config.document import Element
    from jdbcstore.options import DatabaseStoreOptions

__all__ = ["DatabaseStore", "PersistenceConfig", "Retention", "Store"]

# BindingsJournal of Artemis: its own file size, always NIO, two files.
BINDINGS_FILE_SIZE: Final = 1024 * 1024
MESSAGES_PREFIX: Final = (MESSAGES_FILES, "amq")
BINDINGS_PREFIX: Final = ("activemq-bindings", "bindings")
MESSAGES_USER_VERSION: Final = 0

_BYTES: Final = between(SIZE, 1, INT_MAX)


class RetentionUnit(Enum):
    """The unit of a retention's period; the value is its milliseconds."""

    DAYS = 86_400_000
    HOURS = 3_600_000
    MINUTES = 60_000
    SECONDS = 1000


def _retention_unit(text: str) -> RetentionUnit:
    try:
        return RetentionUnit[text.upper()]
    except KeyError:
        raise ValueError from None


_UNIT: Final = ValueType(f"one of {', '.join(RetentionUnit.__members__)}", _retention_unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """journal-retention-directory: how long history is kept, and how much of it."""

    directory: str = content(TEXT)
    """Folder of the history, as the element's text."""
    unit: RetentionUnit = attribute("unit", _UNIT, RetentionUnit.DAYS)
    """Unit of `period`."""
    period: int | None = optional_attribute("period", at_least(INT, 1))
    """How long files are kept; without, until `storage-limit`."""
    storage_limit_bytes: int | None = optional_attribute("storage-limit", SIZE)
    """Bytes from which the oldest files are deleted."""

    def __post_init__(self) -> None:
        """A folder and a limit.

        Raises:
            ValueError: one of them is missing.
        """
        if not self.directory:
            raise ValueError("it names no folder")
        if self.period is None and self.storage_limit_bytes is None:
            raise ValueError("it needs a period or a storage-limit")

    @property
    def period_ms(self) -> int:
        """The period in milliseconds, -1 without one."""
        return -1 if self.period is None else self.period * self.unit.value


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStore:
    """database-store: the texts of its elements, checked by the SQL store.

    Attributes:
        elements: by name, passwords in the clear; repr() leaves them out.
        data_source_properties: of the connection pool.
        where: `FILE:LINE` of the element.
    """

    elements: Mapping[str, str] = field(repr=False)
    data_source_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    where: str = ""


_SECRETS: Final = ("jdbc-connection-url", "jdbc-user", "jdbc-password")
_DATABASE_ELEMENTS: Final = (
    *("jdbc-driver-class-name", *_SECRETS, "message-table-name", "bindings-table-name"),
    *("large-message-table-name", "page-store-table-name", "node-manager-store-table-name"),
    *("jdbc-network-timeout", "jdbc-lock-renew-period", "jdbc-lock-expiration"),
    *("jdbc-lock-acquisition-timeout", "jdbc-journal-sync-period", "jdbc-allowed-time-diff"),
    *("jdbc-max-page-size-bytes", "jdbc-page-max-size-bytes", "jdbc-ride-out"),
)
# The user manual's name for one that Artemis's code calls otherwise.
_ALIASES: Final = {"jdbc-page-max-size-bytes": "jdbc-max-page-size-bytes"}
# A connection pool of Java's that we have no use for; read and passed over.
_PASSED_OVER: Final = ("data-source-class-name",)


def _database_store(parent: Element, context: Context) -> DatabaseStore:
    check_names(parent, (*_DATABASE_ELEMENTS, *_PASSED_OVER, "data-source-properties"), (), context)
    elements: dict[str, str] = {}
    properties: dict[str, str] = {}
    for child in parent.children:
        if child.name == "data-source-properties":
            properties = _properties(child, context)
        elif child.name in _DATABASE_ELEMENTS:
            name = _ALIASES.get(child.name, child.name)
            if name in elements:
                raise child.wrong(f"<{name}> stands a second time")
            masked = child.name in _SECRETS
            elements[name] = _unmasked(child, child.text, context) if masked else child.text
    where = f"{parent.file}:{parent.line}"
    return DatabaseStore(elements=elements, data_source_properties=properties, where=where)


def _properties(parent: Element, context: Context) -> dict[str, str]:
    check_names(parent, ("data-source-property",), (), context)
    found = {}
    for child in parent.children:
        check_names(child, (), ("key", "value"), context)
        try:
            key, value = child.attributes["key"], child.attributes["value"]
        except KeyError as missing:
            raise child.wrong(f"<{child.name}> needs the attribute {missing.args[0]}") from None
        # Only what says so is masked here, whatever mask-password says.
        found[key] = _unmasked(child, value, context) if value.startswith("ENC(") else value
    return found


def _unmasked(where: Element, text: str, context: Context) -> str:
    # mask-password=true holds for user and password; a URL without ENC(…) is in the clear.
    if where.name == "jdbc-connection-url" and not text.startswith("ENC("):
        return text
    try:
        return context.unmask(text)
    except ValueError as error:
        raise where.wrong(f"<{where.name}>: {error}") from None


def _nothing(parent: Element, context: Context) -> bool:
    check_names(parent, (), (), context)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """store: a database, or the files that the other elements describe."""

    database: DatabaseStore | None = custom("database-store", _database_store, None)
    """Store everything in a database."""
    file: bool = custom("file-store", _nothing, False)
    """Store everything in files; the default."""

    def __post_init__(self) -> None:
        """One of the two.

        Raises:
            ValueError: both, or none.
        """
        if (self.database is not None) == self.file:
            raise ValueError("it takes <file-store> or <database-store>")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistenceConfig:
    """The persistence elements of <core>."""

    persistence_enabled: bool = element("persistence-enabled", BOOLEAN, True)
    """Whether anything is stored. Without, messages are lost when the broker stops."""
    store: Store | None = nested("store", Store)
    """Where to store: files or a database."""
    bindings_directory: str = element("bindings-directory", TEXT, "data/bindings")
    """Folder of the journal of addresses, queues and settings."""
    create_bindings_dir: bool = element("create-bindings-dir", BOOLEAN, True)
    """Whether that folder is created."""
    journal_directory: str = element("journal-directory", TEXT, "data/journal")
    """Folder of the journal of messages."""
    create_journal_dir: bool = element("create-journal-dir", BOOLEAN, True)
    """Whether that folder is created."""
    node_manager_lock_directory: str | None = optional("node-manager-lock-directory", TEXT)
    """Folder of the lock that a pair on one store shares; without, the journal's."""
    paging_directory: str = element("paging-directory", TEXT, "data/paging")
    """Folder of the pages."""
    large_messages_directory: str = element("large-messages-directory", TEXT, "data/largemessages")
    """Folder of the large messages."""
    retention: Retention | None = nested("journal-retention-directory", Retention)
    """Keep journal files that are not needed any more, for replays."""
    journal_type: JournalType = element("journal-type", choice(JournalType), JournalType.ASYNCIO)
    """How the journal writes: NIO by plain writes, ASYNCIO by the kernel's AIO past the page cache,
    MAPPED by a mapping, IO_URING (ours) by io_uring."""
    journal_datasync: bool = element("journal-datasync", BOOLEAN, True)
    """Whether a sync waits for the disk. Without, a power cut may lose acknowledged messages."""
    journal_sync_transactional: bool = element("journal-sync-transactional", BOOLEAN, True)
    """Whether a commit is answered only when it is durable."""
    journal_sync_non_transactional: bool = element("journal-sync-non-transactional", BOOLEAN, True)
    """Whether a durable message outside of a transaction is answered only when it is durable."""
    journal_file_size_bytes: int = element("journal-file-size", _BYTES, 10 * 1024 * 1024)
    """Size of each file of the message journal."""
    journal_min_files: int = element("journal-min-files", at_least(INT, 1), 2)
    """Files that are made at the start and kept for reuse."""
    journal_pool_files: int = element("journal-pool-files", minus_one_or_more_than(INT, 0), -1)
    """Free files that are kept for reuse; -1 keeps all."""
    # None: what the journal's type takes.
    journal_max_io: int | None = optional("journal-max-io", at_least(INT, 1))
    """Writes that may be under way at once. Without: 4096 for ASYNCIO, 1 for others."""
    journal_buffer_timeout_ns: int | None = optional("journal-buffer-timeout", at_least(INT, 0))
    """Time after which the write buffer is flushed at the latest. Waiting producers have it flushed
    at once."""
    journal_buffer_size_bytes: int = element("journal-buffer-size", _BYTES, 490 * 1024)
    """Size of the write buffer."""
    # None, -1 and 0: what the device says.
    journal_device_block_size: int | None = optional(
        "journal-device-block-size", minus_one_or_more_than(INT, -1)
    )
    """Alignment of writes; without, or with -1 or 0, the device's own."""
    journal_compact_min_files: int = element("journal-compact-min-files", at_least(INT, 0), 10)
    """Files from which on compaction may begin; 0 never compacts."""
    journal_compact_percentage: int = element(
        "journal-compact-percentage", between(INT, 0, 100), 30
    )
    """Compaction begins when less than this percentage of the journal is live."""
    # None: for ever in a pair on one store; else not at all, a second start says who has it.
    journal_lock_acquisition_timeout_ms: int | None = optional(
        "journal-lock-acquisition-timeout", minus_one_or_more_than(LONG, -1)
    )
    """How long a start waits for the journal's lock; -1 for ever. Without: for ever in a pair on
    one store, else not at all."""
    journal_file_open_timeout_s: int = element("journal-file-open-timeout", at_least(INT, 1), 5)
    """How long the next file may take to be opened."""
    journal_max_attic_files: int = element("journal-max-attic-files", INT, 10)
    """Damaged files that are kept in the folder `attic`."""
    log_journal_write_rate: bool = element("log-journal-write-rate", BOOLEAN, False)
    """Whether Artemis logs how much it writes."""
    # None: the journal-buffer-timeout of NIO.
    page_sync_timeout_ns: int | None = optional("page-sync-timeout", at_least(INT, 0))
    """How long Artemis collects page writes before a sync."""
    page_max_concurrent_io: int = element(
        "page-max-concurrent-io", minus_one_or_more_than(INT, 0), 5
    )
    """Pages that are read at once; -1 without limit."""
    read_whole_page: bool = element("read-whole-page", BOOLEAN, False)
    """Whether Artemis reads pages as a whole."""
    purge_page_folders: bool = element("purge-page-folders", BOOLEAN, False)
    """Whether the folder of an address is deleted when it stops paging."""
    large_message_sync: bool = element("large-message-sync", BOOLEAN, True)
    """Whether files of large messages are synced."""
    persist_delivery_count_before_delivery: bool = element(
        "persist-delivery-count-before-delivery", BOOLEAN, False
    )
    """Whether each delivery is counted in the journal before it is made, so that a crash counts
    too."""
    max_redelivery_records: int = element(
        "max-redelivery-records", minus_one_or_more_than(INT, -1), 10
    )
    """Records of redeliveries kept for a message; -1 without limit."""
    where: str = line()

    @property
    def database(self) -> DatabaseStore | None:
        """The database, None where files are used."""
        return None if self.store is None else self.store.database

    def journal_options(self, instance: Path) -> JournalOptions:
        """What the message journal takes.

        Args:
            instance: folder that relative ones are below.

        Raises:
            ConfigError: the engine refuses a value.
        """
        block = self.journal_device_block_size
        retention = self.retention
        try:
            return JournalOptions(
                directory=instance / self.journal_directory,
                create_directory=self.create_journal_dir,
                prefix=MESSAGES_PREFIX[0],
                extension=MESSAGES_PREFIX[1],
                journal_type=self.journal_type,
                sync_transactional=self.journal_sync_transactional,
                sync_non_transactional=self.journal_sync_non_transactional,
                file_size=self.journal_file_size_bytes,
                # Artemis takes 1 and makes it 2.
                min_files=max(2, self.journal_min_files),
                pool_files=self.journal_pool_files,
                max_io=self.journal_max_io,
                buffer_timeout_ns=self.journal_buffer_timeout_ns,
                buffer_size=self.journal_buffer_size_bytes,
                compact_min_files=self.journal_compact_min_files,
                compact_percentage=self.journal_compact_percentage,
                datasync=self.journal_datasync,
                device_block_size=block if block and block > 0 else None,
                file_open_timeout_s=float(self.journal_file_open_timeout_s),
                max_attic_files=max(0, self.journal_max_attic_files),
                retention_directory=None if retention is None else instance / retention.directory,
                retention_period_ms=-1 if retention is None else retention.period_ms,
                retention_max_bytes=-1
                if retention is None or retention.storage_limit_bytes is None
                else retention.storage_limit_bytes,
            )
        except OptionError as error:
            raise ConfigError(f"{self.where}: {error}") from None

    def bindings_options(self, instance: Path) -> JournalOptions:
        """What the bindings journal takes: always NIO, with files of its own size.

        Args:
            instance: folder that relative ones are below.
        """
        return JournalOptions(
            directory=instance / self.bindings_directory,
            create_directory=self.create_bindings_dir,
            prefix=BINDINGS_PREFIX[0],
            extension=BINDINGS_PREFIX[1],
            journal_type=JournalType.NIO,
            file_size=BINDINGS_FILE_SIZE,
            min_files=2,
            datasync=self.journal_datasync,
        )

    def database_options(self) -> DatabaseStoreOptions:
        """What the SQL store takes; only where `database` is not None.

        Raises:
            ConfigError: it refuses a value, or what it needs is not installed.
        """
        database = self.database
        assert database is not None
        url = database.elements.get("jdbc-connection-url", "")
        try:
            # Here alone: a broker on files needs no SQLAlchemy.
            from jdbcstore.options import DatabaseStoreOptions

            options = DatabaseStoreOptions.from_elements(
                database.elements, data_source_properties=database.data_source_properties
            )
            options.check_tables()
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{database.where}: <database-store>: {missing_package(error, extra_of_url(url))}"
            ) from None
        except OptionError as error:
            raise ConfigError(f"{database.where}: {error}") from None
        return options
