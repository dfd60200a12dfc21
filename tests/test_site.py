"""The site of `make docs`, where its tools are installed: `make test-all` puts them into .venv."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site.check import findings
from tests import axe

ROOT = Path(__file__).resolve().parents[1]
# Twenty seconds of a processor; on a busy machine as long as a test may take.
BUILD_S = 500


# One of each kind: text, drawings, commands, tables, Python.
PAGES = (
    "index.html",
    "concepts.html",
    "start.html",
    "reference/url-parameters.html",
    "reference/python-broker-client.html",
)


@pytest.fixture
def browser(tmp_path_factory):
    if not axe.CHROMIUM or not axe.AXE.exists():
        pytest.skip("no chromium or axe-core here: tests/axe.py says how to get them")
    with axe.opened(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def site(tmp_path):
    for module in ("mkdocs", "material", "mkdocstrings"):
        try:
            importlib.import_module(module)
        except ImportError:
            pytest.skip(f"no {module} here: `make test-all` installs it")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.slow
def test_it_is_built_without_a_warning_and_fetches_nothing(site):
    assert findings(site) == []
    assert (site / "reference/broker-xml.html").read_text().count("<tr>") > 450
    journal = (site / "reference/python-journal.html").read_text()
    for name in ("open", "load", "compact", "close", "add"):
        assert f'id="journal.Journal.{name}"' in journal
    assert "LiveRecord" in journal.partition('id="journal.Journal.load"')[2].partition("<h3")[0]
    pipeline = (site / "reference/python-pipeline.html").read_text()
    assert '<a href="../guide/pipeline.html">docs/guide/pipeline.md</a>' in pipeline
    for page in (site / "reference").glob("python-*.html"):
        noise = re.findall("__pyx|_cython__|capsule object|Create a new string", page.read_text())
        assert noise == [], page
    assert (site / "search/search_index.json").stat().st_size > 500_000


@pytest.mark.slow
def test_axe_finds_nothing_serious_in_light_and_dark(browser, site):
    found = {
        (page, scheme): browser.faults(site / page, scheme)
        for page in PAGES
        for scheme in ("default", "slate")
    }

    assert {place: faults for place, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://cdn.example/x.js"></script>', "fetches https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', "fetches //fonts.example/a.css"),
        ('<img src="missing.png">', "missing.png is missing"),
        ('<a href="https://example.org">a link</a>', ""),
        (
            "<p>of <database-store>, of course</p>",
            "<database-store> is not a tag: its text is not shown",
        ),
        ("<p>of &lt;database-store>, <code>&lt;x></code></p>", ""),
    ],
)
def test_what_a_page_would_fetch_is_found(tmp_path, text, found):
    (tmp_path / "a.html").write_text(text)

    assert "".join(findings(tmp_path)).endswith(found)
    assert bool(findings(tmp_path)) == bool(found)
