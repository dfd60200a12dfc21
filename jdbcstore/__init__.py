"""Records, blobs and locks as rows of a SQL database, in Artemis's tables.

`jdbcstore` builds on `journal.api`, `journal.errors` and the parts of the file journal that do not
use files. Packages that build on `jdbcstore` import only the names listed here.
"""

from jdbcstore.database import Database
from jdbcstore.errors import Fault, LeaseLost, classify
from jdbcstore.lease import Lease, LeaseState
from jdbcstore.loading import SqlRecord
from jdbcstore.node import NodeManager, NodeState
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.store import SqlStore
from jdbcstore.url import sqlalchemy_url
from journal.version import __version__

__all__ = [
    "Database",
    "DatabaseStoreOptions",
    "Fault",
    "Lease",
    "LeaseLost",
    "LeaseState",
    "NodeManager",
    "NodeState",
    "SqlRecord",
    "SqlStore",
    "__version__",
    "classify",
    "sqlalchemy_url",
]
