"""data-source-properties: the keys of Artemis's connection pool, and what they do here.

Artemis's pool is Apache Commons DBCP 2 (BasicDataSource); ours is SQLAlchemy's QueuePool.
Source: https://commons.apache.org/proper/commons-dbcp/configuration.html.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jdbcstore.passwords import unmask
from journal.errors import OptionError
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PoolOptions"]

logger = logging.getLogger(__name__)

IDLE_MAX: Final = 8  # DBCP's maxIdle.

MAPPED: Final = (
    "url",
    "username",
    "password",
    "driverClassName",
    "maxTotal",
    "maxIdle",
    "maxWaitMillis",
    "maxConnLifetimeMillis",
    "testOnBorrow",
    "lifo",
    "connectionInitSqls",
)
# Known, and without a meaning here: why.
WITHOUT_EFFECT: Final = {
    "accessToUnderlyingConnectionAllowed": "the store does not ask",
    "abandonedUsageTracking": "the store gives its connections back",
    "autoCommitOnReturn": "the store ends its own transactions",
    "cacheState": "the driver keeps it",
    "clearStatementPoolOnReturn": "statements belong to the driver",
    "defaultAutoCommit": "the store ends its own transactions",
    "defaultCatalog": "the URL names the database",
    "defaultQueryTimeout": "jdbc-network-timeout bounds every answer",
    "defaultReadOnly": "the store writes",
    "defaultSchema": "the URL names it",
    "defaultTransactionIsolation": "the store needs READ COMMITTED",
    "disconnectionSqlCodes": "the dialect classifies errors",
    "disconnectionIgnoreSqlCodes": "the dialect classifies errors",
    "enableAutoCommitOnReturn": "the store ends its own transactions",
    "evictionPolicyClassName": "idle connections stay",
    "fastFailValidation": "the dialect classifies errors",
    "initialSize": "connections are made when they are needed",
    "jmxName": "JMX is not supported",
    "logAbandoned": "the store gives its connections back",
    "logExpiredConnections": "SQLAlchemy's log says it",
    "maxOpenPreparedStatements": "statements belong to the driver",
    "minEvictableIdleTimeMillis": "idle connections stay",
    "minIdle": "connections are made when they are needed",
    "numTestsPerEvictionRun": "idle connections stay",
    "poolPreparedStatements": "statements belong to the driver",
    "registerConnectionMBean": "JMX is not supported",
    "removeAbandonedOnBorrow": "the store gives its connections back",
    "removeAbandonedOnMaintenance": "the store gives its connections back",
    "removeAbandonedTimeout": "the store gives its connections back",
    "rollbackOnReturn": "it is always done",
    "softMinEvictableIdleTimeMillis": "idle connections stay",
    "testOnCreate": "a new connection was just tried",
    "testOnReturn": "it is tried when borrowed",
    "testWhileIdle": "it is tried when borrowed",
    "timeBetweenEvictionRunsMillis": "idle connections stay",
    "validationQuery": "the driver's own ping is used",
    "validationQueryTimeout": "jdbc-network-timeout bounds every answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """The pool of one database.

    Attributes:
        idle_max: connections that stay open unused; -1 all (maxIdle).
        total_max: connections at most; -1 without limit, as Artemis sets it (maxTotal).
        wait_ms: milliseconds to wait for one when all are in use; -1 for ever (maxWaitMillis).
        lifetime_ms: milliseconds after which one is replaced; 0 and below never
            (maxConnLifetimeMillis).
        is_tested: each is tried before use (testOnBorrow).
        is_lifo: the one used last is used next, so that the others fall idle (lifo).
        first_statements: SQL that each new connection runs (connectionInitSqls).
    """

    idle_max: int = IDLE_MAX
    total_max: int = -1
    wait_ms: int = -1
    lifetime_ms: int = -1
    is_tested: bool = True
    is_lifo: bool = True
    first_statements: tuple[str, ...] = ()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> PoolOptions:
        """The pool that data-source-properties describe.

        Raises:
            OptionError: an unknown key, with the nearest known; a value that makes no sense.

        >>> PoolOptions.from_properties({"maxTotal": "3"}).total_max
        3
        """
        for key in properties:
            if key in WITHOUT_EFFECT:
                logger.info("data-source-property %s has no effect: %s", key, WITHOUT_EFFECT[key])
            elif key not in MAPPED:
                near = nearest(key, [*MAPPED, *WITHOUT_EFFECT])
                raise OptionError(f"data-source-property {key!r} is not known{near}")
        given = {key: unmask(value).strip() for key, value in properties.items()}
        statements = given.get("connectionInitSqls", "").split(";")
        made = cls(
            idle_max=_integer(given, "maxIdle", IDLE_MAX),
            total_max=_integer(given, "maxTotal", -1),
            wait_ms=_integer(given, "maxWaitMillis", -1),
            lifetime_ms=_integer(given, "maxConnLifetimeMillis", -1),
            is_tested=_boolean(given, "testOnBorrow", default=True),
            is_lifo=_boolean(given, "lifo", default=True),
            first_statements=tuple(text.strip() for text in statements if text.strip()),
        )
        if made.total_max == 0:
            raise OptionError("data-source-property maxTotal is 0: no connection could be made")
        return made

    def engine_arguments(self, timeout_s: float | None = None) -> dict[str, Any]:
        """The same as keyword arguments of SQLAlchemy's create_engine().

        Args:
            timeout_s: one who may wait for ever is told so often that he waits; None never.
        """
        # QueuePool's size 0 means no limit, so the least that can be kept idle is one.
        idle = max(1, self.idle_max) if self.idle_max >= 0 else max(0, self.total_max)
        if self.total_max > 0:
            idle = min(idle, self.total_max)
        return {
            "pool_size": idle,
            "max_overflow": self.total_max - idle if self.total_max > 0 else -1,
            "pool_timeout": self.wait_ms / 1000 if self.wait_ms >= 0 else timeout_s,
            "pool_recycle": max(1, self.lifetime_ms // 1000) if self.lifetime_ms > 0 else -1,
            "pool_pre_ping": self.is_tested,
            "pool_use_lifo": self.is_lifo,
        }


def _integer(given: Mapping[str, str], key: str, default: int) -> int:
    text = given.get(key)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"data-source-property {key} is {text!r}; a number") from None


def _boolean(given: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = given.get(key)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise OptionError(f"data-source-property {key} is {text!r}; true or false")
    return text.lower() == "true"
