"""`journal-bench`: the command of journal.commands.bench by itself."""

from __future__ import annotations

import sys

from journal.commands.bench import journal_bench
from journal.commands.exit_status import run

__all__ = ["journal_bench", "main"]


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(journal_bench, "journal-bench"))


if __name__ == "__main__":
    main()
