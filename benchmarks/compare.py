"""What `make bench` and `make bench-compare` run.

    python -m benchmarks.compare [--tree TREE] [options of bench_journal]

Without a tree: bench_journal. With one: our journal of this tree against that of another, built in
place, case by case, taking turns; a ratio above 1 says that this tree is faster.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks import bench_journal, plan


def tree_groups(groups: list[plan.Group]) -> list[plan.Group]:
    """The same cases with the other tree's journal in place of every peer."""
    result = []
    for group in groups:
        ours = [run for run in group.runs if run.engine == "ours"]
        targets = [plan.Target(run, replace(run, engine="other"), 1.0) for run in ours]
        result.append(plan.group(group.title, targets))
    return result


def main() -> None:
    """Run what the command line asks for."""
    parser = bench_journal.parser()
    parser.description = __doc__
    parser.add_argument("--tree", type=Path, help="another checkout, built in place")
    arguments = parser.parse_args()
    groups = bench_journal.groups_for(arguments)
    if arguments.tree:
        other = bench_journal.module("benchmarks.ours", arguments.tree.resolve())
        bench_journal.ENGINES["other"] = other
        groups = tree_groups(groups)
    bench_journal.run_groups(groups, arguments)


if __name__ == "__main__":
    main()
