"""Each benchmark that needs no other engine runs at its shortest, and prints its figures."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Its words but for the folder, and what a line of figures looks like.
ALONE = {
    "bench_bridge --messages 300 --rounds 1 --latency 2 --brokers ours": (
        r"ours +core bridge +2 ms link +[\d,]+/s"
    ),
    "bench_bridge_load lag --rate 200 --seconds 1 --only core": r"core bridge .* lag +\d+ ms",
    "bench_bridge_load memory --rate 200 --seconds 1 --only phases": (
        r"end +\d+ messages wait; MiB: source \d+\.\d"
    ),
    "bench_jms_bridge --messages 300 --rounds 1 --latency 2 --batches 50 --brokers ours": (
        r"ours two phases, 50, link / loopback: \d"
    ),
    "bench_broker_loop --rounds 2": r"durable +\d+\.\d+ +\d+\.\d+",
    "bench_broker_start --messages 500 --sent 500 --paged 500 --rounds 1": r"500 +\d+\.\d+ s",
    "bench_failover --messages 500 --rounds 1 --waits 1": (
        r"ours +outage +\d+\.\d+ s, p99 .*\nclaim: p99 within 2 s: "
    ),
    "bench_failover --store sqlite --lease 1000 --messages 500 --rounds 1 --waits 1": (
        r"ours +outage +\d+\.\d+ s, p99 .*\nclaim: p99 within the lease of 1 s and 2 s: "
    ),
    "bench_mesh --messages 300 --rounds 1 --bindings 20 --brokers ours": r"ours +hop +[\d,]+/s",
    "bench_selectors --messages 500 --consumers 10 --rounds 1 --no-artemis": r" 10 +\d+\.\d+ ",
    "compare --quick --rounds 1 --seconds 0.1 --only asyncio": r"ours .* / limit ",
}
WITHOUT_FOLDER = {
    "bench_amqp_engine --messages 200 --rounds 1": r"engine \d+\.\d us a message",
    "bench_sql --database sqlite --seconds 0.1 --repeats 1": r"sqlite +1 blocking +[\d,]+",
    "bench_sql_growth size --database sqlite --rounds 1 --round-seconds 1": r" 1 +1 +\d+\.\d",
}
SPARK = {
    "bench_pipeline --messages 400 --rounds 1 --only messages": r"\d of parquet",
    "bench_pipeline_jobs --size 1M --only audit": r"audit +\d+\.\d s",
    "bench_pipeline_large --gigabytes 0.01": r"local\[2\] +\d",
}
# Each starts Spark several times: one of them is enough for `make test-all`.
SPARK_PARAMS = [
    pytest.param(words, marks=() if "jobs" in words else pytest.mark.soak) for words in SPARK
]


def run(words):
    done = subprocess.run(
        [sys.executable, "-m", *f"benchmarks.{words}".split()],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def name_of(words):
    return words.split()[0]


@pytest.mark.parametrize("words", ALONE, ids=name_of)
def test_it_prints_its_figures(words, tmp_path):
    assert re.search(ALONE[words], run(f"{words} --folder {tmp_path}"))


@pytest.mark.parametrize("words", WITHOUT_FOLDER, ids=name_of)
def test_one_without_a_folder_prints_its_figures(words):
    assert re.search(WITHOUT_FOLDER[words], run(words))


@pytest.mark.parametrize("words", SPARK_PARAMS, ids=name_of)
def test_one_of_spark_prints_its_figures(words, tmp_path):
    pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")
    if shutil.which("java") is None:
        pytest.skip("no Java here: install Debian's `default-jre-headless`")

    assert re.search(SPARK[words], run(f"{words} --folder {tmp_path}"))
