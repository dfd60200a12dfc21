"""The data sources, as PySpark's Python DataSource API wants them: what is read, in which tasks.

What a task gives is made in the modules beside this folder, which know nothing of Spark.
"""

from pipeline.sources.bindings import BindingsSource
from pipeline.sources.broker import BrokerSource
from pipeline.sources.journal import JournalSource
from pipeline.sources.messages import MessagesSource
from pipeline.sources.retention import RetentionSource

__all__ = [
    "SOURCES",
    "BindingsSource",
    "BrokerSource",
    "JournalSource",
    "MessagesSource",
    "RetentionSource",
]

SOURCES = (JournalSource, MessagesSource, BindingsSource, RetentionSource, BrokerSource)
