"""What differs from database to database: one file each, all behind `Dialect`."""

from jdbcstore.dialects.base import Dialect, RawConnection, RawCursor
from jdbcstore.dialects.choose import dialect_named, dialect_of

__all__ = ["Dialect", "RawConnection", "RawCursor", "dialect_named", "dialect_of"]
