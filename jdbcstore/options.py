"""Every `<database-store>` parameter, with Artemis's default and unit.

Sources: ActiveMQDefaultConfiguration of Artemis for the defaults (where its user manual says
otherwise the code decides), DatabaseStorageConfiguration, JdbcNodeManager and
PagingStoreFactoryDatabase for the limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from journal.errors import OptionError
from journal.options import parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TABLE_NAME", "DatabaseStoreChanges", "DatabaseStoreOptions"]

# What every database takes as a name without quotes; PostgreSQL keeps 63 characters of it.
TABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
# A page table is this name with a generated id of up to 20 characters behind it, and Oracle before
# 12.2 takes 30 (PagingStoreFactoryDatabase refuses more for every database).
PAGE_STORE_NAME_MAX: Final = 10

TABLE_NAMES: Final = (
    "bindings_table_name",
    "message_table_name",
    "large_message_table_name",
    "page_store_table_name",
    "node_manager_store_table_name",
)
DURATIONS: Final = {
    "network_timeout_ms": -1,
    "lock_renew_period_ms": 1,
    "lock_expiration_ms": 1,
    "lock_acquisition_timeout_ms": -1,
    "journal_sync_period_ms": 0,
    "allowed_time_diff_ms": 0,
    "ride_out_ms": 0,
}


class DatabaseStoreChanges(TypedDict, total=False):
    """Keyword arguments of DatabaseStoreOptions.replace(), for type checkers."""

    connection_url: str
    driver_class_name: str | None
    user: str | None
    password: str | None
    bindings_table_name: str
    message_table_name: str
    large_message_table_name: str
    page_store_table_name: str
    node_manager_store_table_name: str
    data_source_properties: Mapping[str, str]
    network_timeout_ms: int
    lock_renew_period_ms: int
    lock_expiration_ms: int
    lock_acquisition_timeout_ms: int
    journal_sync_period_ms: int
    allowed_time_diff_ms: int
    max_page_size_bytes: int
    ride_out_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStoreOptions:
    """How the tables of one broker are reached and kept. Frozen: `replace()` gives a copy.

    Attributes:
        connection_url: a JDBC URL of one of the vendors, or a SQLAlchemy URL
            (jdbc-connection-url); masked when it begins with `ENC(`.
        driver_class_name: the JDBC driver (jdbc-driver-class-name), which must fit the URL; None
            takes the URL's. Artemis's default is Derby's embedded driver.
        user: of the database (jdbc-user); masked when it begins with `ENC(`.
        password: of that user (jdbc-password), masked likewise; never shown.
        bindings_table_name: journal of queues and addresses (bindings-table-name).
        message_table_name: journal of messages (message-table-name).
        large_message_table_name: files of large messages (large-message-table-name).
        page_store_table_name: paging directory, and prefix of the page tables; at most 10
            characters (page-store-table-name).
        node_manager_store_table_name: leases, node id, state (node-manager-store-table-name).
        data_source_properties: of the connection pool, by their DBCP names
            (data-source-properties).
        network_timeout_ms: milliseconds that an answer of the database may take; -1 for ever
            (jdbc-network-timeout).
        lock_renew_period_ms: milliseconds between two renewals of a lease, less than its
            expiration (jdbc-lock-renew-period).
        lock_expiration_ms: milliseconds that a lease holds without renewal (jdbc-lock-expiration).
        lock_acquisition_timeout_ms: milliseconds to wait for a lease; -1 for ever, 0 not at all
            (jdbc-lock-acquisition-timeout).
        journal_sync_period_ms: the longest an unsynced record waits, in milliseconds
            (jdbc-journal-sync-period).
        allowed_time_diff_ms: milliseconds between this clock and the database's before a warning
            (jdbc-allowed-time-diff).
        max_page_size_bytes: of one page (jdbc-max-page-size-bytes).
        ride_out_ms: milliseconds that writes wait for a database that is away before they fail;
            Artemis has no such option and stops at once.
    """

    connection_url: str = field(repr=False)  # It may hold a password.
    driver_class_name: str | None = None
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    bindings_table_name: str = "BINDINGS"
    message_table_name: str = "MESSAGES"
    large_message_table_name: str = "LARGE_MESSAGES"
    page_store_table_name: str = "PAGE_STORE"
    node_manager_store_table_name: str = "NODE_MANAGER_STORE"
    data_source_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    network_timeout_ms: int = 20_000
    lock_renew_period_ms: int = 4_000
    lock_expiration_ms: int = 20_000
    lock_acquisition_timeout_ms: int = -1
    journal_sync_period_ms: int = 5
    allowed_time_diff_ms: int = 250
    max_page_size_bytes: int = 100 * 1024
    ride_out_ms: int = 60_000

    def __post_init__(self) -> None:
        """Check every value; OptionError names the first that is wrong."""
        for name in TABLE_NAMES:
            value = getattr(self, name)
            if not isinstance(value, str) or not TABLE_NAME.fullmatch(value):
                raise OptionError(
                    f"{_element(name)} is {value!r}; a letter or _, then letters, digits and _, "
                    "63 characters at most"
                )
        if len(self.page_store_table_name) > PAGE_STORE_NAME_MAX:
            raise OptionError(
                f"page-store-table-name is {self.page_store_table_name!r}; at most "
                f"{PAGE_STORE_NAME_MAX} characters, since page tables add up to 20"
            )
        for name, least in DURATIONS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise OptionError(f"{_element(name)} is {value!r}; at least {least} ms")
        if self.lock_renew_period_ms >= self.lock_expiration_ms:
            raise OptionError(
                f"jdbc-lock-renew-period is {self.lock_renew_period_ms} ms; less than "
                f"jdbc-lock-expiration, {self.lock_expiration_ms} ms"
            )
        if self.max_page_size_bytes < 1:
            raise OptionError(
                f"jdbc-max-page-size-bytes is {self.max_page_size_bytes!r}; at least 1"
            )

    def check_tables(self) -> None:
        """See that no table of a broker has the name of another one, in any case.

        A command on a single table has no use for the others' names, and need not ask.

        Raises:
            OptionError: two have; or one is called as tables of pages are.
        """
        found: dict[str, str] = {}
        for name in TABLE_NAMES:
            # Most databases take names without quotes in either case.
            table = getattr(self, name).lower()
            other = found.setdefault(table, name)
            if other != name:
                raise OptionError(
                    f"{_element(name)} is {getattr(self, name)!r}, as {_element(other)} is; each "
                    "needs a table of its own"
                )
            suffix = table.removeprefix(self.page_store_table_name.lower())
            if suffix != table and suffix.isdecimal():
                raise OptionError(
                    f"{_element(name)} is {getattr(self, name)!r}, as a table of pages may be "
                    f"called: page-store-table-name, {self.page_store_table_name!r}, and a number"
                )

    @classmethod
    def from_elements(
        cls, elements: Mapping[str, str], **others: Unpack[DatabaseStoreChanges]
    ) -> DatabaseStoreOptions:
        """Options from the texts of a `<database-store>`'s elements, by element name.

        Args:
            elements: such as `{"jdbc-network-timeout": "20000"}`.
            **others: options that do not come as one text, such as `data_source_properties`.

        Raises:
            OptionError: an unknown element, a text that is not a number, or a value out of range.

        >>> DatabaseStoreOptions.from_elements(
        ...     {"jdbc-connection-url": "sqlite:///a", "jdbc-max-page-size-bytes": "50K"}
        ... ).max_page_size_bytes
        51200
        """
        known = {_element(item.name): item.name for item in fields(cls)}
        values: dict[str, object] = dict(others)
        for element, text in elements.items():
            name = known.get(element)
            if name is None or name == "data_source_properties":
                raise OptionError(f"no element of database-store is called {element!r}")
            values[name] = _value(element, name, text.strip())
        if "connection_url" not in values:
            raise OptionError("jdbc-connection-url is missing")
        return cls(**values)  # type: ignore[arg-type] # __post_init__ checks them

    def replace(self, **changes: Unpack[DatabaseStoreChanges]) -> DatabaseStoreOptions:
        """A copy with some values changed.

        Args:
            **changes: options by their names.

        Raises:
            OptionError: no option has that name, or a value is outside its range.
        """
        known = {item.name for item in fields(self)}
        for name in changes:
            if name not in known:
                raise OptionError(f"no option is called {name!r}")
        return replace(self, **changes)


def _element(name: str) -> str:
    """Artemis's element for an option.

    >>> _element("lock_renew_period_ms"), _element("message_table_name")
    ('jdbc-lock-renew-period', 'message-table-name')
    """
    shown = re.sub(r"_ms$", "", name).replace("_", "-")
    return shown if name in TABLE_NAMES or name == "data_source_properties" else f"jdbc-{shown}"


def _value(element: str, name: str, text: str) -> object:
    if name == "max_page_size_bytes":
        return parse_size(text)
    if name not in DURATIONS:
        return text
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{element} is {text!r}; a number of milliseconds") from None
