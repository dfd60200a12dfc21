"""Errors of the sources, beside those of the journal (journal.errors)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DataLoss"]


class DataLoss(JournalError):
    """What was stored cannot be read back, and `failOnDataLoss` is not off.

    Args:
        journal: where; of a running broker its host and port.
        reasons: why, at least one.
        otherwise: what `failOnDataLoss` false does.
    """

    def __init__(
        self,
        journal: str,
        reasons: Sequence[str],
        otherwise: str = "damage comes as rows, and all the rest with it",
    ) -> None:
        more = f", and {len(reasons) - 1} more places" if len(reasons) > 1 else ""
        super().__init__(f"{journal}: {reasons[0]}{more}; with failOnDataLoss=false {otherwise}")
