"""`journal-bench`: what it prints, where it works, and that it cleans up."""

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

from journal.commands.bench import journal_bench
from journal.commands.exit_status import run

QUICK = ("--count", "400", "--size", "200", "--file-size", "256K", "--no-suggest")
LATENCIES = {"p50", "p99", "p999", "max"}


@pytest.fixture
def bench(capsys, tmp_path, monkeypatch):
    """`bench(...)`: exit status, standard output, standard error; in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        capsys.readouterr()
        status = run(journal_bench, "journal-bench", [str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return invoke


@pytest.mark.parametrize("journal_type", ["NIO", "ASYNCIO", "MAPPED", "IO_URING"])
@pytest.mark.parametrize("sync", ["--sync", "--no-sync"])
def test_json_has_what_the_contract_says(journal_type, sync, bench, tmp_path):
    status, out, err = bench("--type", journal_type, sync, "--producers", 3, "--json", *QUICK)

    assert status == 0, err
    result = json.loads(out)
    assert result["type"] == journal_type
    assert result["type_used"] in ("NIO", "ASYNCIO", "MAPPED", "IO_URING")
    assert (result["sync"], result["size"], result["producers"], result["count"]) == (
        sync == "--sync",
        200,
        3,
        400,
    )
    append = result["append"]
    assert {"seconds", "records_per_s", "mb_per_s", "latency_us", "flushes"} <= append.keys()
    assert append["latency_us"].keys() == LATENCIES
    assert append["flushes"] >= 1
    assert append["records_per_s"] == pytest.approx(400 / append["seconds"])
    assert result["load"].keys() == {"seconds", "records_per_s", "mb_per_s"}
    assert result["load"]["records_per_s"] == pytest.approx(400 / result["load"]["seconds"])
    assert result["compact"].keys() == {"seconds", "mb_per_s", "files_before", "files_after"}
    assert result["under"]["cpu_count"] >= 1
    assert result["under"]["power_loss"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["--batch", 7], ["--tx", 9], ["--tx", 10, "--batch", 3], ["--repeat", 3]]
)
def test_batches_transactions_and_repeats_append_every_record(arguments, bench):
    status, out, _ = bench(*arguments, "--producers", 2, "--json", *QUICK)

    result = json.loads(out)
    assert status == 0
    assert result["load"]["records_per_s"] == pytest.approx(400 / result["load"]["seconds"])
    assert len(result["runs"]["append_records_per_s"]) == (3 if "--repeat" in arguments else 1)


def test_table_says_what_lies_under_the_figures(bench):
    status, out, _ = bench(*QUICK)

    assert status == 0
    for line in ("append ", "load ", "  file system ", "  write cache ", "  power loss "):
        assert f"\n{line}" in out


def test_suggestion_names_both_parameters(bench, tmp_path):
    status, out, _ = bench(*QUICK[:-1], "--json")

    suggested = json.loads(out)["suggested"]
    assert status == 0
    assert suggested["buffer_timeout_ns"] > 0
    assert suggested["max_io"] in (1, 2, 4, 8, 16)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_page_is_whole_and_fetches_nothing(bench, tmp_path):
    status, _, err = bench(*QUICK, "--html", "page.html")

    page = (tmp_path / "page.html").read_text()
    assert status == 0
    assert "curves: page.html" in err
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 4
    for drawing in drawings:
        xml.etree.ElementTree.fromstring(drawing)
    assert not re.search(r"https?://|<script|<link|@import", page)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_named_folder_is_made_used_and_left_as_it_was(bench, tmp_path):
    folder = tmp_path / "some" / "where"
    assert bench("--dir", folder, *QUICK)[0] == 0
    (folder / "file").write_text("mine")

    status, _, _ = bench("--dir", folder, "--repeat", 2, *QUICK)

    assert status == 0
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_file_in_place_of_the_folder_is_refused(bench, tmp_path):
    (tmp_path / "file").write_text("mine")

    status, out, err = bench("--dir", tmp_path / "file", *QUICK)

    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing_behind(number, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "journal.cli.bench", "--count", "10000000", "--producers", "4"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # Wait for the journal's first file, which shows that it is at work.
        while process.poll() is None and not list(tmp_path.glob("journal-bench-*/*.amq")):
            pass
        process.send_signal(number)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err.strip()) == (130, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--count", "0"], "--count"),
        (["--size", "-1"], "--size is -1"),
        (["--size", "x"], "'x' is not a size"),
        (["--producers", "0"], "--producers"),
        (["--producers", "500"], "--producers is 500; at most --count, 400"),
        (["--batch", "0"], "--batch"),
        (["--tx", "-1"], "--tx"),
        (["--delete", "1.5"], "--delete"),
        (["--repeat", "0"], "--repeat"),
        (["--type", "FAST"], "'FAST' is not one of"),
        (["--file-size", "1"], "journal-file-size is 1; at least 1024"),
        (["--html", "no/such/page.html"], "no/such does not exist"),
        (["--size", "300K"], "a body of 307200 bytes"),
        (["more"], "unexpected extra argument"),
    ],
)
def test_wrong_use_is_one_clear_line_and_leaves_nothing(arguments, what, bench, tmp_path):
    status, out, err = bench(*QUICK, *arguments)

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert what in err
    assert list(tmp_path.iterdir()) == []
