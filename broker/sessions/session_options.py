"""How a client wants its session."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.sessions.prefixes import NO_PREFIXES

if TYPE_CHECKING:
    from broker.sessions.prefixes import Prefixes

__all__ = ["SessionOptions"]


class SessionOptions(NamedTuple):
    """How a client wants its session.

    Attributes:
        auto_commit_sends: each message counts alone; else they join the session's transaction.
        auto_commit_acks: likewise for acknowledgements.
        pre_acknowledge: messages count as acknowledged when they are handed over.
        is_xa: transactions are named by a manager.
        default_address: where messages without an address go; None is the first one used.
        prefixes: that its client may put before names.
    """

    auto_commit_sends: bool = True
    auto_commit_acks: bool = True
    pre_acknowledge: bool = False
    is_xa: bool = False
    default_address: str | None = None
    prefixes: Prefixes = NO_PREFIXES

    @property
    def is_transacted(self) -> bool:
        """Whether the session has a local transaction from its start on."""
        return not (self.is_xa or (self.auto_commit_sends and self.auto_commit_acks))
