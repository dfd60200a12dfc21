"""Writes the journal for the load and compaction benchmarks, in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import ours
from benchmarks.measure import RECORDS, Case, Outcome, main_for, outcome

if TYPE_CHECKING:
    from pathlib import Path


def run(case: Case, folder: Path) -> Outcome:
    """Fill `folder`; the rate means nothing."""
    ours.prepare(case, folder)
    return outcome(RECORDS, 1)


if __name__ == "__main__":
    main_for(run)
