"""Apache Derby, embedded in this process or behind its network server, by its JDBC driver."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy
from sqlalchemy import Identity
from sqlalchemy.dialects import registry

from jdbcstore.dialects import jdbc, jvm
from jdbcstore.dialects.base import ColumnTypes, Dialect, NameCase
from jdbcstore.errors import Fault, fault_of_sqlstate
from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jdbcstore.dialects.base import RawConnection

__all__ = ["NOW_FUNCTION", "Derby"]

registry.register("derby", "jdbcstore.dialects.derby_sqlalchemy", "EmbeddedDerby")
registry.register("derby.embedded", "jdbcstore.dialects.derby_sqlalchemy", "EmbeddedDerby")
registry.register("derby.network", "jdbcstore.dialects.derby_sqlalchemy", "NetworkDerby")

# Jars by their names in Maven Central and in Debian; 10.15 split derby.jar in two.
JARS: Final = ("derby", "derbyshared", "derbytools", "derbyclient")
MAVEN: Final = "org.apache.derby:{derby,derbyshared,derbytools,derbyclient}:10.16.1.1"

# CURRENT_TIMESTAMP is in the time zone of the JVM, and goes back an hour once a year.
NOW_FUNCTION: Final = "QUIVER_NOW_MS"
CREATE_NOW: Final = (
    f"CREATE FUNCTION {NOW_FUNCTION}() RETURNS BIGINT LANGUAGE JAVA PARAMETER STYLE JAVA NO SQL "
    "EXTERNAL NAME 'java.lang.System.currentTimeMillis'"
)
ALREADY_EXISTS: Final = "X0Y68"

# Derby's own SQLSTATEs (Reference Manual, "Derby exception messages and SQL states").
FAULTS: Final = {
    "40XL1": Fault.CONFLICT,  # A lock could not be had within derby.locks.waitTimeout.
    "40XL2": Fault.CONFLICT,
    "40XT": Fault.FATAL,  # The transaction was ended by an error inside Derby.
    "XBDA0": Fault.LOST,  # The login took too long.
    "XJ015": Fault.LOST,  # The engine was shut down.
    "XJ040": Fault.FATAL,  # The database cannot be started, such as by a second process.
    "XJ041": Fault.FATAL,
    "XCL52": Fault.CONFLICT,  # The statement was cancelled or took too long.
}

log = logging.getLogger("jdbcstore")

# Embedded databases that are open here, by path: the last one to leave shuts it down.
_embedded: Counter[str] = Counter()
_lock = threading.Lock()


class Derby(Dialect):
    """Derby 10.10 and later."""

    name = "derby"
    name_case = NameCase.UPPER
    max_blob_size = 2_147_483_647
    table_name_max = 121  # 128, less the suffix of an index.
    index_name_max = 128
    now_ms = f"{NOW_FUNCTION}()"
    from_nothing = " FROM SYSIBM.SYSDUMMY1"
    row_lock = " FOR UPDATE WITH RS"

    def column_types(self) -> ColumnTypes:
        """BLOB, which is 2 GiB here."""
        blob = sqlalchemy.BLOB()
        return replace(super().column_types(), blob=blob, file_data=blob)

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
        """A connection by JDBC.

        Raises:
            OptionError: Derby's jars, JPype or Java are missing.
        """
        del named
        jars = jvm.find_jars(JARS)
        is_embedded = url.drivername != "derby+network"
        # Without this Derby writes derby.log wherever the process happens to stand.
        log = f"{url.database}.derby.log" if is_embedded else os.devnull
        jpype = jvm.start(jars, {"derby.stream.error.file": log})
        _load_driver(jpype, is_embedded=is_embedded)
        jdbc_url: Any = args[0]
        properties: Any = args[1]
        if is_embedded:
            jpype.JClass("java.lang.System").setProperty(
                "derby.locks.waitTimeout", str(_wait_s(network_timeout_ms))
            )
        return jdbc.connect(
            jdbc_url,
            properties,
            jpype=jpype,
            network_timeout_ms=network_timeout_ms,
            limit_silence=None if is_embedded else _limit_silence,
        )

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """A clock in UTC, once for each database."""
        del network_timeout_ms
        cursor = raw.cursor()
        try:
            cursor.execute(CREATE_NOW)
        except jdbc.Error as error:
            if error.sqlstate != ALREADY_EXISTS:
                raise
        finally:
            cursor.close()
        raw.commit()

    def opened(self, url: sqlalchemy.URL) -> None:
        """Count this user of an embedded database."""
        if url.drivername != "derby+network":
            with _lock:
                _embedded[str(url.database)] += 1

    def closed(self, url: sqlalchemy.URL) -> None:
        """Shut an embedded database down when its last user leaves: another process may want it."""
        if url.drivername == "derby+network":
            return
        path = str(url.database)
        with _lock:
            _embedded[path] -= 1
            if _embedded[path] > 0:
                return
            del _embedded[path]
            _shut_down(path)

    def fault(self, exception: BaseException) -> Fault:
        """By SQLSTATE, where Derby's own states come before the standard's classes."""
        sqlstate = getattr(exception, "sqlstate", None)
        if not isinstance(sqlstate, str):
            return Fault.LOST if isinstance(exception, jdbc.InterfaceError) else Fault.FATAL
        for size in (5, 4):
            fault = FAULTS.get(sqlstate[:size])
            if fault is not None:
                return fault
        return fault_of_sqlstate(sqlstate)


def _limit_silence(java: Any, timeout_ms: int) -> None:
    """Let the client's socket give up when the server says nothing for so long.

    Derby's client refuses setNetworkTimeout() and has no property for a timeout. While it reads, it
    ignores abort() and close() (10.14 and 10.16). So the timeout is set on its socket, which it
    keeps in private fields, `agent_` and `socket_`.
    """
    import jpype

    try:
        agent = _field(java, "agent_")
        _field(agent, "socket_").setSoTimeout(timeout_ms)
    except (AttributeError, jpype.JException) as error:
        log.warning("jdbc-network-timeout has no effect on this Derby client: %s", error)


def _field(java: Any, name: str) -> Any:
    """The value of a field of a Java object, private fields included."""
    kind = java.getClass()
    while kind is not None:
        for field in kind.getDeclaredFields():
            if field.getName() == name:
                field.setAccessible(True)
                return field.get(java)
        kind = kind.getSuperclass()
    raise AttributeError(f"{java.getClass().getName()} has no field {name}")


def _wait_s(network_timeout_ms: int) -> int:
    """Seconds to wait for a lock; -1 for ever."""
    return -1 if network_timeout_ms < 0 else max(1, network_timeout_ms // 1000)


def _load_driver(jpype: Any, *, is_embedded: bool) -> None:
    """Make Java's DriverManager know Derby's driver."""
    names = (
        ("org.apache.derby.iapi.jdbc.AutoloadedDriver", "org.apache.derby.jdbc.EmbeddedDriver")
        if is_embedded
        else (
            "org.apache.derby.client.ClientAutoloadedDriver",
            "org.apache.derby.jdbc.ClientDriver",
        )
    )
    for name in names:
        try:
            jpype.JClass(name)
        except TypeError:  # JPype's word for a class that is not there.
            continue
        else:
            return
    raise OptionError(
        f"Derby's JDBC driver is not on the class path of this process's JVM: set "
        f"{jvm.CLASSPATH_VARIABLE} to its jars before the first connection; from Maven Central, "
        f"{MAVEN}, or Debian's libderby-java and libderbyclient-java"
    )


def _shut_down(path: str) -> None:
    jpype = jvm.running()
    if jpype is None:
        return
    try:
        jdbc.connect(f"jdbc:derby:{path};shutdown=true", {}, jpype=jpype)
    except jdbc.Error as error:
        # Derby says by an error that it did: 08006; XJ004 is a database that was never booted.
        if error.sqlstate not in ("08006", "XJ004"):
            raise
