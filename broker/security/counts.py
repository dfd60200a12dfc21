"""Counters of logins and permission checks, by result."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SecurityCounts"]


@dataclass(slots=True)
class SecurityCounts:
    """Totals since the start; answers from a cache count as well.

    Attributes:
        authenticated: logins that were let in.
        unauthenticated: logins that were refused.
        authorized: permissions that were there.
        unauthorized: permissions that were missing.
    """

    authenticated: int = 0
    unauthenticated: int = 0
    authorized: int = 0
    unauthorized: int = 0
