"""What every test may use: how long the long runs are, and real databases."""

import signal

import hypothesis
import pytest

from tests.figures import figures, pytest_terminal_summary
from tests.given_database import given_place, keep_only_live
from tests.newest_servers import NEWEST_SERVERS
from tests.passed_before import PassedTests, add_options, leave_out
from tests.servers import SERVERS, ServerMissingError, new_sqlite_database
from tests.stale_modules import stale_modules

__all__ = ["figures", "pytest_terminal_summary"]


def pytest_addoption(parser):
    parser.addoption(
        "--effort",
        type=float,
        default=0.01,
        help="share of the full length that the long runs take: 1 is `make soak`",
    )
    parser.addoption(
        "--database-url",
        help="an empty database: only the tests that need a server run, on this one",
    )
    parser.addoption(
        "--servers",
        default="",
        metavar="KIND=KIND,…",
        help="servers that take the place of others: postgresql=postgresql-18,mariadb=mysql-9",
    )
    add_options(parser)


def pytest_collection_modifyitems(config, items):
    leave_out(config, items)
    if config.getoption("--database-url"):
        keep_only_live(config, items)


def pytest_configure(config):
    # A loaded machine draws slowly: that is not a failure of the test.
    hypothesis.settings.register_profile(
        "quiver", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("quiver")
    # With pytest-xdist every report comes to the process that has no workerinput.
    if (path := config.getoption("--passed-to")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(PassedTests(path))
    if stale := stale_modules():
        pytest.exit(f"newer than what was compiled of it: {', '.join(stale)}; type: make build", 4)
    # A shell starts what it sends to the background with SIGINT ignored, and so would be all that
    # tests start, and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def effort(request):
    """`effort(full, least=1)`: how many rounds to run of a run whose full length is `full`."""
    share = request.config.getoption("--effort")

    def rounds(full, least=1):
        return max(least, round(full * share))

    return rounds


class RunningServers:
    """The servers of one test session, each started when a test first asks for it."""

    def __init__(self, stand_ins=""):
        self._running = {}
        self._stand_ins = dict(pair.split("=") for pair in stand_ins.split(",") if pair)

    def get(self, kind):
        """The running server of a kind; the test is skipped where it is not installed."""
        if kind not in self._running:
            try:
                server = (SERVERS | NEWEST_SERVERS)[self._stand_ins.get(kind, kind)]()
            except ServerMissingError as error:
                pytest.skip(str(error))
            # Before it is started, so that a start that fails leaves no process behind.
            self._running[kind] = server
        self._running[kind].ensure_running()
        return self._running[kind]

    def remove_all(self):
        for server in self._running.values():
            server.remove()


@pytest.fixture(scope="session")
def database_servers(request):
    """`database_servers.get("postgresql")`: one server of a kind for the whole session."""
    servers = RunningServers(request.config.getoption("--servers"))
    yield servers
    servers.remove_all()


@pytest.fixture
def new_database(request, database_servers, tmp_path):
    """`new_database(kind)`: an empty database in a running server, dropped after the test.

    Kinds are those of tests/servers.py and tests/newest_servers.py, and `sqlite`. The server is
    `database.server`: a test may stop, kill or pause it, and the next test finds it running.
    """
    made = []

    given = request.config.getoption("--database-url")

    def new(kind):
        if given and made:
            pytest.skip("one database was given, and this test needs more")
        if given:
            database = given_place(given)
        elif kind == "sqlite":
            folder = tmp_path / f"sqlite{len(made)}"
            folder.mkdir()
            database = new_sqlite_database(folder)
        else:
            database = database_servers.get(kind).new_database()
        made.append(database)
        return database

    yield new
    for database in made:
        if database.server is not None:
            database.server.ensure_running()
            database.server.drop_database(database)


@pytest.fixture
def database(request, new_database):
    """An empty database of the kind that the test is parametrised with (indirect)."""
    return new_database(request.param)
