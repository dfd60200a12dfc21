"""What the long runs counted, added up and printed at the end of the run."""

import pytest

# A key of user_properties, which travel from a worker of pytest-xdist to the process that prints.
FIGURES = "figures"


@pytest.fixture
def figures(request):
    """`figures(what, kills=4, ...)`: counts for the end of the run, added up over all tests.

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
                total[unit] = total.get(unit, 0) + count
    if not sums:
        return
    terminalreporter.section("figures")
    for what, (tests, total) in sorted(sums.items()):
        shown = ", ".join(f"{count:,} {unit.replace('_', ' ')}" for unit, count in total.items())
        terminalreporter.write_line(f"{what} ({len(tests)} tests): {shown}")
