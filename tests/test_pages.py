"""The commands and programs of the manual's pages, typed as a reader types them.

Guides have tests of their own beside the code that they are about; here is seen that they have.
"""

import os
import re
import shutil
import sys

import pytest

from broker import errors
from tests import ci_files
from tests.pages import DOCS, ROOT, TYPED, TYPED_GUIDES, fences, named_files, pages
from tests.servers import free_port

readme = ci_files.load("readme")

# Blocks that no machine of ours can run, by their marks.
NOT_RUN = 5


def typed(path):
    return [one for one in fences(path) if one.language in TYPED]


def runs(path):
    return [one for one in typed(path) if not one.not_run and not one.run_by]


@pytest.fixture
def environment(tmp_path):
    """A folder with the four commands, and ports that are free: environment, text to replace."""
    ports = [str(free_port()) for _ in range(3)]
    commands = tmp_path / "bin"
    commands.mkdir()
    modules = {
        "broker": f"tests.broker_on_ports {ports[0]} {ports[1]}",
        "journal": "journal.cli.main",
        "journal-bench": "journal.cli.bench",
        "python": "",
        "python3": "",
    }
    for name, module in modules.items():
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module and "-m"} {module} "$@"\n')
        command.chmod(0o755)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("QUIVER_")}
    variables = kept | {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return variables, dict(zip(("61616", "8161", "61617"), ports, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [path for path in pages() if runs(path)],
    ids=lambda path: path.relative_to(DOCS).as_posix(),
)
def test_a_page_does_what_it_says(path, tmp_path, environment):
    variables, replaced = environment
    blocks = [readme.Block(one.page, one.line, one.lines) for one in runs(path)]
    if "openssl " in path.read_text() and shutil.which("openssl") is None:
        pytest.skip("no openssl here: install Debian's `openssl`")
    for name, lines in named_files(path):
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    readme.type_blocks(blocks, tmp_path, environment=variables, replaced=replaced)


def test_what_is_not_run_says_why_and_is_counted():
    marked = [one for path in pages() for one in typed(path) if one.not_run]

    assert all(len(one.not_run.split()) >= 3 for one in marked)
    assert len(marked) == NOT_RUN, [f"{one.page}:{one.line}" for one in marked]


def test_what_another_test_runs_is_there():
    named = {one.run_by for path in sorted(DOCS.rglob("*.md")) for one in fences(path)} - {""}

    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []
    assert named


def test_python_begins_with_an_import():
    """By that the runner knows it from a shell's lines."""
    for path in pages():
        for one in runs(path):
            is_python = one.lines[0].startswith(("from ", "import "))
            assert is_python == (one.language == "python"), f"{one.page}:{one.line}"


def test_every_guide_with_commands_has_a_test_that_reads_it():
    tests = [path.read_text() for path in sorted((ROOT / "tests").rglob("*.py"))]
    tests = [text for text in tests if "docs" in text]

    without = {
        path.name
        for path in sorted((DOCS / "guide").glob("*.md"))
        if typed(path)
        and path.name not in TYPED_GUIDES
        and not any(re.search(rf"\b{re.escape(path.name)}", one) for one in tests)
    }

    assert without == set()


@pytest.mark.parametrize("name", ["grafana.json", "alerts.yml", "monitoring.md"])
def test_every_metric_of_the_board_and_the_alerts_is_one_of_ours(name):
    from docs.site.management import metric_names

    text = (DOCS / "operations" / name).read_text()
    named = set(re.findall(r"\b((?:artemis|quiver)_[a-z_]+)", text))

    assert named
    assert named <= metric_names()


def test_the_page_on_monitoring_lists_the_alerts():
    rules = (DOCS / "operations/alerts.yml").read_text()
    page = (DOCS / "operations/monitoring.md").read_text()
    alerts = re.findall(r"^ +- alert: (\w+)$", rules, re.MULTILINE)

    assert alerts == re.findall(r"^\| `([A-Z]\w+)` \|", page, re.MULTILINE)
    assert rules.count(" expr: ") == rules.count(" summary: ") == len(alerts)


def codes():
    """Every code of a log line or an error, from the sources."""
    for package in ("broker", "journal", "jdbcstore"):
        for suffix in ("*.py", "*.pyx"):
            for path in sorted((ROOT / package).rglob(suffix)):
                yield from re.findall(r"AMQ\d{6}", path.read_text())
    yield from (f"AMQ{number}" for number, _ in errors._MESSAGE_IDS.values())


def test_every_code_has_its_row():
    page = (DOCS / "operations/log-codes.md").read_text()
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| AMQ"))

    assert sorted(set(codes()) - set(re.findall(r"AMQ\d{6}", rows))) == []
