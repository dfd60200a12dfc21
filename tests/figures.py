"""What the long runs counted, added up and printed at the end of the run."""

import pytest

# A key of user_properties, which travel from a worker of pytest-xdist to the process that prints.
FIGURES = "figures"


@pytest.fixture
def figures(request):
    """`figures(what, kills=4, ...)`: counts for the end of the run, added up over all tests.

    A list, such as `outage_ms=[12, 30]`, is told as its distribution.

    A test that fails has its counts added too: they say how far it came.
    """

    def add(what, **counts):
        request.node.user_properties.append((FIGURES, (what, counts)))

    return add


def pytest_terminal_summary(terminalreporter):
    """Print the sums, a line for each `what`, in the order of their names."""
    sums = {}
    for report in (one for some in terminalreporter.stats.values() for one in some):
        if getattr(report, "when", None) != "call":
            continue
        for name, value in report.user_properties:
            if name != FIGURES:
                continue
            what, counts = value
            tests, total = sums.setdefault(what, ([], {}))
            tests.append(report.nodeid)
            for unit, count in counts.items():
                total[unit] = total[unit] + count if unit in total else count
    if not sums:
        return
    terminalreporter.section("figures")
    for what, (tests, total) in sorted(sums.items()):
        shown = ", ".join(_shown(unit.replace("_", " "), found) for unit, found in total.items())
        terminalreporter.write_line(f"{what} ({len(tests)} tests): {shown}")


def _shown(unit, found):
    if not isinstance(found, list):
        return f"{found:,} {unit}"
    ordered = sorted(found)
    p50, p99 = (ordered[int(share * (len(ordered) - 1) + 0.5)] for share in (0.5, 0.99))
    return f"{len(found):,} times, {unit}: p50 {p50:,}, p99 {p99:,}, worst {ordered[-1]:,}"
