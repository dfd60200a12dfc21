"""DB2 by ibm_db."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy
from sqlalchemy import Identity
from sqlalchemy.types import UserDefinedType

from jdbcstore.dialects.base import ColumnTypes, Dialect, NameCase
from jdbcstore.errors import Fault, fault_of_sqlstate
from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine.interfaces import Dialect as EngineDialect

    from jdbcstore.dialects.base import RawConnection

__all__ = ["DB2"]

PORT: Final = 50000
# A value of a CLI connection string cannot be escaped.
UNSAFE: Final = re.compile(r"[;{}\x00]")
# "Security processing failed", such as a wrong password; its SQLSTATE is that of a lost connection.
WRONG_LOGIN: Final = "SQL30082N"
# DB2 Messages and Codes: what class 57 and 55 say that other databases mean differently.
FAULTS: Final = {
    "55032": Fault.LOST,  # The database manager was stopped while we were connected.
    "57007": Fault.CONFLICT,
    "57009": Fault.CONFLICT,  # No storage for now.
    "57011": Fault.CONFLICT,  # The log or another resource is full for now.
    "57019": Fault.LOST,
    "58004": Fault.LOST,
    "58009": Fault.LOST,  # The conversation ended by a protocol error.
}


class Blob2G(UserDefinedType[bytes]):
    """BLOB(2G), as Artemis writes it: 2,147,483,647 bytes."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The type's text."""
        return "BLOB(2G)"


class DB2(Dialect):
    """DB2 for Linux, Unix and Windows 10.5 and later."""

    name = "db2"
    name_case = NameCase.UPPER
    max_blob_size = 2_147_483_647
    table_name_max = 121  # 128, less the suffix of an index.
    index_name_max = 128
    # All special registers of one statement are read from one reading of the clock.
    now_ms = (
        "(BIGINT(DAYS({utc}) - DAYS(DATE('1970-01-01'))) * 86400000"
        " + BIGINT(MIDNIGHT_SECONDS({utc})) * 1000 + MICROSECOND({utc}) / 1000)"
    ).format(utc="CURRENT TIMESTAMP - CURRENT TIMEZONE")
    from_nothing = " FROM SYSIBM.SYSDUMMY1"
    row_lock = " WITH RS USE AND KEEP UPDATE LOCKS"

    def __init__(self, engine_dialect: EngineDialect) -> None:
        super().__init__(engine_dialect)
        # It logs every error with its traceback, beside raising it, and sets this when imported.
        logging.getLogger("ibm_db_sa").setLevel(logging.CRITICAL + 1)

    def column_types(self) -> ColumnTypes:
        """BLOB(2G)."""
        return replace(super().column_types(), blob=Blob2G(), file_data=Blob2G())

    def file_identity(self) -> Identity | None:
        """ALWAYS, from 1."""
        return Identity(always=True, start=1, increment=1)

    def open_raw(
        self,
        url: sqlalchemy.URL,
        network_timeout_ms: int,
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> RawConnection | None:
        """A connection whose string holds every keyword of the URL, which ibm_db_sa drops."""
        del args, named
        import ibm_db_dbi

        connection: RawConnection = ibm_db_dbi.connect(
            self.connection_string(url, network_timeout_ms), "", ""
        )
        return connection

    def connection_string(self, url: sqlalchemy.URL, network_timeout_ms: int) -> str:
        """The CLI driver's connection string.

        Raises:
            OptionError: a value holds what would end it, such as a semicolon.
        """
        keywords: dict[str, object] = {
            "DATABASE": url.database,
            "HOSTNAME": url.host,
            "PORT": url.port or PORT,
            "PROTOCOL": "TCPIP",
            "UID": url.username,
            "PWD": url.password,
            **url.query,
        }
        if network_timeout_ms > 0:
            seconds = -(-network_timeout_ms // 1000)
            keywords = {"ConnectTimeout": seconds, "ReceiveTimeout": seconds} | keywords
        text = ""
        for key, value in keywords.items():
            if value is None:
                continue
            if UNSAFE.search(key) or "=" in key or UNSAFE.search(str(value)):
                raise OptionError(f"DB2 takes no ';', '{{' or '}}' in {key}")
            text += f"{key}={value};"
        return text

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """Transactions end when we say so."""
        del network_timeout_ms
        raw.set_autocommit(False)  # type: ignore[attr-defined]

    def fault(self, exception: BaseException) -> Fault:
        """By the SQLSTATE in the message: the SQLCODE of a gateway is its own."""
        if WRONG_LOGIN in str(exception):
            return Fault.FATAL
        found: Any = re.search(r"SQLSTATE=([0-9A-Z]{5})", str(exception))
        if found is None:
            return Fault.LOST if "SQL30081N" in str(exception) else Fault.FATAL
        return FAULTS.get(found[1]) or fault_of_sqlstate(found[1])
