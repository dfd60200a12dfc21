"""Each extra by itself: a new virtual environment with it and no other, and what README says of it.

The packages are those of this tree, as they are built; distributions come from the index.
"""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.servers import free_port, skip_without_jvm

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("journal", "jdbcstore", "broker", "pipeline")
# Fetching takes as long as it takes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

STORE = """
import sys
from jdbcstore import DatabaseStoreOptions, SqlStore

with SqlStore(DatabaseStoreOptions(connection_url=sys.argv[1])) as store:
    found = store.load()
    store.add(found.max_id + 1, 45, b"body")
with SqlStore(DatabaseStoreOptions(connection_url=sys.argv[1])) as store:
    print(store.load().record_count)
"""
SPARK = """
import pipeline
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").getOrCreate()
pipeline.register(spark)
print(spark.read.format("messages").load("try").groupBy("address", "state").count().count())
"""
# What a URL without its driver is answered with: the extra's whole line.
URLS = {
    "postgresql": ["postgresql://h/a", "jdbc:postgresql://h/a"],
    "mysql": ["mysql://h/a", "mariadb://h/a", "jdbc:mysql://h/a", "jdbc:mariadb://h/a"],
    "oracle": ["oracle://h/a", "jdbc:oracle:thin:@//h/a"],
    "db2": ["db2://h/a", "jdbc:db2://h:50000/a"],
    "mssql": ["mssql://h/a", "jdbc:sqlserver://h;databaseName=a"],
    "derby": ["jdbc:derby:a;create=true"],
}


# An archive without entries.
EMPTY_JAR = b"PK\x05\x06" + bytes(18)
# Ends of JMS bridges that cannot be reached, by the extra that their provider needs.
BRIDGES = {
    "jms": """
provider = "jms"
jars = ["any.jar"]
connection-factory = "any"
queue = "q"
""",
    "stomp": """
provider = "stomp"
url = "stomp://127.0.0.1:1"
queue = "q"
""",
    "amqp": """
provider = "amqp"
url = "amqp://127.0.0.1:1"
queue = "q"
""",
}


class Environment:
    """A virtual environment with one extra.

    Args:
        folder: where it is made, and where its programs stand.
        extra: its name; None for the distribution by itself.
    """

    def __init__(self, folder, extra):
        self.folder = folder
        tree = folder / "tree"
        tree.mkdir()
        for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", *PACKAGES, "ext"):
            (tree / name).symlink_to(ROOT / name)
        venv.create(folder / "venv", with_pip=False)
        self.python = folder / "venv/bin/python"
        self._pip("setuptools>=77")
        wanted = f"{tree}[{extra}]" if extra else str(tree)
        self._pip(
            *("--no-build-isolation", "--config-settings", "editable_mode=compat", "-e", wanted)
        )

    def _pip(self, *words):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet"),
                *("--no-compile", "--disable-pip-version-check", *words),
            ],
            cwd=self.folder,
            env=self._variables(QUIVER_NO_EXTENSIONS="1"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def _variables(self, **more):
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("QUIVER_", "PYTHON", "PYSPARK_"))
        }
        # As bin/activate does: Spark's workers are the `python3` of the PATH.
        return kept | {"PATH": f"{self.folder}/venv/bin:{os.environ['PATH']}"} | more

    def unpack(self):
        """Put a broker's data into the folder `try`; its name."""
        (self.folder / "try").mkdir()
        archive = ROOT / "tests/golden/broker_basic/broker.tar.gz"
        subprocess.run(["tar", "-xzf", archive, "-C", self.folder / "try"], check=True)
        return "try"

    def run(self, *words, status=0, **variables):
        """Run a program of the environment; what it prints, errors included."""
        done = subprocess.run(
            [self.folder / "venv/bin" / words[0], *map(str, words[1:])],
            cwd=self.folder,
            env=self._variables(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout


@pytest.fixture
def environment(tmp_path):
    """`environment(extra)`: gone after the test, it may be of a gigabyte."""
    yield lambda extra: Environment(tmp_path, extra)
    shutil.rmtree(tmp_path)


def test_every_extra_has_its_test():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tested = {"sql", *URLS, "spark", "report", "object-store", "amqp", *BRIDGES}

    # What is left has no code of ours to import it.
    rest = {"test", "test-all", "bench", "dev", "docs", "uvloop"}
    assert set(extras["optional-dependencies"]) - tested <= rest


AMQP = """
from broker.protocols.amqp.factory import AMQP

print(AMQP.unavailable)
if AMQP.unavailable is None:
    from broker.protocols.amqp.engine import Engine
"""


def test_the_engine_of_amqp(environment):
    assert environment("amqp").run("python", "-c", AMQP) == "None\n"


def test_without_any_each_driver_is_answered_with_its_line(environment):
    plain = environment(None)
    plain.run("python", "-c", "import journal, broker.client, pipeline")
    plain.run("broker", "create", "instance", "--user", "me", "--password", "secret")

    assert plain.run("python", "-c", AMQP).endswith("pip install 'quiver-mq[amqp]'\n")
    for extra, urls in URLS.items():
        for url in urls:
            said = plain.run("journal", "stat", url, status=2)
            assert said.endswith(f"pip install 'quiver-mq[{extra}]'\n"), url
    said = plain.run("journal", "stat", "sqlite:///a.db", status=2)
    assert said.endswith("pip install 'quiver-mq[sql]'\n")
    said = plain.run("pipeline", "report", "instance", "--to", "page.html", status=2)
    assert "pip install 'quiver-mq[report]'" in said
    said = plain.run("pipeline", "audit", plain.unpack(), status=2)
    assert "pip install 'quiver-mq[spark]'" in said
    for url in ("s3a://b/a", "abfss://c@a.dfs.core.windows.net/a", "gs://b/a"):
        said = plain.run("pipeline", "audit", url, status=2)
        assert said.endswith("pip install 'quiver-mq[object-store]'\n"), url
    said = plain.run("pipeline", "audit", "postgresql://h/a", status=2)
    assert said.endswith("pip install 'quiver-mq[postgresql]'\n")


def test_sql(environment):
    sql = environment("sql")

    assert sql.run("python", "-c", STORE, f"sqlite:///{sql.folder}/a.db") == "1\n"
    for extra, urls in URLS.items():
        for url in urls:
            said = sql.run("journal", "stat", url, status=2)
            assert f"pip install 'quiver-mq[{extra}]'" in said, url


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ("postgresql", "postgresql"),
        pytest.param("mysql", "mariadb", marks=pytest.mark.soak),
    ],
)
def test_a_database_with_its_driver(environment, new_database, extra, kind):
    place = new_database(kind)

    one = environment(extra)

    assert one.run("python", "-c", STORE, place.jdbc_url or place.url) == "1\n"
    assert one.run("python", "-c", STORE, f"sqlite:///{one.folder}/a.db") == "1\n"
    assert "records" in one.run("journal", "stat", place.jdbc_url or place.url)


