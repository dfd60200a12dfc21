"""The broker: messages, queues and addresses over a record store."""

from journal.version import __version__

__all__ = ["__version__"]
