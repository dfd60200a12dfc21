"""Why a management request fails; the text is the answer, with `_AMQ_OperationSucceeded` false."""

from __future__ import annotations

__all__ = ["ManagementError"]


class ManagementError(Exception):
    """A request that cannot be done, as it was asked for; nothing was done."""