@pytest.mark.parametrize(
    "extra",
    [
        "oracle",
        pytest.param("db2", marks=pytest.mark.soak),
        pytest.param("mssql", marks=pytest.mark.soak),
    ],
)
def test_a_database_that_is_not_there_is_told_by_its_driver(environment, extra):
    if extra != "oracle" and os.uname().machine != "x86_64":
        pytest.skip("this driver has wheels for x86-64")
    url = f"{extra}://me:secret@127.0.0.1:{free_port()}/broker"

    one = environment(extra)
    said = one.run("journal", "stat", url, "--setting", "jdbc-network-timeout=5000", status=2)

    assert "the database failed" in said or "apt-get install libltdl7" in said
    assert "pip install" not in said
    assert "Traceback" not in said
    assert one.run("python", "-c", STORE, f"sqlite:///{one.folder}/a.db") == "1\n"


def test_derby(environment):
    skip_without_jvm()
    if not Path("/usr/share/java/derby.jar").exists():
        pytest.skip("no Derby here: install Debian's libderby-java")

    derby = environment("derby")

    assert derby.run("python", "-c", STORE, f"jdbc:derby:{derby.folder}/a;create=true") == "1\n"


def test_spark(environment):
    if shutil.which("java") is None:
        pytest.skip("no Java here: install Debian's `default-jre-headless`")

    spark = environment("spark")
    spark.unpack()
    shown = spark.run("python", "-c", SPARK, SPARK_LOCAL_IP="127.0.0.1")

    assert int(shown.splitlines()[-1]) > 0
    assert "spark-submit --archives" in spark.run("pipeline", "package", "--to", "quiver.tar.gz")
    assert (spark.folder / "quiver.tar.gz").stat().st_size > 0


@pytest.mark.soak
def test_report(environment):
    if shutil.which("java") is None:
        pytest.skip("no Java here: install Debian's `default-jre-headless`")

    report = environment("report")
    report.run(
        *("pipeline", "report", report.unpack(), "--to", "page.html", "--master", "local[1]"),
        SPARK_LOCAL_IP="127.0.0.1",
    )

    assert (report.folder / "page.html").stat().st_size > 0
    assert "spark-submit --archives" in report.run("pipeline", "package", "--to", "quiver.tar.gz")


def test_object_store(environment):
    """Its packages ask a server that is not there; tests/pipeline/test_object_store.py has one."""
    one = environment("object-store")

    said = one.run(
        *("pipeline", "audit", "s3a://bucket/orders"),
        status=2,
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{free_port()}",
        AWS_ACCESS_KEY_ID="me",
        AWS_SECRET_ACCESS_KEY="secret",
    )
    assert said.startswith("pipeline: s3a://bucket/orders: ")
    assert "onnect" in said
    assert len(said.splitlines()) == 1
    one.run("python", "-c", "import adlfs, gcsfs, s3fs")


def run_bridge(environment, extra):
    """What a bridge says that cannot reach its ends."""
    end = BRIDGES[extra]
    (environment.folder / "any.jar").write_bytes(EMPTY_JAR)
    (environment.folder / "bridge.toml").write_text(
        f"failure-retry-interval = -1\n[source]{end}[target]{end}"
    )
    done = subprocess.run(
        [environment.folder / "venv/bin/broker", "bridge", "run", "bridge.toml"],
        cwd=environment.folder,
        env=environment._variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


def test_without_it_a_provider_of_jms_bridges_names_its_extra(environment):
    plain = environment(None)

    for extra in BRIDGES:
        assert f"pip install 'quiver-mq[{extra}]'" in run_bridge(plain, extra)


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param("jms", marks=pytest.mark.soak),
        "stomp",
        "amqp",
    ],
)
def test_a_provider_of_jms_bridges(environment, extra):
    if extra == "jms":
        skip_without_jvm()

    said = run_bridge(environment(extra), extra)

    assert "pip install" not in said
