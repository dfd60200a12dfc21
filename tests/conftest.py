"""What every test may use: how long the long runs are."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--effort",
        type=float,
        default=0.01,
        help="share of the full length that the long runs take: 1 is `make soak`",
    )


@pytest.fixture
def effort(request):
    """`effort(full, least=1)`: how many rounds to run of a run whose full length is `full`."""
    share = request.config.getoption("--effort")

    def rounds(full, least=1):
        return max(least, round(full * share))

    return rounds
